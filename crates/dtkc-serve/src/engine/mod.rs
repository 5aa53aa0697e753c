//! The queue and the workers of one model.

mod queue;
mod request;
mod room;
mod upload;
mod worker;

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dtkc_image::Limits;
use dtkc_infer::{ModelFile, Runtime, SessionOptions, Worker};

pub use queue::{BATCH_BYTES, Queue, QueueLimits, Refused};
pub use request::{Answered, Outcome, Request, Row, Ticket};
pub use room::Room;
pub use upload::{Content, Upload};

use self::worker::QueueWorker;
use crate::intake::Held;
use crate::metrics::ModelMetrics;

/// How a model is run.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The queue and the number of workers.
    pub queue: QueueLimits,
    /// What one image may cost.
    pub images: Limits,
    /// Pixels that decoding the images of one request may go over.
    pub request_work: u64,
    /// Memory for decoding, shared with all other models.
    pub room: Arc<Room>,
    /// How a session is made.
    pub session: SessionOptions,
}

/// A model that is running: a bounded queue and worker threads that each own a session.
#[derive(Debug)]
pub struct Engine {
    queue: Arc<Queue>,
    request_work: u64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What a request gives the engine.
#[derive(Debug)]
pub struct Order {
    /// The images, at least one.
    pub uploads: Vec<Upload>,
    /// True where the answer needs the embeddings.
    pub want_embedding: bool,
    /// The memory the images hold.
    pub held: Held,
    /// When the client stops waiting.
    pub deadline: Instant,
    /// Who asks; clients take turns.
    pub client: u64,
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
        let engine = Self { queue: queue.clone(), request_work: options.request_work, threads: Mutex::default() };
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
        let (request, answer) = Request::new(order, self.request_work);
        match self.queue.push(&request, time_left) {
            Ok(()) => Ok(Ticket::new(self.queue.clone(), request, answer)),
            Err(refused) => Err((refused, reopen(request))),
        }
    }

    /// Images that wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Images that wait and for how long, where not even one more of that client fits.
    pub fn full(&self, client: u64) -> Option<(usize, Duration)> {
        self.queue.full(client)
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

/// Takes a request apart again. The queue refused it, so nobody else holds it.
fn reopen(request: Arc<Request>) -> Order {
    let (deadline, client) = (request.deadline(), request.client);
    let empty = || Order { uploads: Vec::new(), want_embedding: false, held: Held::default(), deadline, client };
    Arc::into_inner(request).map_or_else(empty, Request::into_order)
}

struct StartWorker {
    runtime: Runtime,
    model: ModelFile,
    options: EngineOptions,
    metrics: Arc<ModelMetrics>,
    queue: Arc<Queue>,
}

impl StartWorker {
    fn worker(self) -> Result<QueueWorker, String> {
        let worker = Worker::new(&self.runtime, &self.model, &self.options.session, self.options.images);
        let worker = worker.map_err(|error| error.to_string())?;
        let mut worker = QueueWorker::new(self.model.name(), self.queue, self.metrics, worker, self.options.room);
        worker.warm_up(1)?;
        worker.warm_up(self.options.queue.max_batch)?;
        Ok(worker)
    }
}
