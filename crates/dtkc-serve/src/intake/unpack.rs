//! Compressed bodies, unpacked piece by piece: a chunk of a few kilobytes may hold megabytes, and nobody has counted
//! those yet.

use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use flate2::write::{GzDecoder, ZlibDecoder};
use futures_util::Stream;

use super::heavy::heavy;

/// A piece is handed over, and counted, once it has about this size.
const PIECE: usize = 256 << 10;

type Working = Pin<Box<dyn Future<Output = Result<(Unpacker, Bytes), PayloadError>>>>;

/// A compressed body as a stream of what it unpacks to.
pub struct Unpack {
    payload: Payload,
    state: State,
    /// Packed bytes that may still come. A stream can be endless and hold nothing.
    left: u64,
}

enum State {
    Waiting(Unpacker),
    Working(Working),
    Over,
}

impl Unpack {
    /// A body in gzip, at most `limit` bytes of it.
    pub fn gzip(payload: Payload, limit: u64) -> Self {
        Self::new(payload, limit, Decoder::Gzip(GzDecoder::new(Vec::new())))
    }

    /// A body in what HTTP calls deflate, at most `limit` bytes of it.
    pub fn deflate(payload: Payload, limit: u64) -> Self {
        Self::new(payload, limit, Decoder::Zlib(ZlibDecoder::new(Vec::new())))
    }

    fn new(payload: Payload, limit: u64, decoder: Decoder) -> Self {
        let unpacker = Box::new(Unpacking { decoder, packed: Bytes::new() });
        Self { payload, state: State::Waiting(unpacker), left: limit }
    }
}

impl Stream for Unpack {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match std::mem::replace(&mut this.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Working(mut working) => match working.as_mut().poll(cx) {
                    Poll::Pending => {
                        this.state = State::Working(working);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok((unpacker, piece))) => {
                        this.state = State::Waiting(unpacker);
                        if !piece.is_empty() {
                            return Poll::Ready(Some(Ok(piece)));
                        }
                    }
                },
                State::Waiting(unpacker) if !unpacker.packed.is_empty() => {
                    this.state = State::Working(Box::pin(work(unpacker)));
                }
                State::Waiting(mut unpacker) => match Pin::new(&mut this.payload).poll_next(cx) {
                    Poll::Pending => {
                        this.state = State::Waiting(unpacker);
                        return Poll::Pending;
                    }
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Some(Ok(chunk))) => {
                        let Some(left) = this.left.checked_sub(chunk.len() as u64) else {
                            return Poll::Ready(Some(Err(PayloadError::Overflow)));
                        };
                        this.left = left;
                        unpacker.packed = chunk;
                        this.state = State::Waiting(unpacker);
                    }
                    // What is still inside is less than a piece.
                    Poll::Ready(None) => {
                        let rest = unpacker.finish();
                        return Poll::Ready(match rest {
                            Ok(rest) if rest.is_empty() => None,
                            Ok(rest) => Some(Ok(rest)),
                            Err(_) => Some(Err(PayloadError::EncodingCorrupted)),
                        });
                    }
                },
            }
        }
    }
}

async fn work(mut unpacker: Unpacker) -> Result<(Unpacker, Bytes), PayloadError> {
    let worked = heavy(move || unpacker.piece().map(|piece| (unpacker, piece))).await;
    let ended = |_| PayloadError::Io(io::Error::other("the service is stopping"));
    worked.map_err(ended)?.map_err(|_| PayloadError::EncodingCorrupted)
}

type Unpacker = Box<Unpacking>;

struct Unpacking {
    decoder: Decoder,
    packed: Bytes,
}

enum Decoder {
    Gzip(GzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
}

impl Decoder {
    fn unpacked(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
        }
    }
}

impl Unpacking {
    /// Unpacks until there is a piece, or nothing more to unpack.
    fn piece(&mut self) -> io::Result<Bytes> {
        while !self.packed.is_empty() && self.decoder.unpacked().len() < PIECE {
            // One call unpacks no more than its own small buffer takes.
            let used = match &mut self.decoder {
                Decoder::Gzip(decoder) => decoder.write(&self.packed)?,
                Decoder::Zlib(decoder) => decoder.write(&self.packed)?,
            };
            if used == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "something follows the end"));
            }
            let _ = self.packed.split_to(used);
        }
        Ok(std::mem::take(self.decoder.unpacked()).into())
    }

    /// The rest, once all is there; checks that it is complete.
    fn finish(&mut self) -> io::Result<Bytes> {
        match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.try_finish()?,
            Decoder::Zlib(decoder) => decoder.try_finish()?,
        }
        Ok(std::mem::take(self.decoder.unpacked()).into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use futures_util::{StreamExt, stream};

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn payload(packed: &[u8], each: usize) -> Payload {
        let chunks: Vec<_> = packed.chunks(each).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        Payload::Stream { payload: Box::pin(stream::iter(chunks)) }
    }

    async fn read(body: Unpack) -> Result<Vec<u8>, PayloadError> {
        let mut whole = Vec::new();
        let mut body = std::pin::pin!(body);
        while let Some(piece) = body.next().await {
            let piece = piece?;
            assert!(piece.len() < 2 * PIECE, "{} bytes at once", piece.len());
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    #[actix_web::test]
    async fn a_small_chunk_with_much_in_it_comes_out_in_pieces() {
        let mut content = vec![0; 10 << 20];
        content[5 << 20] = 1;
        let packed = gzip(&content);
        assert!(packed.len() < 20_000);
        for each in [7, 1000, packed.len()] {
            assert_eq!(read(Unpack::gzip(payload(&packed, each), 1 << 20)).await.unwrap(), content);
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&content).unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(read(Unpack::deflate(payload(&packed, 1000), 1 << 20)).await.unwrap(), content);
    }

    #[actix_web::test]
    async fn what_is_cut_damaged_or_endless_fails() {
        let packed = gzip(b"hello, hello, hello");
        for wrong in [&packed[..packed.len() - 1], &packed[..12], &[&packed[..], b"more"].concat(), b"no gzip"] {
            let failed = read(Unpack::gzip(payload(wrong, 100), 1 << 20)).await;
            assert!(matches!(failed, Err(PayloadError::EncodingCorrupted)), "{failed:?}");
        }
        // Blocks that hold nothing: five bytes each, and no end.
        let empty = [&packed[..10], &[0, 0, 0, 0xff, 0xff].repeat(1000)].concat();
        let failed = read(Unpack::gzip(payload(&empty, 100), 1000)).await;
        assert!(matches!(failed, Err(PayloadError::Overflow)), "{failed:?}");
    }
}
