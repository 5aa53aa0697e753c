//! What lies below a folder of a store.

use std::collections::HashSet;

use dtkc_source::remote::Object as Listed;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::StoreError;
use crate::address::Address;
use crate::connect;
use crate::settings::Purpose;

/// Names of a folder at most: they are kept in memory, about a gigabyte of them.
const MAX_NAMES: usize = 10_000_000;
/// Bytes of their names together.
const MAX_TEXT: usize = 1 << 30;

/// All objects below a folder, or those directly in it.
pub(crate) async fn list(address: Address, deep: bool) -> Result<Vec<Listed>, StoreError> {
    let store = connect::store(&address, Purpose::Read)?;
    let of = |error: object_store::Error| StoreError::of(&address, &error);
    let prefix = &address.key;
    let mut names = Names::default();
    if deep {
        let mut stream = store.list(Some(prefix));
        while let Some(meta) = stream.next().await {
            names.add(prefix, &meta.map_err(of)?)?;
        }
    } else {
        let objects = store.list_with_delimiter(Some(prefix)).await.map_err(of)?.objects;
        objects.iter().try_for_each(|meta| names.add(prefix, meta))?;
    }
    Ok(names.finish())
}

/// Whether there is anything below a folder.
pub(crate) async fn is_folder(address: &Address) -> Result<bool, StoreError> {
    let store = connect::store(address, Purpose::Look)?;
    match store.list(Some(&address.key)).next().await {
        None => Ok(false),
        Some(Ok(_)) => Ok(true),
        Some(Err(error)) => Err(StoreError::of(address, &error)),
    }
}

#[derive(Default)]
struct Names {
    listed: Vec<Listed>,
    text: usize,
}

impl Names {
    fn add(&mut self, prefix: &Path, meta: &ObjectMeta) -> Result<(), StoreError> {
        let all = meta.location.as_ref();
        let below = match prefix.as_ref() {
            "" => all,
            folder => match all.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
                Some(below) => below,
                // The folder itself, as some programs leave it, or nothing that was asked for.
                None => return Ok(()),
            },
        };
        self.text += below.len();
        if self.listed.len() >= MAX_NAMES || self.text > MAX_TEXT {
            return Err(StoreError::other(format!(
                "it holds more than {} names; name its folders one by one",
                dtkc_human::count(self.listed.len() as u64)
            )));
        }
        self.listed.push(Listed { name: below.into(), size: meta.size });
        Ok(())
    }

    /// The names without the empty objects that some programs leave for folders.
    fn finish(self) -> Vec<Listed> {
        let mut listed = self.listed;
        let empty: HashSet<&str> = listed.iter().filter(|o| o.size == 0).map(|o| &*o.name).collect();
        if empty.is_empty() {
            return listed;
        }
        let parents = |name: &'_ str| name.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>();
        let folders: HashSet<String> = listed
            .iter()
            .flat_map(|o| parents(&o.name).into_iter().map(|at| &o.name[..at]))
            .filter(|folder| empty.contains(folder))
            .map(str::to_owned)
            .collect();
        listed.retain(|o| o.size > 0 || !folders.contains(&*o.name));
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_objects_for_folders_are_no_names() {
        let listed = |name: &str, size| Listed { name: name.into(), size };
        let names = Names {
            listed: vec![
                listed("a", 0),
                listed("a/1.png", 3),
                listed("b", 0),
                listed("a/c", 0),
                listed("a/c/d.png", 0),
            ],
            text: 0,
        };
        let left: Vec<_> = names.finish().into_iter().map(|o| o.name.into_string()).collect();
        assert_eq!(left, ["a/1.png", "b", "a/c/d.png"]);
    }
}
