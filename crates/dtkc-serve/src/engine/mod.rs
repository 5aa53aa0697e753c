//! The queue and the workers of one model.

mod item;
mod job;
mod queue;
mod worker;

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dtkc_image::{Limits, Preparer};
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};

pub use item::{ImageProblem, Item, Source};
pub use job::{Done, Job, Outcome, Row, Ticket};
pub use queue::{Queue, QueueLimits, Refused};

use self::worker::Worker;
use crate::intake::Held;
use crate::metrics::ModelMetrics;

/// How a model is run.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The queue and the number of workers.
    pub queue: QueueLimits,
    /// What one image may cost.
    pub images: Limits,
    /// How a session is made.
    pub session: SessionOptions,
}

/// A model that is running: a bounded queue and worker threads that each own a session.
#[derive(Debug)]
pub struct Engine {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What a request gives the engine.
#[derive(Debug)]
pub struct Order {
    /// The images, at least one.
    pub items: Vec<Item>,
    /// True where the answer needs the embeddings.
    pub want_embedding: bool,
    /// The memory the images hold.
    pub held: Held,
    /// When the client stops waiting.
    pub deadline: Instant,
}

impl Engine {
    /// Starts the workers and returns once each has run a warm-up inference. One that cannot start ends all.
    pub fn start(
        runtime: &Runtime,
        model: &ModelFile,
        options: &EngineOptions,
        metrics: &Arc<ModelMetrics>,
    ) -> Result<Self, String> {
        let queue = Arc::new(Queue::new(options.queue));
        let workers = options.queue.workers;
        let (report, reports) = mpsc::sync_channel(workers);
        let engine = Self { queue: queue.clone(), threads: Mutex::default() };
        for number in 0..workers {
            let start = StartWorker {
                runtime: runtime.clone(),
                model: model.clone(),
                options: options.clone(),
                metrics: metrics.clone(),
                queue: queue.clone(),
            };
            let report = report.clone();
            let thread = std::thread::Builder::new().name(format!("infer-{number}")).spawn(move || {
                let started = start.worker();
                let (worker, result) = match started {
                    Ok(worker) => (Some(worker), Ok(())),
                    Err(reason) => (None, Err(reason)),
                };
                let _ = report.send(result);
                if let Some(worker) = worker {
                    worker.run();
                }
            });
            let thread = thread.map_err(|error| format!("a worker thread cannot be started: {error}"))?;
            engine.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        drop(report);
        for _ in 0..workers {
            // Dropping the engine closes the queue, which ends the workers that did start.
            reports.recv().map_err(|_| "a worker ended while it was starting".to_owned())??;
        }
        Ok(engine)
    }

    /// Puts images into the queue. The order comes back where the queue did not accept it.
    pub fn submit(&self, order: Order) -> Result<Ticket, (Refused, Order)> {
        let time_left = order.deadline.saturating_duration_since(Instant::now());
        let deadline = order.deadline;
        let (job, answer) = Job::new(order.items, order.want_embedding, order.held);
        match self.queue.push(&job, time_left) {
            Ok(()) => Ok(Ticket::new(self.queue.clone(), job, answer, deadline)),
            Err(refused) => Err((refused, reopen(job, deadline))),
        }
    }

    /// Images that wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Images that wait and for how long, where not even one more fits.
    pub fn full(&self) -> Option<(usize, Duration)> {
        self.queue.full()
    }

    /// Accepts nothing more; what is queued is still answered.
    pub fn close(&self) {
        self.queue.close();
    }

    /// Waits until the workers of a closed engine have ended, at most until `deadline`; false where they have not.
    pub fn join(&self, deadline: Instant) -> bool {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.iter().any(|t| !t.is_finished()) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        threads.drain(..).all(|t| t.join().is_ok())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Takes a job apart again. The queue refused it, so nobody else holds it.
fn reopen(job: Arc<Job>, deadline: Instant) -> Order {
    let (items, want_embedding, held) = Arc::into_inner(job).map(Job::into_parts).unwrap_or_default();
    Order { items, want_embedding, held, deadline }
}

struct StartWorker {
    runtime: Runtime,
    model: ModelFile,
    options: EngineOptions,
    metrics: Arc<ModelMetrics>,
    queue: Arc<Queue>,
}

impl StartWorker {
    fn worker(self) -> Result<Worker, String> {
        let session = Session::new(&self.runtime, &self.model, &self.options.session).map_err(|e| e.to_string())?;
        let preparer = Preparer::new(self.model.shape(), self.options.images);
        let mut worker = Worker::new(self.queue, self.metrics, session, preparer);
        worker.warm_up(1)?;
        worker.warm_up(self.options.queue.max_batch)?;
        Ok(worker)
    }
}
