//! Model files run on ONNX Runtime: decoding, batching, assignment in order.
//!
//! ```no_run
//! use dtkc_infer::{Device, ModelFile, Runtime, Session, SessionOptions};
//!
//! let model = ModelFile::open("mnist")?;
//! let runtime = Runtime::find(None)?;
//! let mut session = Session::new(&runtime, &model, &SessionOptions::default())?;
//! let pixels = vec![0u8; 2 * model.shape().bytes()];
//! for assignment in session.run(&pixels, 2)?.iter() {
//!     println!("{} ({:.0} %)", model.metadata().cluster_name(assignment.cluster), 100.0 * assignment.confidence);
//! }
//! # Ok::<(), dtkc_infer::InferError>(())
//! ```
//!
//! - [`Runtime`] finds and opens the ONNX Runtime library; one per process.
//! - [`ModelFile`] is a checked model: bytes, metadata, and the shape that images must have.
//! - [`Session`] runs batches of pixels. Not shared between threads: each worker owns one.
//! - [`Pool`] keeps worker threads busy with encoded images, files or pixels, and gives results in order.

mod assignment;
mod device;
mod error;
mod model;
mod names;
mod onnxruntime;
mod places;
mod pool;
mod runtime;
mod session;
mod source;
#[cfg(feature = "tract")]
mod tract;

pub use assignment::{Assignment, Assignments};
pub use device::Device;
pub use error::{InferError, ItemError};
pub use model::ModelFile;
pub use names::Names;
pub use pool::{Batch, Done, Feeder, Job, Pool, PoolOptions, Results, Stopped, Work, Workers};
pub use runtime::Runtime;
pub use session::{Session, SessionOptions};
pub use source::{Source, prepare, read_file};
