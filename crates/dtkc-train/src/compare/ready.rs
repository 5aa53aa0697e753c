//! Cells that other machines work on: which can begin now, and in which words.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

use super::cell::{Begin, Start};
use super::run::{begun, known_cells};
use super::{Asked, Cell, Place, STOP_WITH_INPUT, State, pretraining};
use crate::error::TrainError;
use crate::run_dir;
use crate::summary::Summary;

/// A cell that can begin now, wherever that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Its name.
    pub name: String,
    /// Its run directory.
    pub run: PathBuf,
    /// What makes the run directory, in words of this program; nothing where it is there.
    pub prepare: Vec<String>,
    /// What ends the run once all its parts are done.
    pub finish: Vec<String>,
}

/// The cells that are left and need not wait for another one: those that take over a pretraining do. What was trained elsewhere since the
/// last call is noticed; all is done when none is left.
pub fn ready(place: &mut Place, asked: &Asked, cells: &[Cell]) -> Result<Vec<Ready>, TrainError> {
    if asked.budget.is_some() {
        let text = "a limit on the time is shared out among cells that come one after the other; leave --budget out";
        return Err(TrainError::Setting(text.into()));
    }
    let cells = known_cells(place, asked, cells)?;
    for cell in &cells {
        if is_complete(place, cell) {
            place.record.change(cell, |known| known.state = State::Done);
        }
    }
    let mut found = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let Some(begin) = place.left(cell) else { continue };
        if begin != Begin::Resume && pretraining::waits(place.root(), &place.record, &cells, number) {
            continue;
        }
        let prepare = begun(place, asked, cell, begin, None)?;
        let start = Start { begin: Begin::Resume, told: &asked.passed_on, budget: None, pretrained: None };
        found.push(Ready {
            name: cell.name(),
            run: cell.folder(place.root()),
            prepare: if begin == Begin::Resume { Vec::new() } else { words(prepare) },
            finish: words(cell.arguments(place.root(), &start)),
        });
    }
    place.save()?;
    Ok(found)
}

/// Whether a cell that was begun has come to its end elsewhere.
fn is_complete(place: &Place, cell: &Cell) -> bool {
    let known = place.record.cell(&cell.set, &cell.variant);
    let Some(known) = known.filter(|known| known.state != State::Waiting && known.settings == cell.settings) else {
        return false;
    };
    let summary = Summary::read(&run_dir::summary_path(&cell.folder(place.root())));
    summary.is_ok_and(|summary| summary.restarts.len() >= known.restarts.max(cell.restarts))
}

/// Without what is between a process and the one that started it.
fn words(arguments: Vec<OsString>) -> Vec<String> {
    let arguments = arguments.into_iter().filter(|word| word.as_os_str() != STOP_WITH_INPUT);
    arguments.map(|word| word.to_string_lossy().into_owned()).collect()
}
