//! Worker threads with a session each: tasks in, answers out in the same order.
//!
//! A task is one batch. Decoding and inference of a batch happen on the same worker, so that N workers keep N cores
//! busy with either. The number of tasks between [`Feeder::send`] and [`Results`] is bounded, which bounds the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use dtkc_image::{Fingerprint, Limits};
use dtkc_item::{ItemError, Items};

use crate::{Assignment, Assignments, InferError, ModelFile, Prepared, RawItem, Runtime, SessionOptions, Worker};

/// How a pool runs.
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// Worker threads.
    pub workers: usize,
    /// Tasks that may be waiting or finished but not yet taken, beside those being worked on.
    pub queue: usize,
    /// How each worker's session runs.
    pub session: SessionOptions,
    /// What an image may cost.
    pub limits: Limits,
    /// Whether the prepared items come back with the answers.
    pub keep_items: bool,
    /// Whether fingerprints of the images come with the answers.
    pub fingerprints: bool,
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
            keep_items: false,
            fingerprints: false,
        }
    }
}

/// A batch of items with a tag of the caller's that comes back with the answer.
#[derive(Debug)]
pub struct Task<T> {
    /// Whatever the caller needs to know the batch by.
    pub tag: T,
    /// The items.
    pub work: Work,
}

/// The items of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Items one by one, as they arrived.
    Raw(Vec<RawItem>),
    /// Decoded items of one shape. In the model's shape they go to the model as they are.
    Decoded(Items),
}

/// A [`Task`] that was worked on.
#[derive(Debug)]
pub struct Finished<T> {
    /// The task's tag.
    pub tag: T,
    /// The answers, or why the model could not be run at all.
    pub outcome: Result<Answers, InferError>,
}

/// The answers for a task's items.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// For each item of the task its row in `assignments`, or why it has none.
    pub rows: Vec<Result<usize, ItemError>>,
    /// The answers for the items that could be used, in order.
    pub assignments: Assignments,
    /// Those items as the model saw them, when the pool keeps them.
    pub items: Option<Items>,
    /// What they look like, when the pool takes fingerprints; empty otherwise.
    pub fingerprints: Vec<Fingerprint>,
    /// Width and height that images had before; empty for sequences.
    pub sizes: Vec<(usize, usize)>,
}

impl Answers {
    /// The answers in the order of the task's items.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Assignment, &ItemError>> + '_ {
        let missing =
            Assignment { cluster: 0, confidence: 0.0, second: 0, second_confidence: 0.0, margin: 0.0, outlier: None };
        self.rows.iter().map(move |row| match row {
            Ok(row) => Ok(self.assignments.get(*row).unwrap_or(missing)),
            Err(error) => Err(error),
        })
    }
}

/// The other end of a [`Pool`] is gone, so no more tasks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody waits for the results any more")]
pub struct Stopped;

/// Worker threads with a session each.
pub struct Pool<T> {
    feeder: Feeder<T>,
    results: Results<T>,
    threads: Threads,
}

/// A task that waits for a worker, and where its answer goes.
struct Waiting<T> {
    task: Task<T>,
    reply: Sender<Finished<T>>,
}

/// Where tasks go in. The workers end when it is dropped.
pub struct Feeder<T> {
    tasks: Sender<Waiting<T>>,
    order: Sender<Receiver<Finished<T>>>,
}

/// Where answers come out, in the order of the tasks. Ends after the last answer once the [`Feeder`] is dropped.
pub struct Results<T> {
    order: Receiver<Receiver<Finished<T>>>,
    /// Set when nobody wants the answers to the tasks that still wait.
    abandoned: Arc<AtomicBool>,
}

