//! How much memory the service takes at most, whatever arrives: known from the flags before anything does.

use std::fmt;

use dtkc_human::bytes;

use dtkc_infer::ModelFile;
use dtkc_item::ItemShape;

use crate::config::{ServeConfig, cores};
use crate::engine::BATCH_BYTES;
use crate::models::Slot;

/// Program, libraries, page, log and metrics.
const PROGRAM: u64 = 96 << 20;
/// What a session of ONNX Runtime takes beside the model: its copy of the weights and the space that it works in.
const SESSION: u64 = 24 << 20;
/// Sessions hold the weights as they are and prepared for the processor.
const COPIES: u64 = 4;
/// Copies of a file on its way to the pixels, which each worker may hold beside what is being decoded, and what it keeps.
const COPIES_OF_FILE: u64 = 3;
const KEPT: u64 = 36 << 20;
/// Bodies that are being read out take their size again while they grow, and JSON some more; so many at once as there are
/// cores.
const READING: u64 = 2;
/// What the HTTP library and the system's buffers in it take for one connection: 128 KiB to read, 32 KiB of a body, 64 KiB
/// to write, and the connection itself.
const CONNECTION: u64 = 256 << 10;

/// The same where gRPC is spoken, too: 128 KiB that were received and not yet counted, 16 KiB to write and 8 KiB of head
/// for each of 16 calls.
#[cfg(feature = "grpc")]
const GRPC_CONNECTION: u64 = 640 << 10;

/// The parts of the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    program: u64,
    models: u64,
    images: u64,
    buffered: u64,
    connections: u64,
}

impl Bound {
    /// What these settings allow for these models. Twice the models: while one is replaced both are there.
    pub fn new(config: &ServeConfig, models: &[Slot]) -> Self {
        let workers = config.worker_threads() as u64;
        let sizes = models.iter().map(|slot| slot.served().model.bytes().len() as u64);
        let session = |size: u64| COPIES * size + SESSION;
        let batch = |slot: &Slot| batch(&slot.served().model, config);
        let worker = |slot: &Slot| batch(slot) + COPIES_OF_FILE * config.max_body + KEPT;
        let cores = cores() as u64;
        Self {
            program: PROGRAM,
            models: sizes.map(|size| 2 * workers * session(size)).sum(),
            // What is being decoded shares one room, whatever the number of workers and models.
            images: config.image_limits().memory() + models.iter().map(|slot| workers * worker(slot)).sum::<u64>(),
            buffered: config.max_buffered.saturating_add(cores * READING * config.max_body),
            connections: (config.max_connections as u64).saturating_mul(connection(config)),
        }
    }

    /// All parts together.
    pub fn total(&self) -> u64 {
        let Self { program, models, images, buffered, connections } = *self;
        [models, images, buffered, connections].into_iter().fold(program, u64::saturating_add)
    }
}

/// What a worker takes for the items that it runs at once.
fn batch(model: &ModelFile, config: &ServeConfig) -> u64 {
    let max_steps = config.max_steps as usize;
    match model.shape() {
        ItemShape::Image(shape) => shape.len() as u64 * 5 * config.max_batch as u64,
        ItemShape::Sequence { dim } => {
            let longest = (max_steps as u64).saturating_mul(dim as u64 * size_of::<f32>() as u64);
            // A batch ends with the item that makes it so large; it is copied once as it is and once filled up, to twice
            // its size at most.
            model.worst_run(max_steps).saturating_add(3 * (BATCH_BYTES as u64).saturating_add(longest))
        }
        // No model file takes features.
        ItemShape::Features(_) => 0,
    }
}

#[cfg(feature = "grpc")]
fn connection(config: &ServeConfig) -> u64 {
    if config.grpc_port.is_some() { GRPC_CONNECTION } else { CONNECTION }
}

#[cfg(not(feature = "grpc"))]
fn connection(_: &ServeConfig) -> u64 {
    CONNECTION
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, models, images, buffered, connections } = *self;
        write!(
            f,
            "at most {} ({} models, {} images being decoded, {} requests and answers, {} connections, {} the program)",
            bytes(self.total()),
            bytes(models),
            bytes(images),
            bytes(buffered),
            bytes(connections),
            bytes(program),
        )
    }
}
