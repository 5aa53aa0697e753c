//! What items look like.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Color, Taps};

/// Images, sequences, or what a network of others made of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// Images of one size.
    Images,
    /// Sequences of one dimension and any length.
    Sequences,
    /// Vectors that a frozen network gave for images and for views of them.
    Features,
}

impl ItemKind {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Sequences => "sequences",
            Self::Features => "features",
        }
    }

    /// What people call the items: features stand for images.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Images | Self::Features => "images",
            Self::Sequences => "sequences",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Images, Self::Sequences, Self::Features].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Rows, columns and channels of an image, or of what a layer makes of one. Values lie row by row, channels fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageShape {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Values per pixel: 1 (gray) or 3 (RGB) for an image.
    pub channels: usize,
}

/// The longest side that an image of a set may have: beyond it a file is not worth trusting.
const MAX_SIDE: usize = 65_535;

impl ImageShape {
    /// Number of values; as many bytes where a value is a byte.
    pub const fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gray or RGB; `None` for a number of channels that is neither.
    pub const fn color(&self) -> Option<Color> {
        Color::from_channels(self.channels)
    }

    /// Says what is wrong with a shape that no image can have.
    pub fn check(&self) -> Result<(), String> {
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
    /// Height x width x channels, as in a dataset file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.height, self.width, self.channels)
    }
}

/// What every item of a set looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ItemShape {
    /// An image of this shape.
    Image(ImageShape),
    /// A sequence of any length.
    Sequence {
        /// Values per time step.
        dim: usize,
    },
    /// A vector of an image, and one of each of its views.
    Features(FeatureShape),
}

/// Vectors that a frozen network gave for an image and for views of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeatureShape {
    /// Values of a vector.
    pub dim: usize,
    /// Views beside the image itself.
    pub views: usize,
    /// What lies inside the network for the image itself, behind all vectors.
    #[serde(default, skip_serializing_if = "Taps::is_empty")]
    pub taps: Taps,
}

impl FeatureShape {
    /// Vectors of an item: its own comes first.
    pub const fn rows(&self) -> usize {
        1 + self.views
    }

    /// Values of all vectors of an item.
    pub const fn vectors(&self) -> usize {
        self.rows() * self.dim
    }

    /// Values of an item.
    pub const fn len(&self) -> usize {
        self.vectors() + self.taps.len()
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.dim == 0
    }
}

impl ItemShape {
    /// Images, sequences or features.
    pub const fn kind(&self) -> ItemKind {
        match self {
            Self::Image(_) => ItemKind::Images,
            Self::Sequence { .. } => ItemKind::Sequences,
            Self::Features(_) => ItemKind::Features,
        }
    }

    /// The shape of the images; `None` for others.
    pub const fn image(&self) -> Option<ImageShape> {
        match self {
            Self::Image(shape) => Some(*shape),
            Self::Sequence { .. } | Self::Features(_) => None,
        }
    }

    /// Values per time step of the sequences; `None` for others.
    pub const fn dim(&self) -> Option<usize> {
        match self {
            Self::Sequence { dim } => Some(*dim),
            Self::Image(_) | Self::Features(_) => None,
        }
    }
}

impl From<ImageShape> for ItemShape {
    fn from(shape: ImageShape) -> Self {
        Self::Image(shape)
    }
}

impl fmt::Display for ItemShape {
    /// As part of a sentence: "images of 28x28x1", "sequences of 3 values a step", "features of 1280 values with 4 views".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(shape) => write!(f, "images of {shape}"),
            Self::Sequence { dim } => write!(f, "sequences of {dim} values a step"),
            Self::Features(FeatureShape { dim, views, taps }) => {
                write!(f, "features of {dim} values with {views} views")?;
                match taps.iter().count() {
                    0 => Ok(()),
                    1 => write!(f, " and 1 tap"),
                    count => write!(f, " and {count} taps"),
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn shapes_count_and_print() {
        let shape = ImageShape { height: 4, width: 5, channels: 3 };
        assert_eq!((shape.len(), shape.to_string().as_str(), shape.color()), (60, "4x5x3", Some(Color::Rgb)));
        assert_eq!(ItemShape::from(shape).to_string(), "images of 4x5x3");
        assert!(shape.check().is_ok() && !shape.is_empty());
        assert!(ImageShape { channels: 2, ..shape }.check().is_err_and(|e| e.contains("2 channels")));
        assert!(ImageShape { height: 0, ..shape }.check().is_err_and(|e| e.contains("0x5x3")));
        assert!(ImageShape { width: 70_000, ..shape }.check().is_err());
    }

    #[test]
    fn files_know_shapes_by_stable_names() {
        let shape = ItemShape::Image(ImageShape { height: 4, width: 5, channels: 3 });
        for (shape, text) in [
            (shape, r#"{"kind":"image","height":4,"width":5,"channels":3}"#),
            (ItemShape::Sequence { dim: 3 }, r#"{"kind":"sequence","dim":3}"#),
            (
                ItemShape::Features(FeatureShape { dim: 9, views: 4, taps: Taps::NONE }),
                r#"{"kind":"features","dim":9,"views":4}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&shape).unwrap(), text);
            assert_eq!(serde_json::from_str::<ItemShape>(text).unwrap(), shape);
            let kind = serde_json::to_value(shape.kind()).unwrap();
            assert_eq!(kind, shape.kind().name());
        }
    }

    #[test]
    fn kinds_have_names() {
        for kind in [ItemKind::Images, ItemKind::Sequences, ItemKind::Features] {
            assert_eq!(ItemKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(ItemKind::from_name("sounds"), None);
        let sequence = ItemShape::Sequence { dim: 3 };
        assert_eq!((sequence.kind(), sequence.dim(), sequence.image()), (ItemKind::Sequences, Some(3), None));
        let features = FeatureShape { dim: 9, views: 4, taps: Taps::NONE };
        assert_eq!((features.rows(), features.len(), features.is_empty()), (5, 45, false));
        let taps = Taps::new(&[crate::TapShape::Vector(3)]).unwrap();
        let tapped = FeatureShape { taps, ..features };
        assert_eq!((tapped.vectors(), tapped.len()), (45, 48));
        let tapped = ItemShape::Features(tapped);
        assert_eq!(tapped.to_string(), "features of 9 values with 4 views and 1 tap");
        let text = r#"{"kind":"features","dim":9,"views":4,"taps":[[3]]}"#;
        assert_eq!(serde_json::to_string(&tapped).unwrap(), text);
        let features = ItemShape::Features(features);
        assert_eq!((features.kind(), features.dim(), features.image()), (ItemKind::Features, None, None));
        assert_eq!(features.to_string(), "features of 9 values with 4 views");
    }
}
