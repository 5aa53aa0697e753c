//! Model files run on ONNX Runtime: decoding, batching, assignment in order.
//!
//! ```no_run
//! use dtkc_infer::{Device, ModelFile, Runtime, Session, SessionOptions};
//!
//! let model = ModelFile::open("mnist")?;
//! let runtime = Runtime::find(None)?;
//! let mut session = Session::new(&runtime, &model, &SessionOptions::default())?;
//! let image = model.image().map_or(0, |image| image.bytes());
//! for assignment in session.run(&vec![0u8; 2 * image], 2)?.iter() {
//!     println!("{} ({:.0} %)", model.metadata().cluster_name(assignment.cluster), 100.0 * assignment.confidence);
//! }
//! # Ok::<(), dtkc_infer::InferError>(())
//! ```
//!
//! - [`Runtime`] finds and opens the ONNX Runtime library; one per process.
//! - [`ModelFile`] is a checked model: bytes, metadata, and the images or sequences that it takes.
//! - [`Session`] runs batches of pixels or sequences. Not shared between threads: each worker owns one.
//! - [`FeatureSession`] runs a backbone of somebody else alone, from pixels to features.
//! - [`Worker`] makes items ready, each alone, and runs a session on them: one per thread, in labelling and serving.
//! - [`Pool`] keeps worker threads busy with encoded images, files or pixels, and gives results in order.
//! - [`Prepare`] is what an item must be able to do; [`RawItem`] has the usual forms.

mod assignment;
mod device;
mod error;
mod features;
mod item;
mod model;
mod names;
mod onnxruntime;
mod places;
mod pool;
mod runtime;
mod sequences;
mod session;
#[cfg(feature = "tract")]
mod tract;
mod worker;

pub use assignment::{Assignment, Assignments};
pub use device::Device;
pub use dtkc_onnx::MAX_BYTES as MAX_MODEL_BYTES;
pub use error::InferError;
pub use features::{FeatureSession, Features};
pub use item::{Prepare, RawItem};
pub use model::{ModelFile, read_limited};
pub use names::Names;
pub use pool::{Answers, Feeder, Finished, Pool, PoolOptions, Results, Stopped, Task, Threads, Work};
pub use runtime::Runtime;
pub use sequences::SequenceSpec;
pub use session::{Session, SessionOptions};
pub use worker::{Prepared, Worker};
