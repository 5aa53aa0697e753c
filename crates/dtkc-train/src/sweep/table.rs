//! The figures of a sweep.

use std::path::Path;

use serde::Serialize;

use super::{Axis, Like, Point};
use crate::compare::table::{Figures, Spread, Table};
use crate::compare::{Record, Variant, table as comparison};

/// All tables of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Version of dtkc-train.
    pub version: String,
    /// What varies.
    pub axes: Vec<Axis>,
    /// One table per dataset.
    pub datasets: Vec<SweepTable>,
}

/// The table of one dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepTable {
    /// Its name.
    pub name: String,
    /// The line above it: items, classes, clusters.
    pub heading: String,
    /// Every point, those without a result, too.
    pub points: Vec<PointFigures>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The figures of one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointFigures {
    /// The value of each setting.
    pub values: Vec<String>,
    /// The cell.
    pub cell: String,
    /// Restarts that count.
    pub restarts: usize,
    /// Accuracy, where there are labels.
    pub acc: Option<Spread>,
    /// Normalised mutual information, where there are labels.
    pub nmi: Option<Spread>,
    /// The loss that decides between restarts, which needs no labels.
    pub loss: Option<Spread>,
    /// Wall time.
    pub seconds: f64,
    /// Best and mean accuracy that the paper has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<(f64, f64)>,
}

/// Makes the tables of these points from the runs below `root`.
pub fn table(root: &Path, record: &Record, axes: &[Axis], points: &[Point], like: Option<Like>) -> Sweep {
    let compared = comparison::compare(root, record, false);
    let of_set = |table: &Table| {
        let set = record.sets.iter().find(|set| set.name == table.name);
        let paper = |point: &Point| like.and_then(|like| like.published(set?, point.values.first()?));
        let figures = |point: &Point| {
            let is_it = |row: &&Figures| row.method.parse::<Variant>().is_ok_and(|variant| variant == point.variant);
            PointFigures { paper: paper(point), ..figures(point, table.methods.iter().find(is_it)) }
        };
        SweepTable {
            name: table.name.clone(),
            heading: crate::compare::files::heading(table),
            points: points.iter().map(figures).collect(),
            notes: crate::compare::files::remarks(table),
        }
    };
    let datasets = compared.datasets.iter().map(of_set).collect();
    Sweep { version: compared.version.clone(), axes: axes.to_vec(), datasets }
}

fn figures(point: &Point, row: Option<&Figures>) -> PointFigures {
    PointFigures {
        values: point.values.clone(),
        cell: point.variant.to_string(),
        restarts: row.map_or(0, |row| row.restarts),
        acc: row.and_then(|row| row.acc),
        nmi: row.and_then(|row| row.nmi),
        loss: row.and_then(|row| row.loss),
        seconds: row.map_or(0.0, |row| row.seconds),
        paper: None,
    }
}

impl SweepTable {
    /// Whether there are scores by labels.
    pub(super) fn is_labelled(&self) -> bool {
        self.points.iter().any(|point| point.acc.is_some())
    }
}
