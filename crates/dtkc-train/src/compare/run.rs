//! All cells of a comparison, one after the other.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use dtkc_human as human;
use dtkc_observe::Observer;

use super::cell::{Begin, Start};
use super::child::{self, Ended, Listener};
use super::pretraining::{self, sources_first};
use super::{Asked, Cell, Place, State, Variant, cell};
use crate::config::RunConfig;
use crate::error::TrainError;
use crate::run_dir::{self, RunDir};

/// Least time that a cell is begun with; what is left of a budget may be less.
const LEAST: Duration = Duration::from_millis(100);

/// A cell that has no result, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Its name.
    pub cell: String,
    /// Why.
    pub reason: String,
}

/// Brings every cell to its end, each with a process of `program`. What fails is told and does not stop the rest.
/// `written` is called when a cell has ended, to bring the tables up to date.
pub fn run(
    place: &mut Place,
    asked: &Asked,
    cells: &[Cell],
    program: &Path,
    observer: &dyn Observer,
    written: &dyn Fn(&Place) -> Result<(), TrainError>,
) -> Result<Vec<Failed>, TrainError> {
    let cells = &known_cells(place, asked, cells)?[..];
    let runner = Runner { asked, program, observer, count: cells.len() };
    let restarts: usize = cells.iter().map(|cell| cell.restarts).sum();
    observer.begin("compare", "restarts", Some(restarts as u64));
    let mut failed = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let ended = match observer.stop() {
            true => Ended::Stopped,
            false => runner.bring_to_end(place, cells, number)?,
        };
        match ended {
            Ended::Well => {}
            Ended::Failed(reason) => {
                observer.warn(&format!("{} failed: {reason}", cell.name()));
                failed.push(Failed { cell: cell.name(), reason });
            }
            Ended::Stopped => {
                observer.end();
                written(place)?;
                return Err(interrupted(place, cells));
            }
        }
        written(place)?;
    }
    observer.end();
    Ok(failed)
}

/// The cells as the record knows them and in the order in which they go, once nothing speaks against them.
pub(super) fn known_cells(place: &mut Place, asked: &Asked, cells: &[Cell]) -> Result<Vec<Cell>, TrainError> {
    let mut cells = cells.to_vec();
    place.record.name_as_known(&mut cells);
    sources_first(&place.record, &mut cells);
    place.record.check_settings(place.root(), &cells, asked.force)?;
    place.record.add_cells(&cells);
    place.save()?;
    Ok(cells)
}

fn interrupted(place: &Place, cells: &[Cell]) -> TrainError {
    let done = cells.iter().filter(|cell| place.left(cell).is_none()).count();
    TrainError::Interrupted(format!(
        "{done} of {} are done, and what the others had is saved in {}; run the same command again to go on",
        human::many(cells.len(), "cell"),
        place.root().display()
    ))
}

struct Runner<'a> {
    asked: &'a Asked,
    program: &'a Path,
    observer: &'a dyn Observer,
    count: usize,
}

impl Runner<'_> {
    /// Brings one cell to its end, if it is not there yet, and keeps in the record what became of it.
    fn bring_to_end(&self, place: &mut Place, cells: &[Cell], number: usize) -> Result<Ended, TrainError> {
        let cell = &cells[number];
        let Some(begin) = place.left(cell) else {
            self.observer.skip(cell.restarts as u64);
            return Ok(Ended::Well);
        };
        let left = cells[number..].iter().filter(|cell| place.left(cell).is_some()).count();
        let budget = match self.asked.budget.map(|budget| share(budget, place.record.spent_seconds, left)) {
            // A run that was begun keeps the time that it was given.
            Some(share) if share < LEAST && begin != Begin::Resume => {
                let reason = "the time is used up; give a larger --budget and run the command again";
                place.record.change(cell, |known| known.state = State::Failed(reason.into()));
                place.save()?;
                return Ok(Ended::Failed(reason.into()));
            }
            share => share,
        };
        self.announce(cell, number, begin);
        let began = Instant::now();
        let ended = self.start(place, cell, begin, budget);
        place.record.spent_seconds += began.elapsed().as_secs_f64();
        // What is wrong with one run is no reason to leave the others.
        let ended = ended.unwrap_or_else(|error| Ended::Failed(error.to_string()));
        place.record.change(cell, |known| {
            known.state = match &ended {
                Ended::Well => State::Done,
                Ended::Stopped => State::Begun,
                Ended::Failed(reason) => State::Failed(reason.clone()),
            }
        });
        place.save()?;
        Ok(ended)
    }

    fn announce(&self, cell: &Cell, number: usize, begin: Begin) {
        let (count, name) = (self.count, cell.name());
        let how = match begin {
            Begin::New => "begins",
            Begin::Anew => "begins anew",
            Begin::Resume => "goes on",
        };
        self.observer.say(&format!("cell {} of {count}: {name} {how}", number + 1));
    }

    /// Runs the process of a cell. The record says that it was begun before it begins.
    fn start(
        &self,
        place: &mut Place,
        cell: &Cell,
        begin: Begin,
        budget: Option<Duration>,
    ) -> Result<Ended, TrainError> {
        let words = begun(place, self.asked, cell, begin, budget)?;
        let voice = Voice { cell: cell.name(), observer: self.observer };
        child::run(self.program, &words, &voice, self.observer)
    }
}

