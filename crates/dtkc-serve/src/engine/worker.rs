//! A worker of the queue: takes a batch, has it made ready and run, hands the rows out.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dtkc_image::{Cost, Preparer};
use dtkc_infer::{Assignments, Prepare, Prepared, SequenceSpec, Worker};
use dtkc_item::{ItemError, ItemShape, Items};

use super::queue::{Place, Queue, Slice};
use super::request::{Outcome, Request, Row};
use super::room::{Room, Taken};
use super::upload::Upload;
use crate::metrics::ModelMetrics;

/// A batch ends before the image whose decoding would make it go over more pixels than this, and that image begins
/// another. Nobody's small image waits in one batch with somebody's large one.
const BATCH_WORK: u64 = 4 << 20;
/// A worker whose next image finds no memory looks after so long whether there is something smaller to do.
const NO_ROOM: Duration = Duration::from_millis(5);

/// Steps of the sequences that a worker warms up with.
const WARM_STEPS: usize = 32;
/// A step of a sequence takes a worker as long as so many pixels of an image's decoding.
const STEP_WORK: u64 = 64;

/// What one thread of the queue owns.
pub struct QueueWorker {
    model: String,
    queue: Arc<Queue>,
    metrics: Arc<ModelMetrics>,
    worker: Worker,
    /// The batch under way; its memory is used again.
    batch: Prepared,
    /// For each row of it the slice and the image that it belongs to.
    places: Vec<(usize, usize)>,
    room: Arc<Room>,
}

impl QueueWorker {
    /// A worker for the queue of the model of that name.
    pub fn new(model: &str, queue: Arc<Queue>, metrics: Arc<ModelMetrics>, worker: Worker, room: Arc<Room>) -> Self {
        let (batch, places) = (Prepared::new(worker.shape()), Vec::new());
        Self { model: model.to_owned(), queue, metrics, worker, batch, places, room }
    }

    /// Runs one inference on black images, or on sequences of zeros, so that the first request does not pay for what the
    /// runtime does only once.
    pub fn warm_up(&mut self, count: usize) -> Result<(), String> {
        let items = match self.worker.shape() {
            ItemShape::Image(shape) => Items::Images { shape, pixels: vec![0; count * shape.len()] },
            ItemShape::Sequence { dim } => Items::Sequences {
                dim,
                values: vec![0.0; count * WARM_STEPS * dim],
                offsets: (0..=count).map(|place| place * WARM_STEPS).collect(),
            },
            // No model file takes features.
            other @ ItemShape::Features(_) => Items::empty(other),
        };
        let zeros = Prepared { items, rows: (0..count).map(Ok).collect(), sizes: Vec::new() };
        let started = Instant::now();
        self.worker.run(&zeros).map_err(|error| error.to_string())?;
        self.queue.note_speed(count, started.elapsed());
        Ok(())
    }

    /// Works until the queue is closed and empty.
    pub fn run(mut self) {
        while let Some(batch) = self.queue.take() {
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
        let (work, stopped) = self.fill(slices);
        if let Some((slice, image)) = stopped {
            self.put_off(&slices[slice..], image);
        }
        if self.places.is_empty() {
            return Ok(());
        }
        let decoding = started.elapsed();
        let assigned = self.worker.run(&self.batch).map_err(|error| error.to_string())?;
        let total = started.elapsed();
        // What a few huge images take says nothing about the next ones.
        if work <= BATCH_WORK {
            self.queue.note_speed(self.places.len(), total);
        }
        self.metrics.batch(assigned.len(), decoding, total - decoding);
        self.deliver(slices, &assigned);
        Ok(())
    }

    /// Gives back what a batch has no room for: these slices, the first of them from `image` on.
    fn put_off(&self, slices: &[Slice], image: usize) {
        let slice = |slice: &Slice, start| Slice { request: slice.request.clone(), images: start..slice.images.end };
        let (first, others) = (&slices[0], slices[1..].iter().map(|other| slice(other, other.images.start)));
        let first = std::iter::once(slice(first, image));
        if self.places.is_empty() {
            // What begins no batch for want of memory must not stand before what needs none.
            self.queue.give_back(first, Place::Back);
            self.queue.give_back(others, Place::Front);
            self.room.wait(NO_ROOM);
        } else {
            self.queue.give_back(first.chain(others), Place::Front);
        }
    }

    /// Makes images ready until their decoding has gone over enough pixels; tells over how many, and the slice and the
    /// image where it stopped. Images that nobody waits for any more are passed over.
    fn fill(&mut self, slices: &[Slice]) -> (u64, Option<(usize, usize)>) {
        self.batch.clear();
        self.places.clear();
        let mut work = 0;
        for (number, slice) in slices.iter().enumerate() {
            for image in slice.images.clone() {
                if slice.request.is_over() {
                    break;
                }
                let room = if self.places.is_empty() { u64::MAX } else { BATCH_WORK.saturating_sub(work) };
                let job = Job::new(&slice.request, image, room, &self.room);
                self.worker.add(&job, &mut self.batch);
                if job.later.get() {
                    self.batch.rows.pop();
                    return (work, Some((number, image)));
                }
                slice.request.mark_started();
                self.places.push((number, image));
                work += job.work.get();
            }
        }
        (work, None)
    }

    fn deliver(&mut self, slices: &[Slice], assigned: &Assignments) {
        let mut rows = self.batch.rows.drain(..).zip(self.places.drain(..)).peekable();
        for (number, slice) in slices.iter().enumerate() {
            let mut outcomes = Vec::new();
            while let Some((row, (_, image))) = rows.next_if(|(_, (of, _))| *of == number) {
                let found: Outcome = row.map(|row| row_of(assigned, row, slice.request.want_embedding));
                match &found {
                    Ok(row) => self.metrics.assigned(row.cluster, row.probabilities[row.cluster]),
                    Err(error) => self.metrics.image_failed(&error.code),
                }
                outcomes.push((image, found));
            }
            slice.request.deliver(outcomes);
        }
    }
}

/// One image to be made ready, as part of its request and of a batch.
struct Job<'a> {
    request: &'a Request,
    upload: &'a Upload,
    /// Pixels that the batch has room for.
    pixels: u64,
    /// Where memory for decoding comes from, and what was taken of it.
    room: &'a Arc<Room>,
    taken: RefCell<Option<Taken>>,
    /// Over how many pixels its decoding goes.
    work: Cell<u64>,
    /// True where it does not fit the batch any more, or the memory. Nothing was done then.
    later: Cell<bool>,
}

