//! The nearest others of every item: what spectral clustering's graph is made of, and who may stand in for a second view.
//!
//! | part | where |
//! |---|---|
//! | exact nearest neighbours of any rows | [`Neighbours`] |
//! | what makes two images alike | [`Likeness`] |
//! | all images of a set, as rows of pixels | `images.rs` |
//! | the same as outlines | `outlines.rs` |
//! | all sequences of a set, as rows of resampled values | `sequences.rs` |

mod images;
mod likeness;
mod neighbours;
mod outlines;
mod sequences;

pub(crate) use images::{Images, seconds_of_all_pairs};
pub use likeness::Likeness;
pub(crate) use likeness::compared_rows;
pub use neighbours::{Neighbours, Rows};
pub(crate) use sequences::{Resampled, read_sequences, seconds_of_all_sequences};
