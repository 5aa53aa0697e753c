//! A whole run: find the number of clusters if it is not given, train, summarise. `fit` and `resume` are the same
//! from here on, because everything that is done already is on the disk.

use std::path::Path;
use std::time::{Duration, Instant};

use dtkc_dataset::{DataError, Dataset};
use dtkc_methods::Method;
use dtkc_observe::Observer;

use crate::auto_k;
use crate::batch;
use crate::choice;
use crate::config::{Clusters, DataConfig, RunConfig, StepCounts};
use crate::error::TrainError;
use crate::forecast;
use crate::log::{self, EpochRecord};
use crate::pretrained;
use crate::resources;
use crate::restart::{Ended, Outcome, Restart};
use crate::run_dir::RunDir;
use crate::summary::{self, Choice, RestartFigures, Summary, Timing};
use crate::trainer::Trainer;
use crate::warnings::{self, Found};

/// Describes the dataset of a new run.
pub fn describe_data(path: &Path) -> Result<DataConfig, TrainError> {
    let dataset = Dataset::open(path)?;
    Ok(DataConfig {
        path: std::path::absolute(path)?,
        name: dataset.name().to_owned(),
        fingerprint: dataset.fingerprint()?,
        items: dataset.len(),
        input: dataset.shape(),
        resize: dataset.resize(),
        steps: dataset.sequence_lengths().map(|lengths| StepCounts::of(&lengths)),
    })
}

/// Refuses a dataset that is not the one that a run began with.
pub fn check_data(config: &RunConfig) -> Result<(), TrainError> {
    let path = &config.data.path;
    let dataset = Dataset::open(path).map_err(|error| match error {
        DataError::Missing { path } => TrainError::DataMoved { path },
        other => other.into(),
    })?;
    if dataset.fingerprint()? == config.data.fingerprint {
        Ok(())
    } else {
        Err(TrainError::DataChanged { path: path.clone() })
    }
}

/// Makes the settings of a new run fit its data, sets what was left open, and refuses what cannot work. The batch is left as it
/// is where somebody chose it (`is_batch_given`).
pub fn prepare(config: &mut RunConfig, is_batch_given: bool, observer: &dyn Observer) -> Result<(), TrainError> {
    narrow(config)?;
    let reduced = config.settings.suit(config.data.input);
    let enlarged = if is_batch_given { None } else { batch::suit(config) };
    let per_step = config.items_per_step();
    config.plan.set_epochs(config.data.items, per_step);
    config.settings.set_epochs(config.data.items, per_step);
    check(config)?;
    forecast::check_memory(config)?;
    reduced.iter().chain(&enlarged).for_each(|text| observer.say(text));
    Ok(())
}

/// Takes numbers of clusters out of the range of `auto` that there are not enough items for.
fn narrow(config: &mut RunConfig) -> Result<(), TrainError> {
    let DataConfig { items, path, input, .. } = &config.data;
    let range = &mut config.run.k_range;
    if config.run.clusters != Clusters::Auto || range.last <= *items {
        return Ok(());
    }
    if range.first > *items {
        let (kind, first) = (input.kind().noun(), range.first);
        let text = format!("{} holds {items} {kind}, too few for {first} clusters or more (--k-range)", path.display());
        return Err(TrainError::Mismatch(text));
    }
    range.last = *items;
    Ok(())
}

/// Refuses what cannot work with this data, before any work.
fn check(config: &RunConfig) -> Result<(), TrainError> {
    if config.run.clusters == Clusters::Unset {
        return config.clusters().map(drop);
    }
    let largest = config.largest_k();
    config.settings.check_task(config.data.input, largest)?;
    if !config.run.pretrained.is_empty() && !config.settings.has_pretraining() {
        let text = format!(
            "{} has no pretraining that another run could take the place of: leave --pretrained out",
            config.method
        );
        return Err(TrainError::Setting(text));
    }
    if config.data.items < largest {
        let DataConfig { items, path, input, .. } = &config.data;
        let kind = input.kind().noun();
        let text = format!("{} holds {items} {kind}, too few for {largest} clusters", path.display());
        return Err(TrainError::Mismatch(text));
    }
    Ok(())
}

