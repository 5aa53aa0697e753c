//! The bounded queue between requests and workers. It counts images, not requests.
//!
//! There is no timer: a free worker takes what is there, and while its batch runs the next one collects. Clients take
//! turns, and so do the requests of one client: one that is larger than a batch goes to the back of its client's line
//! after each batch, so that whoever comes behind waits for one batch and not for all of them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::Request;

/// A batch ends early once its files add up to this much, so that a few large photographs do not make the
/// small images of other requests wait for their decoding.
pub const BATCH_BYTES: usize = 4 << 20;
/// A request is spread over idle workers only in parts of at least this many images.
const SMALLEST_PART: usize = 4;
/// Weight of the newest batch in the running mean of the speed.
const SPEED_WEIGHT: f64 = 0.1;
/// What is kept free for clients that have nothing waiting, on top of the capacity: this part of it.
const RESERVE: usize = 4;

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
    /// One per client that has images waiting, in the order of their turns.
    lines: VecDeque<Line>,
    images: usize,
    idle: usize,
    closed: bool,
    /// Running mean of what one image costs one worker.
    seconds_per_image: f64,
}

/// What one client has waiting.
#[derive(Debug)]
struct Line {
    client: u64,
    waiting: VecDeque<Slice>,
    images: usize,
}

impl Queue {
    /// An empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        let state = State { lines: VecDeque::new(), images: 0, idle: 0, closed: false, seconds_per_image: 0.0 };
        Self { limits, state: Mutex::new(state), arrived: Condvar::new() }
    }

    /// Accepts a request whole, or refuses it. `time_left` is how long its client still waits.
    pub fn push(&self, request: &Arc<Request>, time_left: Duration) -> Result<(), Refused> {
        let mut state = self.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        let images = request.uploads.len();
        let wait = self.estimate(&state, state.turns(request.client, images));
        if state.images + images > self.room(&state, request.client) || (state.images > 0 && wait > time_left) {
            let wait = self.estimate(&state, state.images);
            return Err(Refused::Full { queued: state.images, wait });
        }
        state.add(Slice { request: request.clone(), images: 0..images }, Place::Back);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// How long a client should stay away when not even one more image of it fits; `None` where there is room.
    pub fn full(&self, client: u64) -> Option<(usize, Duration)> {
        let state = self.lock();
        (state.images >= self.room(&state, client)).then(|| (state.images, self.estimate(&state, state.images)))
    }

    /// Takes back what a worker has taken and will not do now: to the front of its client's line, or to the back, behind
    /// what could be done at once.
    pub fn give_back(&self, slices: impl DoubleEndedIterator<Item = Slice>, place: Place) {
        let mut state = self.lock();
        // A client that leaves from now on finds its images here; one that has left must not come back.
        let slices = slices.filter(|slice| !slice.images.is_empty() && !slice.request.is_over());
        match place {
            Place::Front => slices.rev().for_each(|slice| state.add(slice, Place::Front)),
            Place::Back => slices.for_each(|slice| state.add(slice, Place::Back)),
        }
        let more = state.images > 0 && state.idle > 0;
        drop(state);
        if more {
            self.arrived.notify_one();
        }
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
        let Some(at) = state.lines.iter().position(|line| line.client == request.client) else { return };
        let line = &mut state.lines[at];
        line.waiting.retain(|slice| !Arc::ptr_eq(&slice.request, request));
        let left = line.waiting.iter().map(|slice| slice.images.len()).sum();
        let gone = std::mem::replace(&mut line.images, left) - left;
        state.images -= gone;
        state.lines.retain(|line| line.images > 0);
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

    /// How many images may wait with those of that client. One client alone can fill the queue, but not against others:
    /// for those that have nothing waiting there is more.
    fn room(&self, state: &State, client: u64) -> usize {
        let waits = state.lines.iter().any(|line| line.client == client);
        let reserve = if waits || state.images == 0 { 0 } else { self.limits.capacity.div_ceil(RESERVE) };
        self.limits.capacity.saturating_add(reserve)
    }

    fn estimate(&self, state: &State, images: usize) -> Duration {
        Duration::from_secs_f64(images as f64 * state.seconds_per_image / self.limits.workers as f64)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where in its client's line something goes.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// It comes next.
    Front,
    /// It comes last.
    Back,
}

impl State {
    fn add(&mut self, slice: Slice, place: Place) {
        let (client, images) = (slice.request.client, slice.images.len());
        let at = self.lines.iter().position(|line| line.client == client).unwrap_or_else(|| {
            self.lines.push_back(Line { client, waiting: VecDeque::new(), images: 0 });
            self.lines.len() - 1
        });
        let line = &mut self.lines[at];
        match place {
            Place::Front => line.waiting.push_front(slice),
            Place::Back => line.waiting.push_back(slice),
        }
        line.images += images;
        self.images += images;
    }

    /// Images that are done before the last of `more` images of that client is: of every other client no more than of it.
    fn turns(&self, client: u64, more: usize) -> usize {
        let own = self.lines.iter().find(|line| line.client == client).map_or(0, |line| line.images) + more;
        let others = self.lines.iter().filter(|line| line.client != client);
        own + others.map(|line| line.images.min(own)).sum::<usize>()
    }

    fn take(&mut self, most: usize) -> Vec<Slice> {
        let mut batch = Vec::new();
        let (mut count, mut weight) = (0, 0);
        while count < most && weight < BATCH_BYTES {
            let Some(mut line) = self.lines.pop_front() else { break };
            if let Some(mut slice) = line.waiting.pop_front() {
                let Range { start, end } = slice.images;
                let mut next = start;
                while next < end && count < most && weight < BATCH_BYTES {
                    weight += slice.request.uploads[next].weight();
                    next += 1;
                    count += 1;
                }
                line.images -= next - start;
                batch.push(Slice { request: slice.request.clone(), images: start..next });
                slice.images = next..end;
                if !slice.images.is_empty() {
                    line.waiting.push_back(slice);
                }
            }
            if !line.waiting.is_empty() {
                self.lines.push_back(line);
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
    use crate::engine::Order;
    use crate::engine::upload::{Content, Upload};
    use crate::intake::Held;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(60);

    fn queue(capacity: usize, max_batch: usize) -> Queue {
        Queue::new(QueueLimits { capacity, max_batch, max_wait: Duration::ZERO, workers: 1 })
    }

    fn request_of(images: usize, bytes: usize) -> Arc<Request> {
        request_from(1, images, bytes).0
    }

    type Answer = tokio::sync::oneshot::Receiver<Result<super::super::Answered, String>>;

    /// A request that is over once the answer is dropped.
    fn request_from(client: u64, images: usize, bytes: usize) -> (Arc<Request>, Answer) {
        let upload = |i: usize| Upload { name: i.to_string(), content: Content::Encoded(vec![0; bytes].into()) };
        let uploads = (0..images).map(upload).collect();
        let deadline = Instant::now() + Duration::from_secs(3600);
        Request::new(Order { uploads, want_embedding: false, held: Held::default(), deadline, client }, u64::MAX)
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
        assert_eq!(queue.full(1), None);
        let refused = queue.push(&request_of(3, 1), LONG).unwrap_err();
        assert_eq!(refused, Refused::Full { queued: 8, wait: Duration::from_secs(16) });
        queue.push(&request_of(2, 1), LONG).unwrap();
        assert_eq!(queue.full(1), Some((10, Duration::from_secs(20))));
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

    /// Whoever sent 64 requests had 64 turns to one of everybody else.
    #[test]
    fn clients_take_turns_whatever_number_of_requests_they_send() {
        let queue = queue(1000, 4);
        for _ in 0..64 {
            queue.push(&request_from(1, 4, 1).0, LONG).unwrap();
        }
        for client in [2, 3] {
            queue.push(&request_from(client, 8, 1).0, LONG).unwrap();
        }
        let clients: Vec<u64> = (0..8).map(|_| queue.take().unwrap()[0].request.client).collect();
        assert_eq!(clients, [1, 2, 3, 1, 2, 3, 1, 1]);
    }

    #[test]
    fn a_client_with_nothing_waiting_finds_room_in_a_queue_that_another_has_filled() {
        let queue = queue(100, 8);
        queue.push(&request_from(1, 100, 1).0, LONG).unwrap();
        assert!(queue.full(1).is_some() && queue.full(2).is_none());
        assert!(queue.push(&request_from(1, 1, 1).0, LONG).is_err());
        assert!(queue.push(&request_from(2, 26, 1).0, LONG).is_err());
        queue.push(&request_from(2, 25, 1).0, LONG).unwrap();
        assert!(queue.full(2).is_some() && queue.full(3).is_some());
    }

    #[test]
    fn the_wait_that_counts_is_until_ones_own_turn() {
        let queue = queue(1000, 8);
        queue.note_speed(1, Duration::from_secs(1));
        queue.push(&request_from(1, 500, 1).0, Duration::from_secs(600)).unwrap();
        assert!(queue.push(&request_from(1, 5, 1).0, Duration::from_secs(20)).is_err());
        assert!(queue.push(&request_from(2, 15, 1).0, Duration::from_secs(20)).is_err());
        queue.push(&request_from(2, 5, 1).0, Duration::from_secs(20)).unwrap();
    }

    #[test]
    fn what_is_given_back_comes_next_unless_its_client_has_gone() {
        let queue = queue(100, 4);
        let (first, answer) = request_from(1, 8, 1);
        queue.push(&first, LONG).unwrap();
        let taken = queue.take().unwrap();
        assert_eq!((taken[0].images.clone(), queue.len()), (0..4, 4));
        let rest = || [Slice { request: first.clone(), images: 2..4 }].into_iter();
        queue.give_back(rest(), Place::Front);
        assert_eq!(queue.len(), 6);
        assert_eq!(queue.take().unwrap().iter().map(|slice| slice.images.clone()).collect::<Vec<_>>(), [2..4, 4..6]);
        drop(answer);
        queue.give_back(rest(), Place::Front);
        assert_eq!(queue.len(), 2);
        queue.forget(&first);
        assert_eq!(queue.len(), 0);
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
        fn every_image_is_taken_once(
            requests in prop::collection::vec(1usize..40, 1..20), max_batch in 1usize..33, clients in 1usize..5,
        ) {
            let queue = queue(10_000, max_batch);
            let request = |(i, &n): (usize, &usize)| request_from((i % clients) as u64, n, 1);
            let (made, _answers): (Vec<_>, Vec<_>) = requests.iter().enumerate().map(request).unzip();
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
