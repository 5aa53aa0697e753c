//! The bounded queue between requests and workers. It counts images, not requests.
//!
//! There is no timer: a free worker takes what is there, and while its batch runs the next one collects. A
//! request that is larger than a batch goes to the back of the line after each batch, so that a small request
//! behind it waits for one batch and not for all of them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::Request;

/// A batch ends early once its files add up to this much, so that a few large photographs do not make the
/// small images of other requests wait for their decoding.
const BATCH_BYTES: usize = 4 << 20;
/// A request is spread over idle workers only in parts of at least this many images.
const SMALLEST_PART: usize = 4;
/// Weight of the newest batch in the running mean of the speed.
const SPEED_WEIGHT: f64 = 0.1;

/// How the queue is dimensioned.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Most images that wait.
    pub capacity: usize,
    /// Most images per batch.
    pub max_batch: usize,
    /// How long a worker waits for a fuller batch.
    pub max_wait: Duration,
    /// Workers that take from the queue.
    pub workers: usize,
}

/// Images of one request that a worker has taken.
#[derive(Debug)]
pub struct Slice {
    /// The request.
    pub request: Arc<Request>,
    /// Which of its images.
    pub images: Range<usize>,
}

/// Why the queue did not accept a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is full, or so long that the request could not be done in time.
    Full {
        /// Images waiting.
        queued: usize,
        /// About how long until there is room.
        wait: Duration,
    },
    /// It no longer accepts anything: its model was replaced or the service ends.
    Closed,
}

/// See the module's description.
#[derive(Debug)]
pub struct Queue {
    limits: QueueLimits,
    state: Mutex<State>,
    /// Woken when images arrive and when the queue closes.
    arrived: Condvar,
}

#[derive(Debug)]
struct State {
    requests: VecDeque<Waiting>,
    images: usize,
    idle: usize,
    closed: bool,
    /// Running mean of what one image costs one worker.
    seconds_per_image: f64,
}

#[derive(Debug)]
struct Waiting {
    request: Arc<Request>,
    next: usize,
}

impl Waiting {
    fn left(&self) -> usize {
        self.request.uploads.len() - self.next
    }
}