/// Trains what is left of a run and writes its summary.
pub fn complete(run: &RunDir, mut config: RunConfig, observer: &dyn Observer) -> Result<Summary, TrainError> {
    let begin = Instant::now();
    find_number(run, &mut config, observer)?;
    let mut trainer = Trainer::open(run, config.clone(), observer)?;
    trainer.set_begin(begin);
    let restarts = trainer.train()?;
    let number = |restart: &Restart| pretrained::number_of(run.root(), &config, restart.index);
    let mut figures: Vec<_> = restarts.iter().filter_map(|r| figures(r, trainer.seed_of(r.index), number(r))).collect();
    let records = log::read(&run.log())?;
    figures.iter_mut().for_each(|one| one.machines = log::machines(&records, one.restart));
    let timing = timing(run, &config, trainer.unlogged())?;
    let mut summary = summarise(&config, figures, &restarts, timing)?;
    summary.warnings = warnings_of(run, &config, summary.best_restart, &restarts)?;
    summary.warnings.extend(warnings::of_machines(summary.restarts.iter().flat_map(|one| &one.machines)));
    summary.chosen = Choice::of(&auto_k::recorded(run)?).filter(|chosen| chosen.clusters == summary.clusters);
    summary.write(&run.summary())?;
    Ok(summary)
}

/// Settles the number of clusters where it is to be found.
pub fn find_number(run: &RunDir, config: &mut RunConfig, observer: &dyn Observer) -> Result<(), TrainError> {
    if config.run.clusters != Clusters::Auto {
        return Ok(());
    }
    let trials = auto_k::rank(run, config, observer)?;
    observer.say(&format!("{}{}", auto_k::table(&trials), auto_k::sentence(&trials)));
    let best = trials.first().ok_or_else(|| TrainError::NothingTrained("no number of clusters was tried".into()))?;
    config.run.clusters = Clusters::Fixed(best.clusters);
    config.write(&run.config())
}

fn figures(restart: &Restart, seed: u64, pretrained: Option<usize>) -> Option<RestartFigures> {
    let outcome = restart.outcome.as_ref()?;
    Some(RestartFigures {
        restart: restart.index,
        seed,
        ended: restart.ended?,
        epochs: restart.epoch,
        best_epoch: restart.best.as_ref().map_or(0, |best| best.epoch),
        training_loss: restart.best.as_ref().and_then(|best| summary::finite(best.loss)),
        loss: summary::finite(outcome.loss),
        acc: outcome.scores.map(|[acc, _, _]| acc),
        nmi: outcome.scores.map(|[_, nmi, _]| nmi),
        ari: outcome.scores.map(|[_, _, ari]| ari),
        used_clusters: outcome.sizes.iter().filter(|&&size| size > 0).count(),
        skipped_steps: restart.skipped,
        pretrained,
        machines: Vec::new(),
    })
}

fn summarise(
    config: &RunConfig,
    figures: Vec<RestartFigures>,
    restarts: &[Restart],
    timing: Timing,
) -> Result<Summary, TrainError> {
    let Some((best_restart, best_by)) = choice::choose(config.method, &figures, restarts) else {
        return Err(TrainError::NothingTrained(format!("no restart reached a finite loss; {}", remedy(config))));
    };
    let best = restarts.iter().find(|restart| restart.index == best_restart);
    let mut cluster_sizes = best.and_then(|r| r.outcome.as_ref()).map(|o| o.sizes.clone()).unwrap_or_default();
    cluster_sizes.sort_unstable_by(|a, b| b.cmp(a));
    Ok(Summary {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        method: config.method.to_string(),
        preset: config.preset.clone(),
        dataset: config.data.name.clone(),
        dataset_fingerprint: config.data.fingerprint.clone(),
        kind: config.data.input.kind(),
        items: config.data.items,
        clusters: cluster_sizes.len(),
        seed: config.run.seed,
        config_hash: config.hash()?,
        best_restart,
        best_by,
        cluster_sizes,
        acc: summary::spread(&figures, best_restart, |restart| restart.acc),
        nmi: summary::spread(&figures, best_restart, |restart| restart.nmi),
        chosen: None,
        warnings: Vec::new(),
        restarts: figures,
        timing,
    })
}

