//! A worker: takes a batch, decodes it, runs its session, hands the rows out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use dtkc_image::Preparer;
use dtkc_infer::{Assignments, Session};

use super::item::ImageProblem;
use super::job::{Outcome, Row};
use super::queue::{Queue, Slice};
use crate::metrics::ModelMetrics;

/// What one worker thread owns.
pub struct Worker {
    queue: Arc<Queue>,
    metrics: Arc<ModelMetrics>,
    session: Session,
    preparer: Preparer,
    /// Pixels of one batch, reused.
    pixels: Vec<u8>,
    image_bytes: usize,
}

/// A batch after decoding: which image each row belongs to, and which images failed.
struct Decoded {
    rows: Vec<(usize, usize)>,
    failed: Vec<(usize, usize, ImageProblem)>,
}

impl Worker {
    /// A worker for one queue.
    pub fn new(queue: Arc<Queue>, metrics: Arc<ModelMetrics>, session: Session, preparer: Preparer) -> Self {
        let image_bytes = preparer.shape().bytes();
        Self { queue, metrics, session, preparer, pixels: Vec::new(), image_bytes }
    }

    /// Runs one inference on black images, so that the first request does not pay for what the runtime does
    /// only once.
    pub fn warm_up(&mut self, images: usize) -> Result<(), String> {
        let pixels = vec![0; images * self.image_bytes];
        let started = Instant::now();
        self.session.run(&pixels, images).map_err(|error| error.to_string())?;
        self.queue.note_speed(images, started.elapsed());
        Ok(())
    }

    /// Works until the queue is closed and empty.
    pub fn run(mut self) {
        while let Some(batch) = self.queue.take() {
            let batch: Vec<Slice> = batch.into_iter().filter(|slice| !slice.job.is_gone()).collect();
            for slice in &batch {
                slice.job.mark_started();
            }
            // Decoders and the runtime contain their own panics; one that escapes must not cost a worker.
            let result = catch_unwind(AssertUnwindSafe(|| self.process(&batch)));
            let reason = match result {
                Ok(Ok(())) => continue,
                Ok(Err(reason)) => reason,
                Err(_) => "the worker panicked".to_owned(),
            };
            tracing::error!(reason, images = count(&batch), "a batch failed");
            for slice in &batch {
                slice.job.fail(&reason);
            }
        }
    }

    fn process(&mut self, batch: &[Slice]) -> Result<(), String> {
        let started = Instant::now();
        let decoded = self.decode(batch);
        let decoding = started.elapsed();
        let images = decoded.rows.len();
        let assigned = if images == 0 {
            None
        } else {
            let pixels = &self.pixels[..images * self.image_bytes];
            Some(self.session.run(pixels, images).map_err(|error| error.to_string())?)
        };
        let total = started.elapsed();
        self.queue.note_speed(count(batch), total);
        self.metrics.batch(images, decoding, total - decoding);
        self.deliver(batch, decoded, assigned);
        Ok(())
    }

    fn decode(&mut self, batch: &[Slice]) -> Decoded {
        let mut decoded = Decoded { rows: Vec::with_capacity(count(batch)), failed: Vec::new() };
        self.pixels.resize((count(batch) * self.image_bytes).max(self.pixels.len()), 0);
        for (part, slice) in batch.iter().enumerate() {
            for image in slice.images.clone() {
                let at = decoded.rows.len() * self.image_bytes;
                let out = &mut self.pixels[at..at + self.image_bytes];
                match slice.job.items[image].pixels_into(&mut self.preparer, out) {
                    Ok(()) => decoded.rows.push((part, image)),
                    Err(problem) => decoded.failed.push((part, image, problem)),
                }
            }
        }
        decoded
    }

    fn deliver(&self, batch: &[Slice], decoded: Decoded, assigned: Option<Assignments>) {
        let mut outcomes: Vec<Vec<(usize, Outcome)>> = batch.iter().map(|_| Vec::new()).collect();
        if let Some(assigned) = assigned {
            for (row, (part, image)) in decoded.rows.into_iter().enumerate() {
                let found = row_of(&assigned, row, batch[part].job.want_embedding);
                self.metrics.assigned(found.cluster, found.probabilities[found.cluster]);
                outcomes[part].push((image, Ok(found)));
            }
        }
        for (part, image, problem) in decoded.failed {
            self.metrics.image_failed(problem.code);
            outcomes[part].push((image, Err(problem)));
        }
        for (slice, outcomes) in batch.iter().zip(outcomes) {
            slice.job.deliver(outcomes);
        }
    }
}

fn row_of(assigned: &Assignments, row: usize, want_embedding: bool) -> Row {
    let probabilities = assigned.probabilities.row(row).to_vec();
    // The graph gives ids below k; the clamp only keeps a foreign graph from causing a panic.
    let cluster = usize::try_from(assigned.clusters[row]).unwrap_or(0).min(probabilities.len().saturating_sub(1));
    let embedding = want_embedding.then(|| assigned.embedding.row(row).to_vec());
    Row { cluster, probabilities, embedding }
}

fn count(batch: &[Slice]) -> usize {
    batch.iter().map(|slice| slice.images.len()).sum()
}
