//! Small pictures that live inside a page, within a budget of bytes.

mod encode;
mod fit;
mod tiles;

pub use encode::{Picture, PictureError, Pixels};
pub use fit::{Fit, Frame};
pub use tiles::{Tiles, TilesWriter};
