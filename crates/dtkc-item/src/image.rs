//! What an image file becomes: size, colour, and how an image is brought to that size.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ImageShape;

/// One channel or three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// One channel: Pillow's `L`.
    Gray,
    /// Red, green, blue.
    Rgb,
}

impl Color {
    /// Bytes per pixel: 1 or 3.
    pub const fn channels(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::Rgb => 3,
        }
    }

    /// The colour mode of an image with that many channels: 1 or 3.
    pub const fn from_channels(channels: usize) -> Option<Self> {
        match channels {
            1 => Some(Self::Gray),
            3 => Some(Self::Rgb),
            _ => None,
        }
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Gray => "gray",
            Self::Rgb => "rgb",
        })
    }
}

impl FromStr for Color {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "gray" | "grey" => Ok(Self::Gray),
            "rgb" => Ok(Self::Rgb),
            _ => Err(format!("'{text}' is not a colour mode; use gray or rgb")),
        }
    }
}

/// How an image of another size is brought to the wanted size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resize {
    /// The whole image, proportions kept, centred on black. What is done where nobody says otherwise.
    #[default]
    Fit,
    /// The whole image, proportions not kept.
    Stretch,
    /// Proportions kept, the wanted size filled, what sticks out cut off on both sides.
    Crop,
}

impl fmt::Display for Resize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fit => "fit",
            Self::Stretch => "stretch",
            Self::Crop => "crop",
        })
    }
}

impl FromStr for Resize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fit" => Ok(Self::Fit),
            "stretch" => Ok(Self::Stretch),
            "crop" => Ok(Self::Crop),
            _ => Err(format!("'{text}' is not a way to resize; use fit, stretch or crop")),
        }
    }
}

/// The images that a network takes: `height` x `width` x channels of `color`, row by row, one byte each; and how any other
/// image becomes one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageSpec {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Gray or RGB.
    pub color: Color,
    /// How other sizes are brought to this one.
    pub resize: Resize,
}

impl ImageSpec {
    /// Height, width and channels.
    pub const fn shape(&self) -> ImageShape {
        ImageShape { height: self.height, width: self.width, channels: self.color.channels() }
    }

    /// Bytes of one image: height x width x channels.
    pub const fn bytes(&self) -> usize {
        self.shape().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for color in [Color::Gray, Color::Rgb] {
            assert_eq!(color.to_string().parse(), Ok(color));
            assert_eq!(Color::from_channels(color.channels()), Some(color));
        }
        for resize in [Resize::Fit, Resize::Stretch, Resize::Crop] {
            assert_eq!(resize.to_string().parse(), Ok(resize));
        }
        assert!("cmyk".parse::<Color>().is_err_and(|e| e.contains("gray or rgb")));
        assert!("zoom".parse::<Resize>().is_err_and(|e| e.contains("fit, stretch or crop")));
    }
}
