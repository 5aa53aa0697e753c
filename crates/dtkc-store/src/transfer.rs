//! Whole files to a store and back: what arrives is whole, or is not there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use dtkc_observe::Observer;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::sync::Mutex;

use crate::address::Address;
use crate::connect::{self, Store};
use crate::error::Kind;
use crate::runtime;
use crate::settings::Purpose;
use crate::{StoreError, Stores};

/// What is downloaded at most.
const MAX_DOWNLOAD: u64 = 1 << 40;
/// Room that is left on a disk.
const LEFT: u64 = 256 << 20;
/// The least and the usual size of a part of an upload.
const PART: u64 = 8 << 20;
/// Stores take 10,000 parts.
const MAX_PARTS: u64 = 9_000;
/// Parts under way at a time.
const AT_ONCE: usize = 4;

/// Refuses an output that cannot be written, or is there already and may not be replaced. For before the work.
pub fn check_output(url: &str, force: bool) -> Result<(), StoreError> {
    let address = output(url)?;
    let store = connect::store(&address, Purpose::Write)?;
    let there = {
        let (store, address) = (store.clone(), address.clone());
        runtime::run(async move { exists(&store, &address).await })??
    };
    if there && !force {
        return Err(StoreError::new(Kind::Exists, "it exists already; add --force to replace it"));
    }
    // Whether these credentials may write is known only by writing: an upload of parts that is given up leaves nothing.
    runtime::run_to_end(async move {
        let of = |error: object_store::Error| StoreError::of(&address, &error);
        let mut upload = store.put_multipart(&address.key).await.map_err(of)?;
        // Who may write and not give up is left with one upload more that its bucket clears away.
        let _ = upload.abort().await;
        Ok(())
    })?
}

/// The address of an object that is to be written.
fn output(url: &str) -> Result<Address, StoreError> {
    let address = Address::parse(url)?;
    match address.is_folder {
        true => Err(StoreError::address("it names a folder; name the object to write")),
        false => Ok(address),
    }
}

async fn exists(store: &Store, address: &Address) -> Result<bool, StoreError> {
    match store.head(&address.key).await {
        Ok(_) => Ok(true),
        Err(error) => {
            let error = StoreError::of(address, &error);
            if error.kind() == Kind::Missing { Ok(false) } else { Err(error) }
        }
    }
}

/// Removes an object, if it is there.
pub fn remove(url: &str) -> Result<(), StoreError> {
    let address = output(url)?;
    let store = connect::store(&address, Purpose::Write)?;
    runtime::run(async move {
        match store.delete(&address.key).await.map_err(|error| StoreError::of(&address, &error)) {
            Err(error) if error.kind() != Kind::Missing => Err(error),
            _ => Ok(()),
        }
    })?
}

/// Sends a file to a store. The object is there when all of it is; an upload that is stopped or fails is taken back.
pub fn upload(file: &Path, url: &str, force: bool, observer: &dyn Observer) -> Result<(), StoreError> {
    let address = output(url)?;
    let store = connect::store(&address, Purpose::Write)?;
    let unreadable = |error: io::Error| StoreError::other(format!("{} cannot be read ({error})", file.display()));
    let mut open = File::open(file).map_err(unreadable)?;
    let size = open.metadata().map_err(unreadable)?.len();
    let name = address.key.filename().unwrap_or_default().to_owned();
    observer.begin(&format!("upload {name}"), "bytes", Some(size));
    if size <= PART {
        let mut bytes = Vec::with_capacity(size as usize);
        open.read_to_end(&mut bytes).map_err(unreadable)?;
        put(store, address, bytes.into(), force)?;
        observer.advance(size);
    } else {
        let part = PART.max(size.div_ceil(MAX_PARTS));
        let mut parts = Parts::begin(store, address)?;
        let sent = parts.send_all(&mut open, part, force, observer);
        if let Err(error) = sent {
            parts.take_back();
            return Err(error);
        }
    }
    observer.end();
    Ok(())
}

/// A small object in one request, which also knows whether it would replace one.
fn put(store: Store, address: Address, bytes: Bytes, force: bool) -> Result<(), StoreError> {
    runtime::run(async move {
        let mode = if force { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, ..PutOptions::default() };
        match store.put_opts(&address.key, bytes.clone().into(), options).await {
            Ok(_) => Ok(()),
            // Not every store knows conditions.
            Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) => {
                refuse_existing(&store, &address, force).await?;
                store.put(&address.key, bytes.into()).await.map(drop).map_err(|error| StoreError::of(&address, &error))
            }
            Err(error) => Err(StoreError::of(&address, &error)),
        }
    })?
}

async fn refuse_existing(store: &Store, address: &Address, force: bool) -> Result<(), StoreError> {
    match !force && exists(store, address).await? {
        true => Err(StoreError::new(Kind::Exists, "it exists already; add --force to replace it")),
        false => Ok(()),
    }
}