impl Queue {
    /// An empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        let state = State { requests: VecDeque::new(), images: 0, idle: 0, closed: false, seconds_per_image: 0.0 };
        Self { limits, state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Accepts a request whole, or refuses it. `time_left` is how long its client still waits.
    pub fn push(&self, request: &Arc<Request>, time_left: Duration) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        let images = request.uploads.len();
        let wait = self.estimate(&state, state.images + images);
        if state.images + images > self.limits.capacity || (state.images > 0 && wait > time_left) {
            let wait = self.estimate(&state, state.images);
            return Err(Refused::Full { queued: state.images, wait });
        }
        state.images += images;
        state.requests.push_back(Waiting { request: request.clone(), next: 0 });
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// How long a client should stay away when not even one more image fits; `None` where there is room.
    pub fn full(&self) -> Option<(usize, Duration)> {
        let state = self.lock();
        (state.images >= self.limits.capacity).then(|| (state.images, self.estimate(&state, state.images)))
    }

    /// Images that wait.
    pub fn len(&self) -> usize {
        self.lock().images
    }

    /// Waits for images and takes a batch; `None` once the queue is closed and empty.
    pub fn take(&self) -> Option<Vec<Slice>> {
        let mut state = self.lock();
        loop {
            while state.images == 0 {
                if state.closed {
                    return None;
                }
                state.idle += 1;
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
            state = self.wait_for_more(state);
            if state.images > 0 {
                break;
            }
        }
        // Idle workers get their share at once; under load every batch is full.
        let share = state.images.div_ceil(state.idle + 1).max(SMALLEST_PART);
        let batch = state.take(share.min(self.limits.max_batch));
        let more = state.images > 0 && state.idle > 0;
        drop(state);
        if more {
            self.arrived.notify_one();
        }
        Some(batch)
    }

    /// Takes what is left of a request out of the queue: its client has gone.
    pub fn forget(&self, request: &Arc<Request>) {
        let mut state = self.lock();
        if let Some(position) = state.requests.iter().position(|w| Arc::ptr_eq(&w.request, request)) {
            let left = state.requests.remove(position).map_or(0, |w| w.left());
            state.images -= left;
        }
    }

    /// A worker needed `elapsed` for `images`; the waiting times given to clients follow from that.
    pub fn note_speed(&self, images: usize, elapsed: Duration) {
        if images == 0 {
            return;
        }
        let seconds = elapsed.as_secs_f64() / images as f64;
        let mut state = self.lock();
        let old = state.seconds_per_image;
        state.seconds_per_image = if old == 0.0 { seconds } else { old + SPEED_WEIGHT * (seconds - old) };
    }

    /// Accepts nothing more; workers finish what is there and end.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    fn wait_for_more<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let until = Instant::now() + self.limits.max_wait;
        while !self.limits.max_wait.is_zero() && state.images < self.limits.max_batch && !state.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }

    fn estimate(&self, state: &State, images: usize) -> Duration {
        Duration::from_secs_f64(images as f64 * state.seconds_per_image / self.limits.workers as f64)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, most: usize) -> Vec<Slice> {
        let mut batch = Vec::new();
        let (mut count, mut weight) = (0, 0);
        while count < most && weight < BATCH_BYTES {
            let Some(mut waiting) = self.requests.pop_front() else { break };
            let first = waiting.next;
            while waiting.left() > 0 && count < most && weight < BATCH_BYTES {
                weight += waiting.request.uploads[waiting.next].weight();
                waiting.next += 1;
                count += 1;
            }
            batch.push(Slice { request: waiting.request.clone(), images: first..waiting.next });
            if waiting.left() > 0 {
                self.requests.push_back(waiting);
            }
        }
        self.images -= count;
        batch
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::upload::{Content, Upload};
    use crate::intake::Held;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(60);

    fn queue(capacity: usize, max_batch: usize) -> Queue {
        Queue::new(QueueLimits { capacity, max_batch, max_wait: Duration::ZERO, workers: 1 })
    }

    fn request_of(images: usize, bytes: usize) -> Arc<Request> {
        let upload = |i: usize| Upload { name: i.to_string(), content: Content::Encoded(vec![0; bytes].into()) };
        Request::new((0..images).map(upload).collect(), false, Held::default()).0
    }

    fn sizes(batch: &[Slice]) -> Vec<usize> {
        batch.iter().map(|s| s.images.len()).collect()
    }

    #[test]
    fn a_batch_collects_from_several_requests() {
        let queue = queue(100, 32);
        for images in [3, 1, 5] {
            queue.push(&request_of(images, 1), LONG).unwrap();
        }
        assert_eq!(sizes(&queue.take().unwrap()), [3, 1, 5]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_large_request_lets_a_small_one_in_after_each_batch() {
        let queue = queue(100, 8);
        let (large, small) = (request_of(20, 1), request_of(1, 1));
        queue.push(&large, LONG).unwrap();
        queue.push(&small, LONG).unwrap();
        assert_eq!(sizes(&queue.take().unwrap()), [8]);
        let second = queue.take().unwrap();
        assert!(Arc::ptr_eq(&second[0].request, &small));
        assert_eq!(second[1].images, 8..15);
    }

    #[test]
    fn a_full_queue_refuses_and_says_for_how_long() {
        let queue = queue(10, 8);
        queue.note_speed(1, Duration::from_secs(2));
        queue.push(&request_of(8, 1), LONG).unwrap();
        assert_eq!(queue.full(), None);
        let refused = queue.push(&request_of(3, 1), LONG).unwrap_err();
        assert_eq!(refused, Refused::Full { queued: 8, wait: Duration::from_secs(16) });
        queue.push(&request_of(2, 1), LONG).unwrap();
        assert_eq!(queue.full(), Some((10, Duration::from_secs(20))));
    }

    #[test]
    fn a_request_that_could_not_be_done_in_time_is_refused_at_once() {
        let queue = queue(1000, 8);
        queue.note_speed(1, Duration::from_secs(1));
        queue.push(&request_of(30, 1), Duration::from_secs(20)).unwrap();
        assert!(queue.push(&request_of(1, 1), Duration::from_secs(20)).is_err());
        assert!(queue.push(&request_of(1, 1), Duration::from_secs(40)).is_ok());
    }

    #[test]
    fn a_client_that_has_gone_leaves_the_queue() {
        let queue = queue(100, 8);
        let (first, second) = (request_of(20, 1), request_of(2, 1));
        queue.push(&first, LONG).unwrap();
        queue.push(&second, LONG).unwrap();
        queue.take().unwrap();
        queue.forget(&first);
        assert_eq!(queue.len(), 2);
        assert!(Arc::ptr_eq(&queue.take().unwrap()[0].request, &second));
    }

    #[test]
    fn large_files_make_small_batches() {
        let queue = queue(100, 32);
        queue.push(&request_of(10, 3 << 20), LONG).unwrap();
        assert_eq!(sizes(&queue.take().unwrap()), [2]);
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = queue(100, 4);
        queue.push(&request_of(6, 1), LONG).unwrap();
        queue.close();
        assert_eq!(queue.push(&request_of(1, 1), LONG), Err(Refused::Closed));
        assert_eq!(sizes(&queue.take().unwrap()), [4]);
        assert_eq!(sizes(&queue.take().unwrap()), [2]);
        assert!(queue.take().is_none());
    }

    #[test]
    fn idle_workers_share_one_request() {
        let queue =
            Arc::new(Queue::new(QueueLimits { capacity: 100, max_batch: 32, max_wait: Duration::ZERO, workers: 2 }));
        let worker = || {
            let queue = queue.clone();
            std::thread::spawn(move || sizes(&queue.take().unwrap()))
        };
        let workers = [worker(), worker()];
        while queue.lock().idle < 2 {
            std::thread::yield_now();
        }
        queue.push(&request_of(32, 1), LONG).unwrap();
        let taken = workers.map(|w| w.join().unwrap());
        assert_eq!(taken, [[16], [16]]);
    }

    #[test]
    fn a_waiting_time_fills_the_batch() {
        let limits = QueueLimits { capacity: 100, max_batch: 2, max_wait: LONG, workers: 1 };
        let queue = Arc::new(Queue::new(limits));
        queue.push(&request_of(1, 1), LONG).unwrap();
        let worker = std::thread::spawn({
            let queue = queue.clone();
            move || sizes(&queue.take().unwrap())
        });
        std::thread::sleep(Duration::from_millis(20));
        queue.push(&request_of(1, 1), LONG).unwrap();
        assert_eq!(worker.join().unwrap(), [1, 1]);
    }

    proptest! {
        /// Whatever the requests, every image is handed out exactly once and no batch is too large.
        #[test]
        fn every_image_is_taken_once(requests in prop::collection::vec(1usize..40, 1..20), max_batch in 1usize..33) {
            let queue = queue(10_000, max_batch);
            let made: Vec<_> = requests.iter().map(|&n| request_of(n, 1)).collect();
            for request in &made {
                queue.push(request, LONG).unwrap();
            }
            queue.close();
            let mut seen: Vec<Vec<bool>> = requests.iter().map(|&n| vec![false; n]).collect();
            while let Some(batch) = queue.take() {
                prop_assert!(sizes(&batch).iter().sum::<usize>() <= max_batch);
                for slice in batch {
                    let at = made.iter().position(|r| Arc::ptr_eq(r, &slice.request)).unwrap();
                    for image in slice.images {
                        prop_assert!(!std::mem::replace(&mut seen[at][image], true));
                    }
                }
            }
            prop_assert!(seen.iter().flatten().all(|&s| s));
        }
    }
}