impl<T> Drop for Results<T> {
    fn drop(&mut self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

/// The threads themselves. Dropped, it waits until they have ended, which they do once the [`Feeder`] is dropped: a
/// program that ends while they run would pull ONNX Runtime away from under them.
pub struct Threads(Vec<JoinHandle<()>>);

impl Drop for Threads {
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
        let count = options.workers.max(1);
        let in_flight = count + options.queue.max(1);
        let (tasks, waiting) = bounded::<Waiting<T>>(in_flight);
        let (order, replies) = bounded(in_flight);
        let worker = |_| {
            let worker = Worker::new(runtime, model, &options.session, options.limits)?;
            Ok(if options.fingerprints { worker.with_fingerprints() } else { worker })
        };
        let workers = (0..count).map(worker).collect::<Result<Vec<_>, InferError>>()?;
        let mut threads = Threads(Vec::new());
        // After the threads: should one fail to start, the feeder goes first, and the others end.
        let feeder = Feeder { tasks, order };
        let results = Results { order: replies, abandoned: Arc::default() };
        for (number, worker) in workers.into_iter().enumerate() {
            let (waiting, abandoned, keep_items) = (waiting.clone(), results.abandoned.clone(), options.keep_items);
            let builder = std::thread::Builder::new().name(format!("dtkc-infer-{number}"));
            threads.0.push(builder.spawn(move || work(worker, keep_items, &waiting, &abandoned))?);
        }
        Ok(Self { feeder, results, threads })
    }

    /// The two ends, for a thread that feeds and one that collects, and the threads between them. The ends must be
    /// on different threads: a feeder waits until results are taken. The threads are to be dropped last.
    pub fn split(self) -> (Feeder<T>, Results<T>, Threads) {
        (self.feeder, self.results, self.threads)
    }

    /// Feeds `tasks` from a thread of their own and hands every answer to `each`, in order, on this one. Stops at the
    /// first error of `each`.
    pub fn run<E>(
        self,
        tasks: impl Iterator<Item = Task<T>> + Send,
        mut each: impl FnMut(Finished<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (feeder, results, _threads) = self.split();
        std::thread::scope(|scope| {
            scope.spawn(move || tasks.map(|task| feeder.send(task)).all(|sent| sent.is_ok()));
            // Dropping the results, at the end or at an error, is what stops the feeder.
            results.into_iter().try_for_each(&mut each)
        })
    }
}

impl<T> Feeder<T> {
    /// Hands in a task; waits while too many are under way.
    pub fn send(&self, task: Task<T>) -> Result<(), Stopped> {
        let (reply, finished) = bounded(1);
        self.order.send(finished).map_err(|_| Stopped)?;
        self.tasks.send(Waiting { task, reply }).map_err(|_| Stopped)
    }
}

impl<T> Iterator for Results<T> {
    type Item = Finished<T>;

    fn next(&mut self) -> Option<Finished<T>> {
        self.order.recv().ok()?.recv().ok()
    }
}

/// What a thread does until there is no more to do.
fn work<T>(mut worker: Worker, keep_items: bool, waiting: &Receiver<Waiting<T>>, abandoned: &AtomicBool) {
    let mut batch = Prepared::new(worker.shape());
    for Waiting { task: Task { tag, work }, reply } in waiting {
        if abandoned.load(Ordering::Relaxed) {
            continue;
        }
        let assigned = answer(&mut worker, work, &mut batch);
        let fingerprints = worker.take_fingerprints();
        let outcome = assigned.map(|assignments| Answers {
            rows: std::mem::take(&mut batch.rows),
            assignments,
            items: keep_items.then(|| std::mem::replace(&mut batch.items, Items::empty(worker.shape()))),
            fingerprints,
            sizes: std::mem::take(&mut batch.sizes),
        });
        // Nobody may be waiting any more; then the answer is not needed.
        let _ = reply.send(Finished { tag, outcome });
    }
}

fn answer(worker: &mut Worker, work: Work, batch: &mut Prepared) -> Result<Assignments, InferError> {
    match work {
        Work::Raw(items) => worker.prepare(&items, batch),
        Work::Decoded(items) => worker.prepare_items(items, batch)?,
    }
    worker.run(batch)
}
