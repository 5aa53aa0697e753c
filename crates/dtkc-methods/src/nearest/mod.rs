//! The nearest others of every item: what spectral clustering's graph is made of, and who may stand in for a second view.
//!
//! | part | where |
//! |---|---|
//! | exact nearest neighbours of any rows | [`Neighbours`] |
//! | all images of a set, as rows | `images.rs` |

mod images;
mod neighbours;

pub(crate) use images::Images;
pub use neighbours::{Neighbours, Rows};
