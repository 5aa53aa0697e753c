//! Numbers of the random views.

use crate::OutOfRange;
use serde::{Deserialize, Serialize};

/// What lies outside of an image that is turned or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// The image's own background where half of its border has (nearly) one value, black or white or a colour;
    /// otherwise `reflect`.
    Auto,
    /// The darkest value.
    Zero,
    /// The nearest pixel of the image.
    Edge,
    /// The image mirrored at its border.
    Reflect,
}

/// Random views of images. A number of 0 turns its change off; ranges are symmetric, so rotation = 15 means -15 to 15.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugmentConfig {
    /// Rotation, degrees.
    pub rotation: f64,
    /// Change of size, 0.1 is 10 %.
    pub scale: f64,
    /// Change of the ratio of width to height, 0.1 is 10 %.
    pub aspect: f64,
    /// Shear, as a tangent.
    pub shear: f64,
    /// Move, as a part of the side; .07 is 2 px of 28.
    pub translation: f64,
    /// Smooth local displacement, as a part of the side.
    pub elastic: f64,
    /// Probability of a mirror image, left for right.
    pub flip: f64,
    /// Probability of a mirror image, top for bottom.
    pub flip_vertical: f64,
    /// Added to all values, of 1.
    pub brightness: f64,
    /// Change of the differences from the mean, 0.2 is 20 %.
    pub contrast: f64,
    /// Change of the exponent of the values, as a natural logarithm.
    pub gamma: f64,
    /// Change of each colour channel by itself, 0.2 is 20 %; colour images only.
    pub channel: f64,
    /// Change of the differences between colour channels, 0.2 is 20 %; colour images only.
    pub saturation: f64,
    /// Standard deviation of noise added to every value.
    pub noise: f64,
    /// A rectangle is hidden behind the background: its sides at most, as a part of the image's.
    pub erase: f64,
    /// What lies outside of the image.
    pub fill: Fill,
    /// Change the first view too; otherwise it is the clean image.
    pub both: bool,
}

impl Default for AugmentConfig {
    fn default() -> Self {
        Self::off()
    }
}

impl AugmentConfig {
    /// No change at all.
    pub fn off() -> Self {
        Self {
            rotation: 0.0,
            scale: 0.0,
            aspect: 0.0,
            shear: 0.0,
            translation: 0.0,
            elastic: 0.0,
            flip: 0.0,
            flip_vertical: 0.0,
            brightness: 0.0,
            contrast: 0.0,
            gamma: 0.0,
            channel: 0.0,
            saturation: 0.0,
            noise: 0.0,
            erase: 0.0,
            fill: Fill::Auto,
            both: false,
        }
    }

    /// Affine changes and changes of light, so that clusters follow shapes and not shades. Mirror images are
    /// left to those who know their data.
    pub fn strong() -> Self {
        Self {
            rotation: 25.0,
            scale: 0.2,
            aspect: 0.3,
            shear: 0.3,
            translation: 0.1,
            brightness: 0.3,
            contrast: 0.5,
            gamma: 0.5,
            channel: 0.15,
            saturation: 0.3,
            ..Self::off()
        }
    }

    /// Changes that a photograph bears, for networks that were trained on photographs: they know more than ours learn from
    /// stronger ones.
    pub fn mild() -> Self {
        Self {
            rotation: 10.0,
            scale: 0.2,
            aspect: 0.15,
            shear: 0.1,
            translation: 0.1,
            brightness: 0.15,
            contrast: 0.3,
            gamma: 0.3,
            channel: 0.05,
            saturation: 0.3,
            ..Self::off()
        }
    }

    /// Whether a view can differ from its image.
    pub fn is_off(&self) -> bool {
        let off = Self { fill: self.fill, both: self.both, ..Self::off() };
        *self == off
    }

    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), OutOfRange> {
        let rows = [
            ("rotation", self.rotation, 180.0, "between 0 and 180 degrees"),
            ("scale", self.scale, 0.9, "between 0 and 0.9"),
            ("aspect", self.aspect, 0.9, "between 0 and 0.9"),
            ("shear", self.shear, 2.0, "between 0 and 2"),
            ("translation", self.translation, 1.0, "between 0 and 1"),
            ("elastic", self.elastic, 0.5, "between 0 and 0.5"),
            ("flip", self.flip, 1.0, "between 0 and 1"),
            ("flip_vertical", self.flip_vertical, 1.0, "between 0 and 1"),
            ("brightness", self.brightness, 1.0, "between 0 and 1"),
            ("contrast", self.contrast, 1.0, "between 0 and 1"),
            ("gamma", self.gamma, 3.0, "between 0 and 3"),
            ("channel", self.channel, 1.0, "between 0 and 1"),
            ("saturation", self.saturation, 1.0, "between 0 and 1"),
            ("noise", self.noise, 1.0, "between 0 and 1"),
            ("erase", self.erase, 0.9, "between 0 and 0.9"),
        ];
        for (name, value, most, range) in rows {
            if !(0.0..=most).contains(&value) {
                return Err(OutOfRange { name: format!("augment.{name}"), value, range });
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
    fn bad_numbers_are_named() {
        let config = AugmentConfig { rotation: -3.0, ..AugmentConfig::off() };
        assert!(config.check().unwrap_err().to_string().contains("augment.rotation = -3"));
        let config = AugmentConfig { noise: f64::NAN, ..AugmentConfig::off() };
        assert!(config.check().is_err());
        AugmentConfig::strong().check().unwrap();
    }

    #[test]
    fn off_is_off() {
        assert!(AugmentConfig::off().is_off());
        assert!(AugmentConfig { both: true, fill: Fill::Edge, ..AugmentConfig::off() }.is_off());
        assert!(!AugmentConfig::strong().is_off());
    }
}