/// Writes down that a cell is begun, and gives the words of its process.
pub(super) fn begun(
    place: &mut Place,
    asked: &Asked,
    cell: &Cell,
    begin: Begin,
    budget: Option<Duration>,
) -> Result<Vec<OsString>, TrainError> {
    let known = place.record.cell(&cell.set, &cell.variant);
    let source: Option<Variant> = match begin {
        Begin::Resume => known.and_then(|known| known.pretrained_by.clone()),
        Begin::New | Begin::Anew => {
            pretraining::source(place.root(), &place.record, cell).map(|known| known.variant.clone())
        }
    };
    let folder = source.as_ref().map(|source| cell::folder(place.root(), &cell.set, source));
    if begin == Begin::Resume {
        raise_restarts(&cell.folder(place.root()), cell.restarts, folder.as_deref())?;
    }
    place.record.change(cell, |known| {
        known.settings.clone_from(&cell.settings);
        known.restarts = known.restarts.max(cell.restarts);
        known.state = State::Begun;
        if begin != Begin::Resume {
            known.restarts = cell.restarts;
            known.pretrained_by = source;
        }
    });
    place.save()?;
    let start = Start { begin, told: &asked.passed_on, budget, pretrained: folder.as_deref() };
    Ok(cell.arguments(place.root(), &start))
}

/// An equal part of the time that is left, for each of `left` cells.
fn share(budget: Duration, spent: f64, left: usize) -> Duration {
    Duration::from_secs_f64((budget.as_secs_f64() - spent).max(0.0) / left.max(1) as f64)
}

/// Tells a run that was begun with fewer restarts that there are more, and where the run is now whose pretraining it began
/// with: `resume` takes over what that has more by now.
fn raise_restarts(folder: &Path, restarts: usize, source: Option<&Path>) -> Result<(), TrainError> {
    let run = RunDir::open(folder)?;
    let mut config = RunConfig::read(&run_dir::config_path(folder))?;
    if config.plan.restarts < restarts {
        config.plan.restarts = restarts;
        if let Some(source) = source {
            config.run.pretrained = std::path::absolute(source)?.to_string_lossy().into_owned();
        }
        config.write(&run.config())?;
    }
    Ok(())
}

/// What a cell says, with its name in front.
struct Voice<'a> {
    cell: String,
    observer: &'a dyn Observer,
}

impl Listener for Voice<'_> {
    fn restart(&self) {
        self.observer.advance(1);
    }

    fn progress(&self, text: &str) {
        self.observer.note(format_args!("{}: {text}", self.cell));
        // Nothing is done, but this is a moment to look.
        self.observer.advance(0);
    }

    fn say(&self, text: &str) {
        self.observer.say(&format!("{}: {text}", self.cell));
    }

    fn warn(&self, text: &str) {
        self.observer.warn(&format!("{}: {text}", self.cell));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_cell_leaves_is_for_the_others() {
        let hour = Duration::from_secs(3600);
        assert_eq!(share(hour, 0.0, 4), Duration::from_secs(900));
        assert_eq!(share(hour, 300.0, 3), Duration::from_secs(1100));
        assert_eq!(share(hour, 4000.0, 2), Duration::ZERO);
    }
}
