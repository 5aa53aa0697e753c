//! What a run found, gathered for people: the facts of a [`dtkc_report::Report`].
//!
//! | what | where |
//! |---|---|
//! | one pass over the items: clusters, a sample of embeddings, small pictures | `items.rs`, `painter.rs` |
//! | restarts, curves, doubts | `restarts.rs`, `curves.rs` |
//! | how far restarts agree | `agree.rs` |
//! | clusters, their neighbours and halves | `groups.rs`, `shots.rs` |
//! | which pixels speak for a cluster | `importance.rs` |
//! | the map | `map.rs` |
//! | labels | `labels.rs` |
//! | the file | `output.rs` |
//!
//! Memory: a few numbers for every item, and for at most 60,000 of them the embedding (at most 128 MiB in all) and a picture of
//! some hundred bytes.

mod agree;
mod curves;
mod groups;
mod importance;
mod items;
mod labels;
mod map;
mod output;
mod painter;
mod restarts;
mod shots;

use std::path::Path;

use dtkc_dataset::Dataset;
use dtkc_item::ItemKind;
use dtkc_methods::Method;
use dtkc_observe::Observer;
use dtkc_report::{About, Doubt, Report};

use crate::config::RunConfig;
use crate::error::TrainError;
use crate::log::{self, EpochRecord};
use crate::saved::Saved;
use crate::summary::{Choice, Summary};
use crate::warnings::{self, Found};

pub use output::{Format, write};

use agree::Agreed;
use items::Seen;
use labels::Classes;
use painter::Painter;
use restarts::Past;
use shots::Shots;

/// What a report is about.
pub struct Asked<'a> {
    /// The run directory.
    pub root: &'a Path,
    /// The network.
    pub saved: &'a Saved,
    /// The dataset that is shown.
    pub data: &'a Path,
    /// Whether that is the one that the run was trained on.
    pub is_training_data: bool,
    /// Whether somebody named the restart.
    pub is_restart_asked: bool,
}

/// Gathers everything that a report says; what only a page shows (pictures, the map) for a page alone.
pub fn collect(asked: &Asked<'_>, format: Format, observer: &dyn Observer) -> Result<Report, TrainError> {
    let dataset = asked.saved.dataset(asked.data)?;
    let saved = asked.saved;
    let (mut painter, unseen) = painter_of(&dataset, format)?;
    let seen = items::look(saved, &dataset, painter.as_mut(), observer)?;
    let past = Past::read(asked.root, &saved.config, saved.restart)?;
    let agreed = agree::compare(asked, &past, &seen)?;
    let classes = Classes::read(&dataset)?;
    let sizes = seen.sizes();
    let shots = Shots::new(&dataset, &seen, classes.as_ref());
    let mut report = Report {
        about: about(asked, &dataset, &past, &seen),
        notes: notes(asked, &dataset).into_iter().chain(unseen).collect(),
        doubts: doubts(saved.config.method, &past, &agreed, &seen, &sizes),
        restarts: past.rows(),
        charts: curves::charts(&past),
        clusters: groups::clusters(&seen, &agreed, classes.as_ref(), &shots),
        scores: classes.as_ref().map(|classes| labels::scores(classes, &seen)).transpose()?.flatten(),
        ..Report::default()
    };
    groups::relate(&mut report, &seen, &shots);
    if let Some(painter) = &mut painter {
        shots.paint(&mut report, painter)?;
        importance::add(&mut report, saved, &dataset, painter, observer)?;
        report.map = map::map(&seen, &agreed, classes.as_ref(), &dataset, observer)?;
    }
    report.agreement = agreed.agreement;
    Ok(report)
}

/// What is known of a run without clusters, of which `why` says the reason: what it is about, and how far its training is. `None`
/// where it has not trained at all.
pub fn begun(root: &Path, why: &str) -> Result<Option<Report>, TrainError> {
    let config = RunConfig::read(&crate::run_dir::config_path(root))?;
    let past = Past::read(root, &config, 0)?;
    if past.records.is_empty() {
        return Ok(None);
    }
    let dataset = Dataset::open(&config.data.path)?;
    Ok(Some(Report {
        about: About { clusters: config.clusters()?, ..subject(&config, &dataset) },
        notes: vec![why.to_owned()],
        restarts: past.rows(),
        charts: curves::charts(&past),
        ..Report::default()
    }))
}

