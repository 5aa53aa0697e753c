//! Whole objects, several side by side.

use std::time::Duration;

use bytes::Bytes;
use dtkc_source::remote::FetchError;
use futures_util::{StreamExt, stream};
use object_store::ObjectStoreExt;

use crate::StoreError;
use crate::address::Address;
use crate::connect;
use crate::error::Kind;
use crate::object::collect;
use crate::settings::Purpose;

/// Requests at a time: small objects take as long as the way to the store, which has room for many.
const AT_ONCE: usize = 32;
const ATTEMPTS: u32 = 4;

/// Why an object was not fetched.
pub(crate) enum Unfetched {
    TooLarge(u64),
    Failed(StoreError),
}

impl From<StoreError> for Unfetched {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<Unfetched> for FetchError {
    fn from(unfetched: Unfetched) -> Self {
        match unfetched {
            Unfetched::TooLarge(size) => Self::TooLarge(size),
            Unfetched::Failed(error) => Self::Io(error.into()),
        }
    }
}

/// The bytes of several objects, in their order.
pub(crate) async fn all(urls: Vec<String>, max_bytes: u64) -> Vec<Result<Bytes, Unfetched>> {
    stream::iter(urls).map(|url| one(url, max_bytes)).buffered(AT_ONCE).collect().await
}

/// The bytes of one object, no more than so many.
pub(crate) async fn one(url: String, max_bytes: u64) -> Result<Bytes, Unfetched> {
    let address = Address::parse(&url)?;
    let mut attempt = 1;
    loop {
        match try_one(&address, max_bytes).await {
            Err(Unfetched::Failed(error)) if error.kind() == Kind::Passing && attempt < ATTEMPTS => {
                tokio::time::sleep(Duration::from_millis(200 << attempt)).await;
                attempt += 1;
            }
            fetched => return fetched,
        }
    }
}

async fn try_one(address: &Address, max_bytes: u64) -> Result<Bytes, Unfetched> {
    let store = connect::store(address, Purpose::Read)?;
    let got = store.get(&address.key).await.map_err(|error| StoreError::of(address, &error).tried())?;
    let size = got.meta.size;
    if size > max_bytes {
        return Err(Unfetched::TooLarge(size));
    }
    Ok(collect(got, size).await.map_err(|error| error.said(address))?)
}
