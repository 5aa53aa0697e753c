//! Memory for decoding, shared by the workers of all models. A file of fifty bytes may hold 64 million pixels: one worker
//! can afford that, all of them at once cannot.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An image that takes no more than this needs no place: every worker may have one such.
const SMALL: u64 = 4 << 20;

/// The bytes that workers may take together for decoding.
#[derive(Debug)]
pub struct Room {
    total: u64,
    free: Mutex<u64>,
    freed: Condvar,
}

impl Room {
    /// Room for `total` bytes.
    pub fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, free: Mutex::new(total), freed: Condvar::new() })
    }

    /// Takes room for an image until the result is dropped; `None` where others have it now. What is larger than all of it
    /// takes all of it.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Taken> {
        let bytes = if bytes <= SMALL { 0 } else { bytes.min(self.total) };
        let mut free = self.lock();
        *free = free.checked_sub(bytes)?;
        Some(Taken { room: self.clone(), bytes })
    }

    /// Waits until somebody gives room back, or for `at_most`.
    pub fn wait(&self, at_most: Duration) {
        let free = self.lock();
        if *free < self.total {
            drop(self.freed.wait_timeout(free, at_most));
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        // Nothing panics while it is held.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room that one worker has.
#[derive(Debug)]
pub struct Taken {
    room: Arc<Room>,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.bytes > 0 {
            *self.room.lock() += self.bytes;
            self.room.freed.notify_all();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back_and_small_images_need_none() {
        let room = Room::new(10 * SMALL);
        let first = room.take(8 * SMALL).unwrap();
        assert!(room.take(3 * SMALL).is_none());
        let (_second, _small) = (room.take(2 * SMALL).unwrap(), room.take(SMALL).unwrap());
        assert!(room.take(2 * SMALL).is_none());
        drop(first);
        assert!(room.take(100 * SMALL).is_none(), "all of it is not free");
        assert!(room.take(8 * SMALL).is_some());
    }

    #[test]
    fn an_image_that_is_larger_than_all_room_takes_all_of_it() {
        let room = Room::new(2 * SMALL);
        let all = room.take(100 * SMALL).unwrap();
        assert!(room.take(2 * SMALL).is_none());
        drop(all);
        assert!(room.take(2 * SMALL).is_some());
        // Nobody has any: there is nothing to wait for.
        room.wait(Duration::from_secs(3600));
    }
}