/// An upload in parts.
struct Parts {
    store: Store,
    address: Address,
    upload: Arc<Mutex<Box<dyn MultipartUpload>>>,
}

impl Parts {
    fn begin(store: Store, address: Address) -> Result<Self, StoreError> {
        let upload = {
            let (store, address) = (store.clone(), address.clone());
            runtime::run(async move {
                store.put_multipart(&address.key).await.map_err(|error| StoreError::of(&address, &error))
            })??
        };
        Ok(Self { store, address, upload: Arc::new(Mutex::new(upload)) })
    }

    fn send_all(&mut self, file: &mut File, part: u64, force: bool, observer: &dyn Observer) -> Result<(), StoreError> {
        let mut under_way = std::collections::VecDeque::new();
        loop {
            let mut bytes = Vec::with_capacity(part as usize);
            let read = file.take(part).read_to_end(&mut bytes);
            let read = read.map_err(|error| StoreError::other(format!("the file to send cannot be read ({error})")))?;
            if read > 0 {
                under_way.push_back((self.send(bytes)?, read as u64));
            }
            while under_way.len() >= AT_ONCE || (read == 0 && !under_way.is_empty()) {
                let Some((sent, size)) = under_way.pop_front() else { break };
                sent.wait()??;
                observer.advance(size);
            }
            if observer.stop() {
                return Err(StoreError::stopped());
            }
            if read == 0 {
                return self.complete(force);
            }
        }
    }

    fn send(&self, bytes: Vec<u8>) -> Result<runtime::Underway<Result<(), StoreError>>, StoreError> {
        let address = self.address.clone();
        // Parts have the order in which they are asked for, so that is done here and now.
        let part = self.upload.blocking_lock().put_part(PutPayload::from(bytes));
        runtime::begin(async move { part.await.map_err(|error| StoreError::of(&address, &error)) })
    }

    fn complete(&self, force: bool) -> Result<(), StoreError> {
        let (upload, store, address) = (self.upload.clone(), self.store.clone(), self.address.clone());
        runtime::run_to_end(async move {
            refuse_existing(&store, &address, force).await?;
            upload.lock().await.complete().await.map(drop).map_err(|error| StoreError::of(&address, &error))
        })?
    }

    /// Leaves nothing behind; what cannot be taken back is cleared away by the store's own rules.
    fn take_back(&self) {
        let upload = self.upload.clone();
        let _ = runtime::run_to_end(async move {
            let _ = upload.lock().await.abort().await;
        });
    }
}

/// Brings an object to a file on the disk, after a look whether there is room.
pub fn download(url: &str, target: &Path, observer: &dyn Observer) -> Result<u64, StoreError> {
    use dtkc_source::remote::Stores as _;
    let of = |error: io::Error| StoreError::other(error.to_string());
    let mut object = Stores.open(url).map_err(of)?;
    let size = object.size();
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_space(folder, size)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    observer.begin(&format!("download {name}"), "bytes", Some(size));
    let mut file = fs_err::File::create(target).map_err(of)?;
    let mut copied = 0;
    while copied < size {
        if observer.stop() {
            return Err(StoreError::stopped());
        }
        let part = io::copy(&mut (&mut object).take(PART), &mut file).map_err(of)?;
        if part == 0 {
            return Err(StoreError::other("it is shorter than the store says; try again"));
        }
        copied += part;
        observer.advance(part);
    }
    file.flush().map_err(of)?;
    observer.end();
    Ok(size)
}

/// Refuses what has no room in a folder.
pub(crate) fn check_space(folder: &Path, size: u64) -> Result<(), StoreError> {
    let human = dtkc_human::bytes;
    if size > MAX_DOWNLOAD {
        return Err(StoreError::other(format!(
            "it has {}, more than the {} that are fetched",
            human(size),
            human(MAX_DOWNLOAD)
        )));
    }
    match free(folder) {
        Some(free) if size.saturating_add(LEFT) > free => Err(StoreError::other(format!(
            "it has {}, and in {} are {} free; free some space or choose another folder with DTKC_WORK_DIR or TMPDIR",
            human(size),
            folder.display(),
            human(free)
        ))),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let told = rustix::fs::statvfs(folder).ok()?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

#[cfg(not(unix))]
fn free(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_refused_before_it_comes() {
        let folder = tempfile::tempdir().unwrap();
        check_space(folder.path(), 1).unwrap();
        let error = check_space(folder.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("more than the"), "{error}");
        #[cfg(unix)]
        if free(folder.path()).is_some_and(|free| free < MAX_DOWNLOAD) {
            let error = check_space(folder.path(), MAX_DOWNLOAD).unwrap_err().to_string();
            assert!(error.contains("free some space"), "{error}");
        }
    }
}