impl<'a> Job<'a> {
    fn new(request: &'a Request, image: usize, pixels: u64, room: &'a Arc<Room>) -> Self {
        let upload = &request.uploads[image];
        let (taken, work, later) = (RefCell::new(None), Cell::new(0), Cell::new(false));
        Self { request, upload, pixels, room, taken, work, later }
    }
}

impl Prepare for Job<'_> {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        self.upload.prepare(preparer, out, |Cost { work, memory }| {
            let taken = if work > self.pixels { None } else { self.room.take(memory) };
            if taken.is_none() {
                self.later.set(true);
                return Err(ItemError::new("later", "the image waits for another batch"));
            }
            // Given back with the job, when the image is decoded and made small.
            self.taken.replace(taken);
            self.work.set(work);
            self.request.spend(work)
        })
    }

    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError> {
        let (dim, values) = self.upload.sequence()?;
        spec.check(dim, values)?;
        let work = (values.len() / dim) as u64 * STEP_WORK;
        if work > self.pixels {
            self.later.set(true);
            return Err(ItemError::new("later", "the sequence waits for another batch"));
        }
        self.work.set(work);
        self.request.spend(work)?;
        out.extend_from_slice(values);
        Ok(())
    }
}

fn row_of(assigned: &Assignments, row: usize, want_embedding: bool) -> Row {
    let probabilities = assigned.probabilities.row(row).to_vec();
    // The graph gives ids below k; the clamp only keeps a foreign graph from causing a panic.
    let cluster = usize::try_from(assigned.clusters[row]).unwrap_or(0).min(probabilities.len().saturating_sub(1));
    let embedding = want_embedding.then(|| assigned.embedding.row(row).to_vec());
    Row { cluster, probabilities, embedding, outlier: assigned.outliers.get(row).copied() }
}