/// What draws items, where pictures are wanted. Features whose images are gone have none, which is said.
fn painter_of(dataset: &Dataset, format: Format) -> Result<(Option<Painter>, Option<String>), TrainError> {
    if format != Format::Html {
        return Ok((None, None));
    }
    match (Painter::new(dataset), dataset.kind()) {
        (Ok(painter), _) => Ok((Some(painter), None)),
        (Err(error), ItemKind::Features) => Ok((None, Some(format!("there are no pictures: {error}")))),
        (Err(error), _) => Err(error),
    }
}

fn about(asked: &Asked<'_>, dataset: &Dataset, past: &Past, seen: &Seen) -> About {
    About {
        clusters: seen.k,
        number: past.summary.as_ref().and_then(number),
        used: seen.sizes().iter().filter(|&&size| size > 0).count(),
        confidence: seen.mean_confidence().unwrap_or(0.0),
        restart: asked.saved.restart,
        why: past.why(asked.is_restart_asked),
        ..subject(&asked.saved.config, dataset)
    }
}

/// What is known of a run before it has clusters.
fn subject(config: &RunConfig, dataset: &Dataset) -> About {
    let kind = dataset.kind();
    About {
        dataset: dataset.name().to_owned(),
        kind: kind.noun().to_owned(),
        one: if kind == ItemKind::Sequences { "sequence" } else { "image" }.to_owned(),
        items: dataset.len(),
        shape: shape(dataset),
        method: config.method.to_string(),
        preset: config.preset.clone(),
        seed: config.run.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..About::default()
    }
}

/// What the items look like.
fn shape(dataset: &Dataset) -> String {
    match (dataset.image_shape(), dataset.sequence_lengths()) {
        (Some(shape), _) => shape.to_string(),
        (None, Some(lengths)) => {
            let (least, most) =
                (lengths.iter().min().copied().unwrap_or(0), lengths.iter().max().copied().unwrap_or(0));
            format!("{}, {least} to {most} steps", dataset.shape())
        }
        (None, None) => dataset.shape().to_string(),
    }
}

/// How the number of clusters was found, where it was not given.
fn number(summary: &Summary) -> Option<String> {
    let Choice { clusters, second, .. } = summary.chosen?;
    let second = second.map_or(String::new(), |second| format!("; the second best number was {second}"));
    Some(format!("The number {clusters} was found by --clusters auto{second}."))
}

fn notes(asked: &Asked<'_>, dataset: &Dataset) -> Vec<String> {
    let other = (!asked.is_training_data).then(|| {
        format!(
            "the network was trained on {}, and this page shows what it says about {}",
            asked.saved.config.data.name,
            dataset.name()
        )
    });
    asked.saved.unfinished.iter().cloned().chain(other).collect()
}

/// The rules of `fit`, on what the report shows.
fn doubts(method: Method, past: &Past, agreed: &Agreed, seen: &Seen, sizes: &[u64]) -> Vec<Doubt> {
    let losses = log::last_losses(&past.records, past.chosen);
    let confidence = seen.mean_confidence();
    // A restart that goes on has not ended, and its loss may well be falling.
    let ended = past.ended().unwrap_or(crate::restart::Ended::Budget);
    let (agreement, alone) = (agreed.ari, agreed.alone);
    let found = Found { method, sizes, confidence, agreement, alone, losses: &losses, ended };
    let plain = |warnings::Doubt { sign, remedy }| Doubt { sign, remedy };
    warnings::doubts(&found).into_iter().map(plain).collect()
}

/// The log of the run at `root`.
fn read_log(root: &Path) -> Result<Vec<EpochRecord>, TrainError> {
    log::read(&root.join(crate::run_dir::LOG))
}
