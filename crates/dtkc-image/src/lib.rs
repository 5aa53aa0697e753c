//! Image bytes to pixels of one size: limits, decoding, orientation, colour, resizing.
//!
//! Training, labelling and serving must see the same pixels for the same file, so all of them come
//! through [`Preparer`]: the size is checked before anything is decoded, the EXIF orientation is
//! honoured, transparency is laid over white (over black where the drawing is
//! nearly white, which would vanish), 16 bits become 8, colour becomes what the
//! [`ImageSpec`](dtkc_item::ImageSpec) asks for, and the result is resized with an antialiasing triangle filter ([`FILTER`]).

mod brand;
mod color;
mod contain;
mod decode;
mod error;
mod fingerprint;
mod fit;
#[cfg(feature = "heif")]
mod heif;
mod limits;
mod prepare;
mod reduced;
mod walk;

pub use color::flatten;
pub use fingerprint::{Fingerprint, Hash, VIEWS};
pub use limits::{Cost, Limits, Probe, probe};
pub use prepare::Preparer;

/// The resize filter's name, as the model file records it: antialiased bilinear.
pub const FILTER: &str = "triangle";