fn count(batch: &[Slice]) -> usize {
    batch.iter().map(|slice| slice.images.len()).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_image::Limits;
    use dtkc_infer::{ModelFile, Runtime, SessionOptions};
    use dtkc_onnx::testing::Sample;

    use super::super::Order;
    use super::super::queue::QueueLimits;
    use super::super::request::Answered;
    use super::super::upload::Content;
    use super::*;
    use crate::intake::Held;
    use crate::metrics::Metrics;

    fn worker(queue: &Arc<Queue>, sample: &Sample) -> QueueWorker {
        worker_in(Room::new(1 << 30), queue, sample)
    }

    fn worker_in(room: Arc<Room>, queue: &Arc<Queue>, sample: &Sample) -> QueueWorker {
        let bytes = dtkc_onnx::write(&sample.network(), &sample.metadata()).unwrap();
        let model = ModelFile::from_bytes("sample", bytes).unwrap();
        let metrics = Arc::new(Metrics::new().unwrap().model("sample", model.clusters()));
        let runtime = Runtime::find(None).unwrap();
        let worker = Worker::new(&runtime, &model, &SessionOptions::default(), Limits::default()).unwrap();
        QueueWorker::new(model.name(), queue.clone(), metrics, worker, room)
    }

    type Answer = tokio::sync::oneshot::Receiver<Result<Answered, String>>;

    fn request(uploads: Vec<Upload>, work: u64) -> (Arc<Request>, Answer) {
        let deadline = Instant::now() + Duration::from_secs(3600);
        Request::new(Order { uploads, want_embedding: false, held: Held::default(), deadline, client: 1 }, work)
    }

    fn queue_of(max_batch: usize) -> Arc<Queue> {
        Arc::new(Queue::new(QueueLimits { capacity: 100, max_batch, max_wait: Duration::ZERO, workers: 1 }))
    }

    /// A flat gray image of that size: a few bytes for as many pixels as one likes.
    fn gray(side: u32) -> Upload {
        let bytes = dtkc_testing::files::gray_png(side, side, 7);
        Upload { name: String::new(), content: Content::Encoded(bytes.into()) }
    }

    fn code(outcome: &Outcome) -> String {
        outcome.as_ref().map_or_else(|error| error.code.to_string(), |_| "good".to_owned())
    }

    #[test]
    fn a_large_image_begins_a_batch_of_its_own() {
        let sample = Sample::small();
        let queue = queue_of(32);
        let (request, mut answer) = request(vec![gray(8), gray(8), gray(3000), gray(8), gray(8)], u64::MAX);
        queue.push(&request, Duration::from_secs(600)).unwrap();
        let mut worker = worker(&queue, &sample);
        let mut sizes = Vec::new();
        while queue.len() > 0 {
            let taken = queue.take().unwrap();
            worker.process(&taken).unwrap();
            sizes.push(taken.iter().map(|slice| slice.images.len()).sum::<usize>());
        }
        // Taken as one batch; the large one stopped it, and then stopped nothing but what came behind it.
        assert_eq!(sizes, [5, 3, 2]);
        assert_eq!(answer.try_recv().unwrap().unwrap().outcomes.iter().map(code).collect::<Vec<_>>(), ["good"; 5]);
    }

    /// As many workers as there are decoded as many images of 64 million pixels at once.
    #[test]
    fn a_large_image_waits_for_memory_and_small_ones_do_not_wait_for_it() {
        let room = Room::new(16 << 20);
        let queue = queue_of(32);
        let (first, mut answer) = request(vec![gray(8), gray(3000), gray(8)], u64::MAX);
        let (second, mut second_answer) = request(vec![gray(8)], u64::MAX);
        for request in [&first, &second] {
            queue.push(request, Duration::from_secs(600)).unwrap();
        }
        let mut worker = worker_in(room.clone(), &queue, &Sample::small());
        let others = room.take(16 << 20).unwrap();
        let mut turn = || {
            let taken = queue.take().unwrap();
            worker.process(&taken).unwrap();
            queue.len()
        };
        assert_eq!([turn(), turn(), turn(), turn()], [3, 3, 2, 2], "the large one waits, behind the other request");
        assert!(second_answer.try_recv().is_ok());
        drop(others);
        assert_eq!([turn(), turn()], [1, 0]);
        assert_eq!(answer.try_recv().unwrap().unwrap().outcomes.iter().map(code).collect::<Vec<_>>(), ["good"; 3]);
        assert!(room.take(16 << 20).is_some(), "all memory was given back");
    }

    #[test]
    fn the_images_of_a_request_may_cost_so_much_together() {
        let queue = queue_of(32);
        let (request, mut answer) = request(vec![gray(100), gray(10), gray(100), gray(10)], 15_000);
        queue.push(&request, Duration::from_secs(600)).unwrap();
        queue.close();
        worker(&queue, &Sample::small()).run();
        let codes: Vec<String> = answer.try_recv().unwrap().unwrap().outcomes.iter().map(code).collect();
        assert_eq!(codes, ["good", "good", "too_costly", "good"]);
    }

    /// A client that was told 504, or has left, had the rest of its batch decoded all the same.
    #[test]
    fn work_for_a_client_that_has_gone_stops_between_two_images() {
        let queue = queue_of(32);
        let (gone, answer) = request(vec![gray(8), gray(8), gray(8)], 1000);
        let (other, mut other_answer) = request(vec![gray(8)], 1000);
        for request in [&gone, &other] {
            queue.push(request, Duration::from_secs(600)).unwrap();
        }
        let taken = queue.take().unwrap();
        drop(answer);
        worker(&queue, &Sample::small()).process(&taken).unwrap();
        assert!(gone.spend(1000).is_ok(), "nothing of it was decoded");
        assert_eq!(other_answer.try_recv().unwrap().unwrap().outcomes.len(), 1);
    }

    #[test]
    fn a_panic_costs_one_image_and_neither_its_neighbours_nor_other_clients() {
        let sample = Sample::small();
        let pixels = sample.images(1);
        let good = || Content::Pixels(pixels.clone().into());
        let queue = queue_of(32);
        let requests = [vec![good(), Content::Fatal, good()], vec![good()], vec![Content::Fatal], vec![good(), good()]];
        // All of them wait before the worker comes, so that they share one batch.
        let answers = requests.map(|contents| {
            let uploads = contents.into_iter().map(|content| Upload { name: String::new(), content }).collect();
            let (request, answer) = request(uploads, u64::MAX);
            queue.push(&request, Duration::from_secs(600)).unwrap();
            answer
        });
        queue.close();
        worker(&queue, &sample).run();
        let codes = answers
            .map(|mut answer| answer.try_recv().unwrap().unwrap().outcomes.iter().map(code).collect::<Vec<String>>());
        assert_eq!(codes, [vec!["good", "panicked", "good"], vec!["good"], vec!["panicked"], vec!["good"; 2]]);
    }
}
