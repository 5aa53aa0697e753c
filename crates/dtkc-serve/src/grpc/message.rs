//! One message on its way in or out: five bytes with its length in front, as gRPC has it.

use std::future::poll_fn;
use std::time::Duration;

use actix_web::web::Bytes;
use h2::{Reason, RecvStream, SendStream};

use super::PIECE;
use super::status::Refusal;
use crate::error::ApiError;
use crate::intake::Held;
use crate::pieces::longest;

/// Bytes in front of a message: whether it is compressed, and its length.
const FRONT: usize = 5;

/// A message that is written behind the space for its front.
pub struct Outgoing {
    bytes: Bytes,
    /// Given back once the client has taken all of it, or has gone.
    _held: Held,
}

impl Outgoing {
    /// What [`Outgoing::new`] expects in front of a message.
    pub const SPACE: [u8; FRONT] = [0; FRONT];

    /// A message behind [`Outgoing::SPACE`], counted by `held`, which gives back what it held beyond that.
    pub fn new(mut bytes: Vec<u8>, mut held: Held) -> Result<Self, ApiError> {
        let length = u32::try_from(bytes.len() - FRONT).map_err(|_| ApiError::Internal)?;
        bytes[1..FRONT].copy_from_slice(&length.to_be_bytes());
        bytes.shrink_to_fit();
        held.settle(bytes.len() as u64)?;
        Ok(Self { bytes: bytes.into(), _held: held })
    }

    /// Sends it as fast as the client takes it. One that takes nothing for `stall`, or all of it too slowly, gets no more.
    pub async fn send(mut self, stream: &mut SendStream<Bytes>, stall: Duration) -> Result<(), h2::Error> {
        let sending = tokio::time::timeout(longest(self.bytes.len()), async {
            while !self.bytes.is_empty() {
                let room = tokio::time::timeout(stall, room(stream, self.bytes.len().min(PIECE))).await;
                let Ok(room) = room else { return Ok(false) };
                let piece = self.bytes.split_to(room?.min(self.bytes.len()));
                // A copy: the library may keep a piece, and would keep the whole message with it, uncounted.
                stream.send_data(Bytes::copy_from_slice(&piece), false)?;
            }
            Ok(true)
        });
        match sending.await {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(error)) => Err(error),
            Ok(Ok(false)) | Err(_) => {
                stream.send_reset(Reason::CANCEL);
                Err(Reason::CANCEL.into())
            }
        }
    }
}

/// Waits until something can be sent, at most `wanted` bytes; says how many.
async fn room(stream: &mut SendStream<Bytes>, wanted: usize) -> Result<usize, h2::Error> {
    stream.reserve_capacity(wanted);
    while stream.capacity() == 0 {
        poll_fn(|context| stream.poll_capacity(context)).await.ok_or(Reason::CANCEL)??;
    }
    Ok(stream.capacity().min(wanted))
}

/// Reads the one message of a call. Every byte is booked before more may come, and no more than `limit` do.
pub async fn read(mut body: RecvStream, limit: u64, held: &mut Held) -> Result<Bytes, Refusal> {
    let mut whole = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(|_| ApiError::BrokenBody("the client stopped sending".into()))?;
        held.grow(chunk.len() as u64)?;
        whole.extend_from_slice(&chunk);
        check(&whole, limit)?;
        // Only now may the client send as much again. Where the stream has ended meanwhile, there is no more to come.
        let _ = body.flow_control().release_capacity(chunk.len());
    }
    // It grew in leaps; what is more than counted goes back.
    whole.shrink_to_fit();
    match announced(&whole) {
        Some(length) if whole.len() as u64 == FRONT as u64 + length => Ok(Bytes::from(whole).slice(FRONT..)),
        _ => Err(ApiError::BrokenBody("it is shorter than it says".into()).into()),
    }
}

/// Refuses what can be refused before all of it is there.
fn check(begun: &[u8], limit: u64) -> Result<(), Refusal> {
    match (announced(begun), begun.first()) {
        (_, Some(1..)) => Err(Refusal::Packed),
        (Some(length), _) if length > limit => Err(ApiError::BodyTooLarge { limit }.into()),
        (Some(length), _) if begun.len() as u64 > FRONT as u64 + length => {
            Err(ApiError::BrokenBody("more than one message came".into()).into())
        }
        _ => Ok(()),
    }
}

/// The length that a message says it has, once that is there.
fn announced(begun: &[u8]) -> Option<u64> {
    let [_, a, b, c, d] = *begun.first_chunk()?;
    Some(u64::from(u32::from_be_bytes([a, b, c, d])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_good_is_refused_at_once() {
        assert_eq!(check(&[0, 0, 0], 10), Ok(()));
        assert_eq!(check(&[0, 0, 0, 0, 10], 10), Ok(()));
        assert_eq!(check(&[1], 10), Err(Refusal::Packed));
        assert_eq!(check(&[0, 0, 0, 0, 11], 10), Err(ApiError::BodyTooLarge { limit: 10 }.into()));
        assert_eq!(check(&[0, 255, 255, 255, 255], 10), Err(ApiError::BodyTooLarge { limit: 10 }.into()));
        assert_eq!(check(&[0, 0, 0, 0, 1, 7], 10), Ok(()));
        assert!(check(&[0, 0, 0, 0, 1, 7, 0], 10).is_err(), "a second message");
    }
}