/// What may help where no number stayed finite.
fn remedy(config: &RunConfig) -> &'static str {
    match config.method {
        Method::Dtkc | Method::Ddc => "try a smaller --lr, another --seed or --preset plus",
        _ if config.settings.has_pretraining() => {
            "try a smaller --lr (for the pretraining --set pretraining.optim.lr=X) or another --seed"
        }
        _ => "try a smaller --lr or another --seed",
    }
}

/// What looks wrong about the restart that was chosen.
fn warnings_of(run: &RunDir, config: &RunConfig, best: usize, restarts: &[Restart]) -> Result<Vec<String>, TrainError> {
    let Some(restart) = restarts.iter().find(|restart| restart.index == best) else { return Ok(Vec::new()) };
    let (Some(outcome), Some(ended)) = (&restart.outcome, restart.ended) else { return Ok(Vec::new()) };
    let records = log::read(&run.log())?;
    let losses = log::last_losses(&records, best);
    let others = || restarts.iter().filter(|other| other.index != best);
    let (agreement, alone) = (agreement(outcome, others())?, alone(outcome, others()));
    let Outcome { sizes, confidence, .. } = outcome;
    let (method, confidence) = (config.method, *confidence);
    Ok(warnings::warnings(&Found { method, sizes, confidence, agreement, alone, losses: &losses, ended }))
}

/// Mean ARI of an outcome with those of other restarts; pruned ones had no chance to find the same.
fn agreement<'a>(best: &Outcome, others: impl Iterator<Item = &'a Restart>) -> Result<Option<f64>, TrainError> {
    let ended = others.filter(|other| other.ended != Some(Ended::Pruned)).filter_map(|other| other.outcome.as_ref());
    let mut found = Vec::new();
    for other in ended.filter(|other| !other.sample.is_empty() && other.sample.len() == best.sample.len()) {
        found.push(dtkc_metrics::ari(&whole(&best.sample), &whole(&other.sample))?);
    }
    Ok(dtkc_metrics::mean(&found))
}

/// Clusters of an outcome that none of the other restarts has, pruned ones included; `None` where there are none.
fn alone<'a>(best: &Outcome, others: impl Iterator<Item = &'a Restart>) -> Option<usize> {
    let others: Vec<Vec<i64>> = others.filter_map(|other| Some(whole(&other.outcome.as_ref()?.sample))).collect();
    let others: Vec<&[i64]> = others.iter().map(Vec::as_slice).filter(|other| !other.is_empty()).collect();
    (!others.is_empty() && !best.sample.is_empty()).then(|| choice::alone(&whole(&best.sample), &others))
}

fn whole(sample: &[u32]) -> Vec<i64> {
    sample.iter().map(|&cluster| i64::from(cluster)).collect()
}

/// What a run has taken of the machine: in this process, of which `unlogged` is in no line of the log, and in those before.
fn timing(run: &RunDir, config: &RunConfig, unlogged: Duration) -> Result<Timing, TrainError> {
    let records = log::read(&run.log())?;
    // A finished run that is resumed has nothing to do, and keeps the figures of those who did it.
    let before = Summary::read(&run.summary()).ok().map(|summary| summary.timing).unwrap_or_default();
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    let wall = |record: &EpochRecord| record.wall_seconds.unwrap_or(record.seconds);
    let wall: f64 = records.iter().map(wall).sum::<f64>() + unlogged.as_secs_f64();
    let peaks = records.iter().map(|record| record.peak_memory_bytes);
    Ok(Timing {
        seconds,
        loading_seconds: records.iter().map(|record| record.loading_seconds).sum(),
        items_per_second: (records.len() * config.data.items) as f64 / seconds.max(1e-9),
        wall_seconds: Some(before.wall_seconds.map_or(wall, |before| before.max(wall))),
        peak_memory_bytes: peaks.chain([before.peak_memory_bytes, resources::peak_memory()]).flatten().max(),
    })
}
