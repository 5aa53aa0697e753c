//! What one item is: an image, a sequence, or what a frozen network made of an image. Every other crate speaks these words.
//!
//! | word | meaning |
//! |---|---|
//! | [`ItemKind`] | images, sequences or features |
//! | [`ImageShape`] | height, width and channels of an image, or of what a layer makes of one |
//! | [`FeatureShape`] | how many vectors of how many values a frozen network gave for an image and views of it |
//! | [`Taps`] | what else is kept of such a network for an image: values from its inside |
//! | [`ItemShape`] | what every item of a set looks like: an image of one shape, a sequence of one dimension, or features |
//! | [`ImageSpec`] | the images that a network takes, and how any other image becomes one of them |
//! | [`Items`], [`ItemRef`], [`Batch`] | some items, one of them, and where they are in their set |
//! | [`read_file`] | the bytes of an item that is a file of its own |
//! | [`ItemError`] | why one item cannot be used, while its neighbours can |

mod batch;
mod error;
mod file;
mod image;
mod shape;
mod taps;

pub use batch::{Batch, ItemRef, Items};
pub use error::ItemError;
pub use file::read_file;
pub use image::{Color, ImageSpec, Resize};
pub use shape::{FeatureShape, ImageShape, ItemKind, ItemShape};
pub use taps::{MOST_TAPS, TapShape, Taps};
