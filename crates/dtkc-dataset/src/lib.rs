//! The dataset file: HDF5 schema, reader, writer, and minibatches from it.
//!
//! The file layout is schema 1. Root attributes: `dtkc_schema` = 1, `kind` = "images" or "sequences",
//! `name`, `source`, and optionally `resize`, how images were brought to their size. Images: `/images` u8 `[n, h, w, c]`; sequences: `/values` f32 `[sum of lengths, dim]`
//! and `/offsets` u64 `[n + 1]`; both with optional `/labels` i64 `[n]`, `/label_names` str `[classes]`
//! and `/paths` str `[n]`. Any HDF5 tool reads it.
//!
//! - [`Writer`] streams a file to the disk; it appears whole or not at all.
//! - [`Dataset`] opens and checks a file and reads it by index or by range.
//! - [`Batches`] yields shuffled minibatches, from memory or streamed.
//! - [`trial`] has files of strangers read by another process first.
//! - [`schema`] and [`h5`] are for whoever reads other HDF5 files: the names of the layout, and failures in plain words.
//!
//! ```
//! use dtkc_dataset::{Batches, Dataset, LoadOptions, Writer, WriterOptions};
//! use dtkc_item::ImageShape;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("dots.h5");
//! let shape = ImageShape { height: 8, width: 8, channels: 1 };
//! let mut writer = Writer::create(&path, WriterOptions::new(shape, "dots", "made here"))?;
//! for i in 0..100u8 {
//!     writer.push_image(&[i; 64], Some(i64::from(i % 2)), None)?;
//! }
//! writer.finish()?;
//!
//! let dataset = Dataset::open(&path)?;
//! assert_eq!((dataset.len(), dataset.read(&[99, 0])?[63]), (100, 99));
//!
//! let mut batches = Batches::over(dataset, LoadOptions { batch: 30, seed: 1, ..LoadOptions::default() })?;
//! for batch in batches.epoch(0) {
//!     let batch = batch?;
//!     assert_eq!(batch.items.len(), batch.indices.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod h5;
pub mod schema;
pub mod trial;

mod error;
mod loader;
mod reader;
mod sample;
mod writer;

pub use error::DataError;
pub use loader::{Batches, Epoch, LoadMode, LoadOptions};
pub use reader::{Dataset, Storage};
pub use sample::sample;
pub use writer::{Compression, Origin, Writer, WriterOptions};
