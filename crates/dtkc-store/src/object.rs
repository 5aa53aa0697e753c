//! One object: what it is, and stretches of it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::{GetOptions, GetRange, GetResult, ObjectStoreExt};

use crate::StoreError;
use crate::address::Address;
use crate::connect::{self, Store};
use crate::error::{CHANGED, Kind};
use crate::settings::Purpose;

/// What is read with the first look at an object: enough to know what it is.
pub(crate) const FIRST: u64 = 64 << 10;
/// Stretches of that length that are kept of an object: 2 MiB.
const BLOCKS: usize = 32;
/// How often a stretch that broke off is asked for again, beside what the library does itself.
const ATTEMPTS: u32 = 4;

/// An object that was looked at.
pub(crate) struct Object {
    pub(crate) address: Address,
    store: Store,
    pub(crate) size: u64,
    /// What changes with its content, where the store says.
    tag: Option<String>,
    /// Its first bytes.
    pub(crate) head: Bytes,
    /// Small stretches that were read last: whoever jumps about comes back, and others want the same ones.
    blocks: Mutex<VecDeque<(u64, Bytes)>>,
}

impl Object {
    /// Looks at an object. `Kind::NoRanges` where the server gives it only as a whole.
    pub(crate) async fn look(address: Address) -> Result<Self, StoreError> {
        let look = connect::store(&address, Purpose::Look)?;
        let store = connect::store(&address, Purpose::Read)?;
        let of = |error: object_store::Error| StoreError::of(&address, &error);
        let options = GetOptions { range: Some(GetRange::Bounded(0..FIRST)), ..GetOptions::default() };
        let got = match look.get_opts(&address.key, options).await.map_err(of) {
            Ok(got) => got,
            Err(error) if error.kind() == Kind::NoRanges => {
                // Of nothing there is no part.
                let meta = look.head(&address.key).await.map_err(of)?;
                return match meta.size {
                    0 => Ok(Self {
                        store,
                        size: 0,
                        tag: meta.e_tag,
                        head: Bytes::new(),
                        address,
                        blocks: Mutex::default(),
                    }),
                    _ => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let (size, tag) = (got.meta.size, got.meta.e_tag.clone());
        let mut object = Self { store, size, tag, head: Bytes::new(), address, blocks: Mutex::default() };
        object.head = match collect(got, FIRST.min(size)).await {
            Ok(head) => head,
            Err(_) => object.read(0..FIRST.min(size)).await?,
        };
        Ok(object)
    }

    /// A small stretch that begins there and is still known.
    pub(crate) fn recall(&self, start: u64) -> Option<Bytes> {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.iter().find(|(at, _)| *at == start).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps a small stretch in the place of the oldest one.
    pub(crate) fn remember(&self, start: u64, bytes: &Bytes) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.len() >= BLOCKS {
            blocks.pop_front();
        }
        blocks.push_back((start, bytes.clone()));
    }

    /// A stretch of it. One that breaks off is asked for again.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let mut attempt = 1;
        loop {
            match self.try_read(range.clone()).await {
                Err(error) if error.kind() == Kind::Passing && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(200 << attempt)).await;
                    attempt += 1;
                }
                read => return read,
            }
        }
    }

    async fn try_read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let got = self.store.get_opts(&self.address.key, options).await;
        let got = got.map_err(|error| StoreError::of(&self.address, &error).tried())?;
        // Not by a condition in the request: servers with weak tags never meet it.
        if got.meta.size != self.size || got.meta.e_tag != self.tag {
            return Err(StoreError::other(CHANGED));
        }
        collect(got, range.end - range.start).await.map_err(|error| error.said(&self.address))
    }
}

/// Why bytes did not come.
pub(crate) enum Broken {
    Short,
    Said(object_store::Error),
}

impl Broken {
    pub(crate) fn said(&self, address: &Address) -> StoreError {
        match self {
            Self::Short => StoreError::new(Kind::Passing, "the connection broke off; check the network, and try again"),
            Self::Said(error) => StoreError::of(address, error).broken_off(),
        }
    }
}

/// Exactly so many bytes of an answer, whatever it says.
pub(crate) async fn collect(got: GetResult, wanted: u64) -> Result<Bytes, Broken> {
    let mut bytes = BytesMut::with_capacity(wanted.min(8 << 20) as usize);
    let mut stream = got.into_stream();
    while let Some(part) = stream.next().await {
        let part = part.map_err(Broken::Said)?;
        if bytes.len() as u64 + part.len() as u64 > wanted {
            return Err(Broken::Short);
        }
        bytes.extend_from_slice(&part);
    }
    if bytes.len() as u64 == wanted { Ok(bytes.freeze()) } else { Err(Broken::Short) }
}

/// Objects are shared by all who read them.
pub(crate) type Shared = Arc<Object>;
