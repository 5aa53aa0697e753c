//! Worker threads with a session each: jobs in, answers out in the same order.
//!
//! A job is one batch. Decoding and inference of a batch happen on the same worker, so that N workers keep N cores
//! busy with either. The number of jobs between [`Feeder::send`] and [`Results`] is bounded, which bounds the memory.

use dtkc_item::{Color, ImageSpec};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use dtkc_image::{Limits, Preparer};

use crate::source::{contained, prepare};
use crate::{Assignment, Assignments, InferError, ItemError, ModelFile, Runtime, Session, SessionOptions, Source};

/// How a pool runs.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// Worker threads.
    pub workers: usize,
    /// Jobs that may be waiting or finished but not yet taken, beside those being worked on.
    pub queue: usize,
    /// How each worker's session runs.
    pub session: SessionOptions,
    /// What an image may cost.
    pub limits: Limits,
    /// Whether the prepared pixels come back with the answers.
    pub keep_pixels: bool,
}

impl Default for PoolOptions {
    /// A worker per core.
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            workers,
            queue: 2 * workers,
            session: SessionOptions::default(),
            limits: Limits::default(),
            keep_pixels: false,
        }
    }
}

/// A batch of images with a tag of the caller's that comes back with the answer.
#[derive(Debug)]
pub struct Job<T> {
    /// Whatever the caller needs to know the batch by.
    pub tag: T,
    /// The images.
    pub work: Work,
}

/// The images of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Images one by one.
    Images(Vec<Source>),
    /// Decoded images of one size, one after the other. In the model's shape they go to the model as they are.
    Pixels {
        /// `count * height * width * channels` bytes.
        pixels: Vec<u8>,
        /// Images.
        count: usize,
        /// Rows of each.
        height: usize,
        /// Columns of each.
        width: usize,
        /// Gray or RGB.
        color: Color,
    },
}

/// The answer to a [`Job`].
#[derive(Debug)]
pub struct Done<T> {
    /// The job's tag.
    pub tag: T,
    /// The answers, or why the model could not be run at all.
    pub outcome: Result<Batch, InferError>,
}

/// The answers for a job's images.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// For each image of the job its row in `assignments`, or why it has none.
    pub rows: Vec<Result<usize, ItemError>>,
    /// The answers for the images that could be used, in order.
    pub assignments: Assignments,
    /// The prepared pixels of those images, when the pool keeps them.
    pub pixels: Option<Vec<u8>>,
}

impl Batch {
    /// The answers in the order of the job's images.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Assignment, &ItemError>> + '_ {
        let missing = Assignment { cluster: 0, confidence: 0.0, second: 0, second_confidence: 0.0, margin: 0.0 };
        self.rows.iter().map(move |row| match row {
            Ok(row) => Ok(self.assignments.get(*row).unwrap_or(missing)),
            Err(error) => Err(error),
        })
    }
}

/// The other end of a [`Pool`] is gone, so no more jobs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits for the results any more")]
pub struct Stopped;

/// Worker threads with a session each.
pub struct Pool<T> {
    feeder: Feeder<T>,
    results: Results<T>,
    workers: Workers,
}

struct Task<T> {
    job: Job<T>,
    reply: Sender<Done<T>>,
}

/// Where jobs go in. The workers end when it is dropped.
pub struct Feeder<T> {
    tasks: Sender<Task<T>>,
    order: Sender<Receiver<Done<T>>>,
}

/// Where answers come out, in the order of the jobs. Ends after the last answer once the [`Feeder`] is dropped.
pub struct Results<T> {
    order: Receiver<Receiver<Done<T>>>,
    /// Set when nobody wants the answers to the jobs that still wait.
    abandoned: Arc<AtomicBool>,
}

impl<T> Drop for Results<T> {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

/// The threads themselves. Dropped, it waits until they have ended, which they do once the [`Feeder`] is dropped: a
/// program that ends while they run would pull ONNX Runtime away from under them.
pub struct Workers(Vec<JoinHandle<()>>);

impl Drop for Workers {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // A worker contains its panics; one that ended by another way has ended, too.
            let _ = thread.join();
        }
    }
}

