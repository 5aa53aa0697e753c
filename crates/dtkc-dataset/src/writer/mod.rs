//! Writing datasets: streamed, whole or not at all.

mod column;
mod images;
mod options;
mod sequences;
mod sink;

pub use images::ImageWriter;
pub use options::{Compression, SequenceOptions, WriterOptions};
pub use sequences::SequenceWriter;
