//! The folder of a comparison and its record: what was asked for, and what became of it.

use std::path::{Path, PathBuf};

use dtkc_files::{Lock, LockError};
use dtkc_item::ItemKind;
use serde::{Deserialize, Serialize};

use super::cell::{self, Begin};
use super::{Cell, Variant};
use crate::error::TrainError;
use crate::run_dir;

/// The record's file in the folder.
const RECORD: &str = "cells.json";

/// A dataset of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetRecord {
    /// Its name here: that of its file.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The set's own name.
    pub title: String,
    /// Hash of its content.
    pub fingerprint: String,
    /// Number of items.
    pub items: usize,
    /// Images or sequences.
    pub kind: ItemKind,
    /// Number of classes, where it has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// Number of clusters that is looked for.
    pub clusters: usize,
}

/// How far a cell is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its process has not begun.
    Waiting,
    /// Its process was begun and has not come to its end.
    Begun,
    /// It is complete.
    Done,
    /// It failed, for this reason.
    Failed(String),
}

/// A cell of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRecord {
    /// The dataset's name.
    pub set: String,
    /// The method with its changes. Called as it was when a cell was a method and nothing else.
    #[serde(rename = "method")]
    pub variant: Variant,
    /// The flags of `fit` that it was begun with, as far as they decide what a restart becomes.
    pub settings: Vec<String>,
    /// Restarts that were asked for.
    pub restarts: usize,
    /// The variant whose pretraining was taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretrained_by: Option<Variant>,
    /// How far it is.
    pub state: State,
}

impl CellRecord {
    /// Its run directory.
    pub fn folder(&self, root: &Path) -> PathBuf {
        cell::folder(root, &self.set, &self.variant)
    }
}

#[cfg(test)]
impl SetRecord {
    /// A set of which only the name matters.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            path: format!("{name}.h5").into(),
            title: name.into(),
            fingerprint: name.into(),
            items: 100,
            kind: ItemKind::Images,
            classes: None,
            clusters: 4,
        }
    }
}

/// What was asked for, and what became of it: `cells.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Every dataset so far.
    pub sets: Vec<SetRecord>,
    /// Every cell so far.
    pub cells: Vec<CellRecord>,
    /// The time that all processes took together.
    pub spent_seconds: f64,
}

impl Record {
    /// Reads the record of the comparison at `root`.
    pub fn read(root: &Path) -> Result<Self, TrainError> {
        let path = root.join(RECORD);
        if !path.is_file() {
            let text = format!(
                "{} holds no comparison (there is no {RECORD} in it); name the folder given to `dtkc-train compare --out`",
                root.display()
            );
            return Err(TrainError::Mismatch(text));
        }
        let text = fs_err::read_to_string(&path)?;
        serde_json::from_str(&text).map_err(|e| TrainError::ConfigFile { path, reason: e.to_string() })
    }

    /// The record of a cell.
    pub fn cell(&self, set: &str, variant: &Variant) -> Option<&CellRecord> {
        self.cells.iter().find(|cell| cell.set == set && cell.variant == *variant)
    }

    /// Takes in the cells of a command that are not known yet.
    pub(super) fn add_cells(&mut self, cells: &[Cell]) {
        for cell in cells {
            if self.cell(&cell.set, &cell.variant).is_none() {
                self.cells.push(CellRecord {
                    set: cell.set.clone(),
                    variant: cell.variant.clone(),
                    settings: cell.settings.clone(),
                    restarts: cell.restarts,
                    pretrained_by: None,
                    state: State::Waiting,
                });
            }
        }
    }

    /// Calls cells as they were called when they were begun: the same changes in other words are in the same folder.
    pub(super) fn name_as_known(&self, cells: &mut [Cell]) {
        for cell in cells {
            if let Some(known) = self.cell(&cell.set, &cell.variant) {
                cell.variant = known.variant.clone();
            }
        }
    }

    /// Changes the record of a cell.
    pub(super) fn change(&mut self, cell: &Cell, change: impl FnOnce(&mut CellRecord)) {
        let known = self.cells.iter_mut().find(|known| known.set == cell.set && known.variant == cell.variant);
        if let Some(known) = known {
            change(known);
        }
    }

