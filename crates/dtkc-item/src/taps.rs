//! What lies inside a frozen network: small maps or vectors of an image, beside the vector that describes it.

use serde::{Deserialize, Serialize};

/// Values inside a network that may be kept for each image.
pub const MOST_TAPS: usize = 8;

/// What one value inside a network is for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TapShape {
    /// So many numbers.
    Vector(usize),
    /// Maps: rows and columns for each channel, channel by channel.
    Maps {
        /// Maps.
        channels: usize,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

impl TapShape {
    /// Of the sizes of one item: one size, or channels, rows and columns.
    pub fn from_sizes(sizes: &[usize]) -> Option<Self> {
        match *sizes {
            [size] if size > 0 => Some(Self::Vector(size)),
            [channels, height, width] if channels > 0 && height > 0 && width > 0 => {
                Some(Self::Maps { channels, height, width })
            }
            _ => None,
        }
    }

    /// The sizes of one item.
    pub fn sizes(&self) -> Vec<usize> {
        match *self {
            Self::Vector(size) => vec![size],
            Self::Maps { channels, height, width } => vec![channels, height, width],
        }
    }

    /// Values of an item.
    pub const fn len(&self) -> usize {
        match *self {
            Self::Vector(size) => size,
            Self::Maps { channels, height, width } => channels * height * width,
        }
    }

    /// Never true: a tap without values cannot be made.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The values inside a network that are kept, at most [`MOST_TAPS`], each with sizes of at most 65,535. Small, because every
/// shape of an item has room for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "Vec<Vec<usize>>", try_from = "Vec<Vec<usize>>")]
pub struct Taps([[u16; 3]; MOST_TAPS]);

impl Taps {
    /// None.
    pub const NONE: Self = Self([[0; 3]; MOST_TAPS]);

    /// These; `None` where there are too many, or one is too large.
    pub fn new(shapes: &[TapShape]) -> Option<Self> {
        let mut taps = Self::NONE;
        for (place, shape) in shapes.iter().enumerate() {
            let kept = taps.0.get_mut(place)?;
            for (to, size) in kept.iter_mut().zip(shape.sizes()) {
                *to = u16::try_from(size).ok()?;
            }
        }
        Some(taps)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = TapShape> {
        self.0.into_iter().filter_map(|sizes| match sizes.map(usize::from) {
            [0, ..] => None,
            [size, 0, _] => Some(TapShape::Vector(size)),
            [channels, height, width] => Some(TapShape::Maps { channels, height, width }),
        })
    }

    /// Values of an item.
    pub const fn len(&self) -> usize {
        let (mut sum, mut place) = (0, 0);
        while place < MOST_TAPS {
            let [first, second, third] = self.0[place];
            sum += first as usize * if second == 0 { 1 } else { second as usize * third as usize };
            place += 1;
        }
        sum
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Taps> for Vec<Vec<usize>> {
    fn from(taps: Taps) -> Self {
        taps.iter().map(|shape| shape.sizes()).collect()
    }
}

impl TryFrom<Vec<Vec<usize>>> for Taps {
    type Error = String;

    fn try_from(sizes: Vec<Vec<usize>>) -> Result<Self, String> {
        let shapes: Option<Vec<TapShape>> = sizes.iter().map(|sizes| TapShape::from_sizes(sizes)).collect();
        shapes
            .and_then(|shapes| Self::new(&shapes))
            .ok_or_else(|| format!("taps are up to {MOST_TAPS} lists of one or three sizes below 65,536"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn taps_are_lists_of_sizes_in_files() {
        let taps = Taps::new(&[TapShape::Maps { channels: 32, height: 4, width: 3 }, TapShape::Vector(7)]).unwrap();
        assert_eq!((taps.len(), taps.iter().count(), taps.is_empty()), (32 * 12 + 7, 2, false));
        let text = serde_json::to_string(&taps).unwrap();
        assert_eq!(text, "[[32,4,3],[7]]");
        assert_eq!(serde_json::from_str::<Taps>(&text).unwrap(), taps);
        for wrong in ["[[1,2]]", "[[0]]", "[[1],[1],[1],[1],[1],[1],[1],[1],[1]]", "[[65536]]"] {
            assert!(serde_json::from_str::<Taps>(wrong).is_err(), "{wrong}");
        }
    }
}
