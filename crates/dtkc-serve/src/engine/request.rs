//! One request in the queue: its images, what is known of them so far, and who waits for the answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dtkc_item::ItemError;
use tokio::sync::oneshot;

use super::Order;
use super::queue::Queue;
use super::upload::Upload;
use crate::intake::Held;

/// What a worker found for one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The cluster with the highest probability.
    pub cluster: usize,
    /// The probability of every cluster.
    pub probabilities: Vec<f32>,
    /// The embedding, where the request wants it.
    pub embedding: Option<Vec<f32>>,
    /// How far it is from everything in the training set, where the model tells.
    pub outlier: Option<f32>,
}

/// The end of one image: a row, or a problem of its own.
pub type Outcome = Result<Row, ItemError>;

/// What a whole request is answered with.
#[derive(Debug)]
pub struct Answered {
    /// One outcome per image, in order.
    pub outcomes: Vec<Outcome>,
    /// From the queue's door until the first image was taken.
    pub queued: Duration,
    /// From then until the last image was done.
    pub worked: Duration,
}

/// The work of one request, shared by the queue, the workers and the waiting handler.
#[derive(Debug)]
pub struct Request {
    /// The images.
    pub uploads: Vec<Upload>,
    /// True where the answer needs the embeddings.
    pub want_embedding: bool,
    /// Whose request it is.
    pub client: u64,
    /// When its client stops waiting.
    deadline: Instant,
    /// Pixels that decoding its images may still go over.
    work_left: AtomicU64,
    entered: Instant,
    progress: Mutex<Progress>,
    /// Gives the request's memory back when it ends, however it ends.
    held: Held,
}

#[derive(Debug)]
struct Progress {
    outcomes: Vec<Option<Outcome>>,
    left: usize,
    started: Option<Instant>,
    reply: Option<oneshot::Sender<Result<Answered, String>>>,
}

impl Request {
    /// A request for the queue and the receiver of its end. There is at least one image; decoding all of them may go
    /// over `work` pixels.
    pub fn new(order: Order, work: u64) -> (Arc<Self>, oneshot::Receiver<Result<Answered, String>>) {
        let Order { uploads, want_embedding, held, deadline, client } = order;
        let (reply, answer) = oneshot::channel();
        let outcomes = uploads.iter().map(|_| None).collect();
        let progress = Mutex::new(Progress { outcomes, left: uploads.len(), started: None, reply: Some(reply) });
        let (entered, work_left) = (Instant::now(), AtomicU64::new(work));
        (Arc::new(Self { uploads, want_embedding, client, deadline, work_left, entered, progress, held }), answer)
    }

