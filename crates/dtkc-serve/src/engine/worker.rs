//! A worker of the queue: takes a batch, has it made ready and run, hands the rows out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use dtkc_infer::{Assignments, Prepared, Worker};
use dtkc_item::ItemError;

use super::queue::{Queue, Slice};
use super::request::{Outcome, Row};
use crate::metrics::ModelMetrics;

/// What one thread of the queue owns.
pub struct QueueWorker {
    model: String,
    queue: Arc<Queue>,
    metrics: Arc<ModelMetrics>,
    worker: Worker,
    /// The batch under way; its memory is used again.
    batch: Prepared,
}

impl QueueWorker {
    /// A worker for the queue of the model of that name.
    pub fn new(model: &str, queue: Arc<Queue>, metrics: Arc<ModelMetrics>, worker: Worker) -> Self {
        Self { model: model.to_owned(), queue, metrics, worker, batch: Prepared::default() }
    }

    /// Runs one inference on black images, so that the first request does not pay for what the runtime does
    /// only once.
    pub fn warm_up(&mut self, images: usize, image_bytes: usize) -> Result<(), String> {
        let black = Prepared { pixels: vec![0; images * image_bytes], rows: (0..images).map(Ok).collect() };
        let started = Instant::now();
        self.worker.run(&black).map_err(|error| error.to_string())?;
        self.queue.note_speed(images, started.elapsed());
        Ok(())
    }

    /// Works until the queue is closed and empty.
    pub fn run(mut self) {
        while let Some(batch) = self.queue.take() {
            let batch: Vec<Slice> = batch.into_iter().filter(|slice| !slice.request.is_gone()).collect();
            for slice in &batch {
                slice.request.mark_started();
            }
            // Items and the runtime have their panics contained; one that escapes must not cost a worker.
            let result = catch_unwind(AssertUnwindSafe(|| self.process(&batch)));
            let reason = match result {
                Ok(Ok(())) => continue,
                Ok(Err(reason)) => reason,
                Err(_) => format!("{}: the worker panicked", self.model),
            };
            tracing::error!(reason, images = count(&batch), "a batch failed");
            for slice in &batch {
                slice.request.fail(&reason);
            }
        }
    }

    fn process(&mut self, slices: &[Slice]) -> Result<(), String> {
        let started = Instant::now();
        let uploads = slices.iter().flat_map(|slice| &slice.request.uploads[slice.images.clone()]);
        self.worker.prepare(uploads, &mut self.batch);
        let decoding = started.elapsed();
        let assigned = self.worker.run(&self.batch).map_err(|error| error.to_string())?;
        let total = started.elapsed();
        self.queue.note_speed(count(slices), total);
        self.metrics.batch(assigned.len(), decoding, total - decoding);
        self.deliver(slices, &assigned);
        Ok(())
    }

    fn deliver(&mut self, slices: &[Slice], assigned: &Assignments) {
        let mut rows = self.batch.rows.drain(..);
        for slice in slices {
            let outcome = |(image, row): (usize, Result<usize, ItemError>)| {
                let found: Outcome = row.map(|row| row_of(assigned, row, slice.request.want_embedding));
                match &found {
                    Ok(row) => self.metrics.assigned(row.cluster, row.probabilities[row.cluster]),
                    Err(error) => self.metrics.image_failed(&error.code),
                }
                (image, found)
            };
            let outcomes: Vec<_> = slice.images.clone().zip(rows.by_ref()).map(outcome).collect();
            slice.request.deliver(outcomes);
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use dtkc_image::Limits;
    use dtkc_infer::{ModelFile, Runtime, SessionOptions};
    use dtkc_onnx::testing::Sample;

    use super::super::queue::QueueLimits;
    use super::super::request::Request;
    use super::super::upload::{Content, Upload};
    use super::*;
    use crate::intake::Held;
    use crate::metrics::Metrics;

    fn worker(queue: &Arc<Queue>, sample: &Sample) -> QueueWorker {
        let bytes = dtkc_onnx::write(&sample.network(), &sample.metadata()).unwrap();
        let model = ModelFile::from_bytes("sample", bytes).unwrap();
        let metrics = Arc::new(Metrics::new().unwrap().model("sample", model.clusters()));
        let runtime = Runtime::find(None).unwrap();
        let worker = Worker::new(&runtime, &model, &SessionOptions::default(), Limits::default()).unwrap();
        QueueWorker::new(model.name(), queue.clone(), metrics, worker)
    }

    #[test]
    fn a_panic_costs_one_image_and_neither_its_neighbours_nor_other_clients() {
        let sample = Sample::small();
        let pixels = sample.images(1);
        let good = || Content::Pixels(pixels.clone().into());
        let limits = QueueLimits { capacity: 100, max_batch: 32, max_wait: Duration::ZERO, workers: 1 };
        let queue = Arc::new(Queue::new(limits));
        let requests = [vec![good(), Content::Fatal, good()], vec![good()], vec![Content::Fatal], vec![good(), good()]];
        // All of them wait before the worker comes, so that they share one batch.
        let answers = requests.map(|contents| {
            let uploads = contents.into_iter().map(|content| Upload { name: String::new(), content }).collect();
            let (request, answer) = Request::new(uploads, false, Held::default());
            queue.push(&request, Duration::from_secs(600)).unwrap();
            answer
        });
        queue.close();
        worker(&queue, &sample).run();
        let code = |outcome: &Outcome| outcome.as_ref().map_or_else(|e| e.code.to_string(), |_| "good".to_owned());
        let codes = answers
            .map(|mut answer| answer.try_recv().unwrap().unwrap().outcomes.iter().map(code).collect::<Vec<String>>());
        assert_eq!(codes, [vec!["good", "panicked", "good"], vec!["good"], vec!["panicked"], vec!["good"; 2]]);
    }
}
