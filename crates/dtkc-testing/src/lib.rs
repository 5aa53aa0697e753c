//! What the tests of several crates share. Only ever a dev-dependency.
//!
//! - [`Place`]: a folder of its own for a test, a program that runs in it, and what it said.
//! - [`Set`], [`write_images`], [`write_sequences`]: small datasets.
//! - [`files`]: encoded images and archives; [`hostile`]: small ones that ask for much.
//! - [`parquet`]: tables with an image in every row.
//! - [`drawing`], [`Noise`]: images and numbers that are the same in every run.
//! - [`wait_for`], [`wait_until`]: for what another process does, whatever the machine's speed.
//! - [`store`]: a local S3 server of others.
//! - `browser` (with the feature of that name): a real browser that opens pages.
//! - `model` (with the feature of that name): a small model file.

// Tests are the only callers: a failure here is a failed test, and says where.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "browser")]
pub mod browser;
pub mod files;
pub mod hostile;
#[cfg(feature = "model")]
pub mod model;
pub mod parquet;
pub mod store;

mod noise;
mod place;
mod sets;
mod wait;

pub use noise::{Noise, drawing};
pub use place::{Place, Said, names, program};
pub use sets::{CHUNK_ROWS, SHAPE, Set, first_pixels, image, labels, paths, sequence, write_images, write_sequences};
pub use wait::{LONG, wait_for, wait_until};