    /// When its client stops waiting.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Books the decoding of one image; refuses what all images together may not cost.
    pub fn spend(&self, work: u64) -> Result<(), ItemError> {
        let spent = self.work_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(work));
        let refused = |_| {
            let remedy = "send it in a request of its own, or smaller";
            let sentence = format_args!("decoding it and the request's other images would take too long; {remedy}");
            ItemError::new("too_costly", sentence)
        };
        spent.map(drop).map_err(refused)
    }

    /// A worker has taken images of this request.
    pub fn mark_started(&self) {
        self.lock().started.get_or_insert_with(Instant::now);
    }

    /// True when nobody waits for the answer any more: the client has gone, was answered, or will be told in a moment
    /// that it took too long.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.deadline || self.lock().reply.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Notes outcomes by image; the last one sends the answer.
    pub fn deliver(&self, outcomes: impl IntoIterator<Item = (usize, Outcome)>) {
        let mut progress = self.lock();
        for (index, outcome) in outcomes {
            if progress.outcomes[index].replace(outcome).is_none() {
                progress.left -= 1;
            }
        }
        if progress.left > 0 {
            return;
        }
        let started = progress.started.unwrap_or(self.entered);
        let answered = Answered {
            outcomes: progress.outcomes.drain(..).flatten().collect(),
            queued: started - self.entered,
            worked: started.elapsed(),
        };
        if let Some(reply) = progress.reply.take() {
            // A client that has gone does not mind.
            let _ = reply.send(Ok(answered));
        }
    }

    /// Ends the whole request with a failure that is not about one image.
    pub fn fail(&self, reason: &str) {
        if let Some(reply) = self.lock().reply.take() {
            let _ = reply.send(Err(reason.to_owned()));
        }
    }

    /// What the request was made of.
    pub fn into_order(self) -> Order {
        let Self { uploads, want_embedding, client, deadline, held, .. } = self;
        Order { uploads, want_embedding, held, deadline, client }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        // A panic while the lock was held leaves at worst a missing outcome, which `fail` reports.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handler's hold on its request. Dropping it (the client has gone, or the deadline has passed) takes what is
/// left of the request out of the queue.
#[derive(Debug)]
pub struct Ticket {
    queue: Arc<Queue>,
    request: Arc<Request>,
    answer: oneshot::Receiver<Result<Answered, String>>,
}

impl Ticket {
    /// The hold on a request that has just been put into `queue`.
    pub fn new(queue: Arc<Queue>, request: Arc<Request>, answer: oneshot::Receiver<Result<Answered, String>>) -> Self {
        Self { queue, request, answer }
    }

    /// When its client stops waiting.
    pub fn deadline(&self) -> Instant {
        self.request.deadline
    }

    /// Waits for the answer; `Err` where the request failed as a whole.
    pub async fn wait(&mut self) -> Result<Answered, String> {
        (&mut self.answer).await.unwrap_or_else(|_| Err("the worker ended before the answer was ready".into()))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.answer.close();
        self.queue.forget(&self.request);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::upload::Content;

    fn request(images: usize) -> (Arc<Request>, oneshot::Receiver<Result<Answered, String>>) {
        let upload = |i: usize| Upload { name: i.to_string(), content: Content::Encoded(Default::default()) };
        let uploads = (0..images).map(upload).collect();
        let deadline = Instant::now() + Duration::from_secs(3600);
        Request::new(Order { uploads, want_embedding: false, held: Held::default(), deadline, client: 1 }, 100)
    }

    #[test]
    fn all_images_together_may_cost_so_much() {
        let (request, _answer) = request(3);
        assert!(request.spend(60).is_ok());
        assert_eq!(request.spend(41).unwrap_err().code, "too_costly");
        assert!(request.spend(40).is_ok());
        assert_eq!(request.spend(1).unwrap_err().code, "too_costly");
    }

    #[test]
    fn a_request_is_over_at_its_deadline() {
        let (request, _answer) = request(1);
        let late = Order { deadline: Instant::now(), ..Arc::into_inner(request).unwrap().into_order() };
        assert!(Request::new(late, 100).0.is_over());
    }

    fn row(cluster: usize) -> Outcome {
        Ok(Row { cluster, probabilities: vec![1.0], embedding: None, outlier: None })
    }

    #[test]
    fn parts_are_put_together_in_order() {
        let (request, mut answer) = request(3);
        request.mark_started();
        request.deliver([(2, row(2)), (0, row(0))]);
        assert!(answer.try_recv().is_err(), "one image is missing");
        request.deliver([(1, row(1))]);
        let answered = answer.try_recv().unwrap().unwrap();
        let clusters: Vec<usize> = answered.outcomes.iter().map(|o| o.as_ref().unwrap().cluster).collect();
        assert_eq!(clusters, [0, 1, 2]);
    }

    #[test]
    fn a_dropped_receiver_means_gone() {
        let (request, answer) = request(1);
        assert!(!request.is_over());
        drop(answer);
        assert!(request.is_over());
    }

    #[test]
    fn a_failure_ends_the_request_once() {
        let (request, mut answer) = request(2);
        request.fail("broken");
        request.deliver([(0, row(0)), (1, row(1))]);
        assert_eq!(answer.try_recv().unwrap().unwrap_err(), "broken");
    }
}
