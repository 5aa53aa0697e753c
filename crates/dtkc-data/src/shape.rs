//! The size of every image of a set.

use std::fmt;

use dtkc_image::Color;
use serde::{Deserialize, Serialize};

/// The size of every image of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageShape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// 1 (gray) or 3 (RGB).
    pub channels: usize,
}

/// The longest side that a dataset may have: beyond it a file is not worth trusting.
const MAX_SIDE: usize = 65_535;

impl ImageShape {
    /// Bytes of one image.
    pub const fn bytes(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Gray or RGB; `None` for a channel count that is neither.
    pub const fn color(&self) -> Option<Color> {
        Color::from_channels(self.channels)
    }

    /// Says what is wrong with a shape that no dataset can have.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.color().is_none() {
            return Err(format!("images of {} channels are not supported; use 1 (gray) or 3 (RGB)", self.channels));
        }
        if [self.height, self.width].iter().any(|side| !(1..=MAX_SIDE).contains(side)) {
            return Err(format!("images of {self} are not supported; a side has 1 to {MAX_SIDE} pixels"));
        }
        Ok(())
    }
}

impl fmt::Display for ImageShape {
    /// Height x width x channels, as in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.height, self.width, self.channels)
    }
}