    pub(super) fn add_sets(&mut self, sets: &[SetRecord]) -> Result<(), TrainError> {
        for set in sets {
            match self.sets.iter_mut().find(|known| known.name == set.name) {
                Some(known) if known.fingerprint != set.fingerprint => {
                    return Err(TrainError::Mismatch(format!(
                        "{} is not the dataset {} that this comparison began with (its content differs); restore it, \
                         rename it or choose another --out",
                        set.path.display(),
                        set.name
                    )));
                }
                Some(known) => *known = set.clone(),
                None => self.sets.push(set.clone()),
            }
        }
        Ok(())
    }

    /// Refuses cells that were begun with other settings, unless nothing is lost by beginning anew or `force` says so.
    pub(super) fn check_settings(&self, root: &Path, cells: &[Cell], force: bool) -> Result<(), TrainError> {
        for cell in cells {
            let Some(known) = self.cell(&cell.set, &cell.variant) else { continue };
            // What failed has nothing to lose, unless only its export did.
            let is_kept = matches!(known.state, State::Begun | State::Done)
                || run_dir::summary_path(&cell.folder(root)).is_file();
            if is_kept && !force && known.settings != cell.settings {
                return Err(TrainError::Setting(format!(
                    "{} was begun with other settings ({} then, {} now); ask for the same, choose another --out, or give \
                     --force to begin such cells anew",
                    cell.folder(root).display(),
                    beside(&known.settings, &cell.settings),
                    beside(&cell.settings, &known.settings)
                )));
            }
        }
        Ok(())
    }
}

/// The words of one list of flags that the other has otherwise, with the flags that they belong to.
fn beside(words: &[String], others: &[String]) -> String {
    let flags = |words: &[String]| {
        let mut flags: Vec<String> = Vec::new();
        for word in words {
            match flags.last_mut() {
                Some(last) if !word.starts_with("--") => *last = format!("{last} {word}"),
                _ => flags.push(word.clone()),
            }
        }
        flags
    };
    let others = flags(others);
    let own: Vec<String> = flags(words).into_iter().filter(|flag| !others.contains(flag)).collect();
    if own.is_empty() { "nothing of it".into() } else { own.join(" ") }
}

/// The folder of a comparison, held by this process.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    /// What was asked for, and what became of it.
    pub record: Record,
    // Held for its lock alone.
    _lock: Lock,
}

impl Place {
    /// Opens the folder of a comparison, or makes it. One that holds anything else is refused.
    pub fn open(root: &Path) -> Result<Self, TrainError> {
        if root.is_file() {
            return Err(TrainError::NotAFolder { path: root.to_owned() });
        }
        if root.is_dir() && !root.join(RECORD).is_file() && holds_anything(root)? {
            return Err(TrainError::Mismatch(format!(
                "{} holds other files and no comparison; choose a new or empty folder for --out",
                root.display()
            )));
        }
        fs_err::create_dir_all(root)?;
        let path = root.join(".lock");
        let lock = Lock::take(&path).map_err(|error| match error {
            LockError::Held(holder) => TrainError::Locked { path: root.to_owned(), holder },
            LockError::Io(source) => TrainError::Lock { path, source },
        })?;
        let record = if root.join(RECORD).is_file() { Record::read(root)? } else { Record::default() };
        Ok(Self { root: root.to_owned(), record, _lock: lock })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes in the datasets of a command. One that is known must still be the same.
    pub fn add_sets(&mut self, sets: &[SetRecord]) -> Result<(), TrainError> {
        self.record.add_sets(sets)
    }

    /// Writes the record.
    pub(super) fn save(&self) -> Result<(), TrainError> {
        let mut text = serde_json::to_string_pretty(&self.record).map_err(std::io::Error::from)?;
        text.push('\n');
        Ok(dtkc_files::write(&self.root.join(RECORD), text.as_bytes())?)
    }

    /// How a cell has to begin; `None` when there is nothing left to do.
    pub(super) fn left(&self, cell: &Cell) -> Option<Begin> {
        let folder = cell.folder(&self.root);
        let is_there = run_dir::config_path(&folder).is_file();
        let Some(known) = self.record.cell(&cell.set, &cell.variant).filter(|_| is_there) else {
            return Some(Begin::New);
        };
        let is_complete =
            known.state == State::Done && known.restarts >= cell.restarts && run_dir::summary_path(&folder).is_file();
        match known.settings == cell.settings {
            false => Some(Begin::Anew),
            true if is_complete => None,
            true => Some(Begin::Resume),
        }
    }
}

fn holds_anything(root: &Path) -> Result<bool, TrainError> {
    for entry in fs_err::read_dir(root)? {
        if !entry?.file_name().to_string_lossy().starts_with('.') {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
