//! The nearest others of every item: what spectral clustering's graph is made of, and who may stand in for a second view.
//!
//! | part | where |
//! |---|---|
//! | exact nearest neighbours of any rows | [`Neighbours`] |
//! | what makes two images alike | [`Likeness`] |
//! | all images of a set, as rows of pixels | `images.rs` |
//! | the same as outlines | `outlines.rs` |

mod images;
mod likeness;
mod neighbours;
mod outlines;

pub(crate) use images::Images;
pub use likeness::Likeness;
pub(crate) use likeness::outlines_of;
pub use neighbours::{Neighbours, Rows};
