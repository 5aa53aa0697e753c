//! Items that are shown as pictures: chosen first, read and drawn together at the end.

use dtkc_dataset::Dataset;
use dtkc_report::{Frame, Picture, Report, Shot};

use super::items::{NONE, Seen};
use super::labels::Classes;
use super::painter::Painter;
use crate::error::TrainError;
use crate::spread::spread;

/// Bytes of text that these pictures may take together.
const BUDGET: usize = 2_600_000;
/// And one of them.
const PICTURE: usize = 8000;
/// Pictures by which their size is chosen.
const TRIED: usize = 40;
/// Items that are read at a time.
const READ: usize = 256;

/// Makes shots of items.
pub(super) struct Shots<'a> {
    dataset: &'a Dataset,
    seen: &'a Seen,
    classes: Option<&'a Classes>,
}

impl<'a> Shots<'a> {
    pub(super) fn new(dataset: &'a Dataset, seen: &'a Seen, classes: Option<&'a Classes>) -> Self {
        Self { dataset, seen, classes }
    }

    /// An item, without its picture yet.
    pub(super) fn of(&self, item: u32) -> Shot {
        let index = item as usize;
        let second = self.seen.seconds[index];
        Shot {
            index,
            name: None,
            confidence: f64::from(self.seen.confidence[index]),
            second: (second != NONE).then_some(usize::from(second)),
            label: self.classes.and_then(|classes| classes.of(index)),
            picture: None,
        }
    }

    /// Gives all shots of a report their names and pictures.
    pub(super) fn paint(&self, report: &mut Report, painter: &mut Painter) -> Result<(), TrainError> {
        let mut shots = every(report);
        shots.sort_by_key(|shot| shot.index);
        let mut items: Vec<usize> = shots.iter().map(|shot| shot.index).collect();
        let count = items.len();
        items.dedup();
        let Some(frame) = self.frame(&items, count, painter)? else { return Ok(()) };
        let mut made: Vec<(usize, Picture)> = Vec::with_capacity(items.len());
        for part in items.chunks(READ) {
            let read = self.dataset.items(part)?;
            for (&index, item) in part.iter().zip(read.iter()) {
                made.push((index, frame.picture(&painter.paint(index, item, frame.side)?)?));
            }
        }
        for shot in shots {
            let at = made.binary_search_by_key(&shot.index, |(index, _)| *index).ok();
            shot.picture = at.map(|at| made[at].1.clone());
            shot.name = self.dataset.paths(shot.index..shot.index + 1)?.and_then(|names| names.into_iter().next());
        }
        Ok(())
    }

    fn frame(&self, items: &[usize], count: usize, painter: &mut Painter) -> Result<Option<Frame>, TrainError> {
        if items.is_empty() {
            return Ok(None);
        }
        let tried: Vec<usize> = spread(items.len(), TRIED).map(|at| items[at]).collect();
        let read = self.dataset.items(&tried)?;
        let source = (painter.source(), painter.is_drawing());
        let pairs = || tried.iter().zip(read.iter());
        let sample = |side: usize| pairs().filter_map(|(&index, item)| painter.paint(index, item, side).ok()).collect();
        Ok(Some(Frame::find(count, BUDGET.min(count * PICTURE), source, sample)?))
    }
}

fn every(report: &mut Report) -> Vec<&mut Shot> {
    let mut shots = Vec::new();
    for cluster in &mut report.clusters {
        shots.extend(cluster.certain.iter_mut().chain(&mut cluster.typical).chain(&mut cluster.uncertain));
    }
    shots.extend(report.alike.iter_mut().flat_map(|pair| pair.shots.iter_mut().flatten()));
    shots.extend(report.mixed.iter_mut().flat_map(|mixed| mixed.shots.iter_mut().flatten()));
    shots
}
