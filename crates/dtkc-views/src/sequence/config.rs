//! Numbers of the random views of sequences.

use crate::OutOfRange;
use serde::{Deserialize, Serialize};

/// Random views of sequences, whose values were scaled to mean 0 and deviation 1. A number of 0 turns its change off.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SequenceViewConfig {
    /// How unevenly time runs: local speeds differ by a factor of about e to this, both ways.
    pub warp: f64,
    /// Change of the length, 0.2 is 20 % both ways.
    pub speed: f64,
    /// What is cut off at both ends together, at most, as a part of the length.
    pub crop: f64,
    /// The longest stretch of time that is hidden (set to the mean), as a part of the length.
    pub mask: f64,
    /// Change of the size of each dimension by itself, 0.2 is 20 % both ways.
    pub scale: f64,
    /// Added to each dimension by itself, in deviations, both ways.
    pub shift: f64,
    /// Rotation of the first two dimensions in degrees, both ways; only for planar trajectories, which have 2 or 3.
    pub rotation: f64,
    /// Noise on every value, as a part of the sequence's own changes from step to step: smooth curves stay smooth.
    pub noise: f64,
    /// Change the first view too; otherwise it is the sequence itself.
    pub both: bool,
}

impl SequenceViewConfig {
    /// Changes of time and size that leave most kinds of sequences what they are.
    pub fn strong() -> Self {
        Self {
            warp: 0.4,
            speed: 0.2,
            crop: 0.1,
            mask: 0.1,
            scale: 0.25,
            shift: 0.1,
            rotation: 20.0,
            noise: 0.3,
            both: false,
        }
    }

    /// Whether a view can differ from its sequence.
    pub fn is_off(&self) -> bool {
        Self { both: false, ..self.clone() } == Self::default()
    }

    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let rows = [
            ("warp", self.warp, 2.0, "between 0 and 2"),
            ("speed", self.speed, 0.9, "between 0 and 0.9"),
            ("crop", self.crop, 0.9, "between 0 and 0.9"),
            ("mask", self.mask, 0.9, "between 0 and 0.9"),
            ("scale", self.scale, 0.9, "between 0 and 0.9"),
            ("shift", self.shift, 10.0, "between 0 and 10"),
            ("rotation", self.rotation, 180.0, "between 0 and 180 degrees"),
            ("noise", self.noise, 10.0, "between 0 and 10"),
        ];
        for (name, value, most, range) in rows {
            if !(0.0..=most).contains(&value) {
                return Err(OutOfRange { name: format!("sequence_views.{name}"), value, range });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bad_numbers_are_named_and_off_is_off() {
        let config = SequenceViewConfig { crop: 1.0, ..SequenceViewConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("sequence_views.crop = 1"));
        assert!(SequenceViewConfig { warp: f64::NAN, ..SequenceViewConfig::default() }.check().is_err());
        SequenceViewConfig::strong().check().unwrap();
        assert!(SequenceViewConfig { both: true, ..SequenceViewConfig::default() }.is_off());
        assert!(!SequenceViewConfig::strong().is_off());
    }
}
