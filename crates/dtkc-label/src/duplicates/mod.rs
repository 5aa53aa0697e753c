//! `--duplicates`: images that are the same but for size, compression, brightness or small cuts.
//!
//! - `print.rs` is what workers take of every image: a perceptual hash of it and of parts of it, and the model's embedding
//!   in bytes. It travels with the row in the journal; a shard leaves all of them in a file beside its output
//!   (`sidecar.rs`), for `merge`.
//! - `index.rs` finds hashes that are near, `store.rs` says whether two images are copies, `search.rs` makes groups.
//! - `table.rs` writes them down.

mod index;
pub mod print;
pub mod search;
pub mod sidecar;
pub mod store;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dtkc_observe::Observer;
pub use print::Print;
pub use search::Group;
use serde::Serialize;
pub use store::Store;

use crate::error::Result;
use crate::journal::with_suffix;
use crate::layout::Layout;
use crate::row::Row;

/// The most bits of 256 in which the hashes of copies differ, unless told otherwise.
pub const DISTANCE: u32 = 64;

/// Where the table of an output is.
pub fn path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".duplicates.csv")
}

/// How many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Groups of copies.
    pub groups: usize,
    /// Images in them.
    pub images: usize,
    /// Images in them but the one of each that is kept.
    pub surplus: usize,
    /// Where they are listed.
    pub table: PathBuf,
}

/// Copies that were found, and what the rows say of them.
pub struct Found {
    store: Store,
    groups: Vec<Group>,
    /// Of the images in groups, by their position in the input.
    said: BTreeMap<u64, Said>,
}

/// What a row says of an image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// Where it came from.
    pub path: String,
    /// Its cluster.
    pub cluster: u32,
    /// The name of that, or that it is unsure.
    pub name: String,
}

impl Found {
    /// Looks for copies among all images; `None` where the observer asks for a stop.
    pub fn search(store: Store, most: u32, observer: &dyn Observer) -> Option<Self> {
        observer.begin("find near-duplicates", "images", Some(store.len() as u64));
        let groups = search::find(&store, most, &mut || {
            observer.advance(1);
            !observer.stop()
        });
        observer.end();
        let groups = groups?;
        let members =
            groups.iter().flat_map(|group| std::iter::once(group.keep).chain(group.copies.iter().map(|c| c.0)));
        let said = members.map(|place| (store.index(place), Said::default())).collect();
        Some(Self { store, groups, said })
    }

    /// Remembers what a row says, if its image is in a group.
    pub fn hear(&mut self, row: &Row, layout: &Layout) {
        if let (Some(said), Ok(label)) = (self.said.get_mut(&row.index), &row.outcome) {
            *said = Said { path: row.path.clone(), cluster: label.cluster, name: layout.name(label).to_owned() };
        }
    }

    /// Writes the table beside `output`.
    pub fn write(&self, output: &Path) -> Result<Counts> {
        let path = path_for(output);
        table::write(self, &path)?;
        Ok(self.counts(path))
    }

    fn counts(&self, table: PathBuf) -> Counts {
        let images = self.said.len();
        Counts { groups: self.groups.len(), images, surplus: images - self.groups.len(), table }
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// An image's position in the input, and what its row says.
    pub fn image(&self, place: u32) -> (u64, &Said) {
        let index = self.store.index(place);
        (index, &self.said[&index])
    }

    /// The prints of all images.
    pub fn store(&self) -> &Store {
        &self.store
    }
}