impl<T: Send + 'static> Pool<T> {
    /// Loads a session per worker and starts the workers.
    pub fn start(runtime: &Runtime, model: &ModelFile, options: &PoolOptions) -> Result<Self, InferError> {
        let workers = options.workers.max(1);
        let in_flight = workers + options.queue.max(1);
        let (tasks, waiting) = bounded::<Task<T>>(in_flight);
        let (order, replies) = bounded(in_flight);
        let sessions = (0..workers).map(|_| Worker::new(runtime, model, options)).collect::<Result<Vec<_>, _>>()?;
        let mut threads = Workers(Vec::new());
        // After the threads: should one fail to start, the feeder goes first, and the others end.
        let feeder = Feeder { tasks, order };
        let results = Results { order: replies, abandoned: Arc::default() };
        for (number, worker) in sessions.into_iter().enumerate() {
            let (waiting, abandoned) = (waiting.clone(), results.abandoned.clone());
            let builder = std::thread::Builder::new().name(format!("dtkc-infer-{number}"));
            threads.0.push(builder.spawn(move || worker.work(&waiting, &abandoned))?);
        }
        Ok(Self { feeder, results, workers: threads })
    }

    /// The two ends, for a thread that feeds and one that collects, and the threads between them. The ends must be
    /// on different threads: a feeder waits until results are taken. The threads are to be dropped last.
    pub fn split(self) -> (Feeder<T>, Results<T>, Workers) {
        (self.feeder, self.results, self.workers)
    }

    /// Feeds `jobs` from a thread of their own and hands every answer to `each`, in order, on this one. Stops at the
    /// first error of `each`.
    pub fn run<E>(
        self,
        jobs: impl Iterator<Item = Job<T>> + Send,
        mut each: impl FnMut(Done<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (feeder, results, _workers) = self.split();
        std::thread::scope(|scope| {
            scope.spawn(move || jobs.map(|job| feeder.send(job)).all(|sent| sent.is_ok()));
            // Dropping the results, at the end or at an error, is what stops the feeder.
            results.into_iter().try_for_each(&mut each)
        })
    }
}

impl<T> Feeder<T> {
    /// Hands in a job; waits while too many are under way.
    pub fn send(&self, job: Job<T>) -> Result<(), Stopped> {
        let (reply, done) = bounded(1);
        self.order.send(done).map_err(|_| Stopped)?;
        self.tasks.send(Task { job, reply }).map_err(|_| Stopped)
    }
}

impl<T> Iterator for Results<T> {
    type Item = Done<T>;

    fn next(&mut self) -> Option<Done<T>> {
        self.order.recv().ok()?.recv().ok()
    }
}

/// The pixels of the images that can be used, and each image's row among them.
struct Prepared {
    pixels: Vec<u8>,
    rows: Vec<Result<usize, ItemError>>,
}

struct Worker {
    session: Session,
    preparer: Preparer,
    shape: ImageSpec,
    limits: Limits,
    keep_pixels: bool,
}

impl Worker {
    fn new(runtime: &Runtime, model: &ModelFile, options: &PoolOptions) -> Result<Self, InferError> {
        Ok(Self {
            session: Session::new(runtime, model, &options.session)?,
            preparer: Preparer::new(model.shape(), options.limits),
            shape: model.shape(),
            limits: options.limits,
            keep_pixels: options.keep_pixels,
        })
    }

    fn work<T>(mut self, waiting: &Receiver<Task<T>>, abandoned: &AtomicBool) {
        for Task { job: Job { tag, work }, reply } in waiting {
            if abandoned.load(Ordering::Relaxed) {
                continue;
            }
            // A panic must not take the jobs behind it along.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.batch(work)))
                .unwrap_or_else(|_| Err(InferError::Run("it panicked".into())));
            // Nobody may be waiting any more; then the answer is not needed.
            let _ = reply.send(Done { tag, outcome });
        }
    }

    fn batch(&mut self, work: Work) -> Result<Batch, InferError> {
        let Prepared { pixels, rows } = self.prepare(work)?;
        let good = rows.iter().flatten().count();
        let assignments = self.session.run(&pixels, good)?;
        Ok(Batch { rows, assignments, pixels: self.keep_pixels.then_some(pixels) })
    }

    fn prepare(&mut self, work: Work) -> Result<Prepared, InferError> {
        let shape = self.shape;
        match work {
            Work::Images(images) => {
                let limits = self.limits;
                Ok(self.each(images.len(), |preparer, image, out| prepare(preparer, &images[image], &limits, out)))
            }
            Work::Pixels { pixels, count, height, width, color } => {
                let each = height * width * color.channels();
                if count.checked_mul(each) != Some(pixels.len()) {
                    return Err(InferError::Pixels { count, each, found: pixels.len() });
                }
                if (height, width, color) == (shape.height, shape.width, shape.color) {
                    return Ok(Prepared { pixels, rows: (0..count).map(Ok).collect() });
                }
                let limits = self.limits;
                Ok(self.each(count, |preparer, image, out| {
                    let source = &pixels[image * each..(image + 1) * each];
                    contained(preparer, &limits, |preparer| {
                        Ok(preparer.resize_pixels(source, height, width, color, out)?)
                    })
                }))
            }
        }
    }

    fn each(
        &mut self,
        count: usize,
        mut one: impl FnMut(&mut Preparer, usize, &mut [u8]) -> Result<(), ItemError>,
    ) -> Prepared {
        let bytes = self.shape.bytes();
        let mut pixels = vec![0; count * bytes];
        let mut good = 0;
        let mut rows = Vec::with_capacity(count);
        for image in 0..count {
            let out = &mut pixels[good * bytes..(good + 1) * bytes];
            rows.push(one(&mut self.preparer, image, out).map(|()| {
                good += 1;
                good - 1
            }));
        }
        pixels.truncate(good * bytes);
        Prepared { pixels, rows }
    }
}
