//! A whole run: find the number of clusters if it is not given, train, summarise. `fit` and `resume` are the same
//! from here on, because everything that is done already is on the disk.

use dtkc_dataset::Dataset;
use std::path::Path;


use crate::auto_k;
use crate::config::{Clusters, DataConfig, RunConfig};
use crate::error::TrainError;
use crate::log;
use crate::restart::Restart;
use crate::run_dir::RunDir;
use crate::summary::{self, RunFigures, Summary, Timing};
use crate::trainer::Trainer;

/// Describes the dataset of a new run.
pub fn describe_data(path: &Path) -> Result<DataConfig, TrainError> {
    let dataset = Dataset::open(path)?;
    let Some(shape) = dataset.image_shape() else {
        let text = format!("{} holds {}, but dtkc-train trains on images", path.display(), dataset.kind());
        return Err(TrainError::Mismatch(text));
    };
    Ok(DataConfig {
        path: std::path::absolute(path)?,
        name: dataset.name().to_owned(),
        fingerprint: dataset.fingerprint()?,
        images: dataset.len(),
        height: shape.height,
        width: shape.width,
        channels: shape.channels,
    })
}

/// Refuses a dataset that is not the one that a run began with.
pub fn check_data(config: &RunConfig) -> Result<(), TrainError> {
    let path = &config.data.path;
    if Dataset::open(path)?.fingerprint()? == config.data.fingerprint {
        Ok(())
    } else {
        Err(TrainError::DataChanged { path: path.clone() })
    }
}

/// Refuses what cannot work with this data, before any work.
pub fn check(config: &RunConfig) -> Result<(), TrainError> {
    let largest = match config.run.clusters {
        Clusters::Auto => config.run.k_range.last,
        Clusters::Fixed(clusters) => clusters,
        Clusters::Unset => return config.model().map(drop),
    };
    config.model_of(largest)?;
    if config.data.images < largest {
        let DataConfig { images, path, .. } = &config.data;
        let text = format!("{} holds {images} images, too few for {largest} clusters", path.display());
        return Err(TrainError::Mismatch(text));
    }
    Ok(())
}

/// Trains what is left of a run and writes its summary.
pub fn complete(run: &RunDir, mut config: RunConfig, quiet: bool) -> Result<Summary, TrainError> {
    if config.run.clusters == Clusters::Auto {
        let trials = auto_k::rank(run, &config, quiet)?;
        if !quiet {
            eprint!("{}", auto_k::table(&trials));
        }
        let best =
            trials.first().ok_or_else(|| TrainError::NothingTrained("no number of clusters was tried".into()))?;
        config.run.clusters = Clusters::Fixed(best.clusters);
        config.write(&run.config())?;
    }
    let mut trainer = Trainer::open(run, config.clone(), quiet)?;
    let restarts = trainer.train()?;
    let figures: Vec<RunFigures> = restarts.iter().filter_map(|r| figures(r, trainer.seed_of(r.index))).collect();
    let summary = summarise(run, &config, figures, &restarts)?;
    summary.write(&run.summary())?;
    Ok(summary)
}

fn figures(restart: &Restart, seed: u64) -> Option<RunFigures> {
    let outcome = restart.outcome.as_ref()?;
    Some(RunFigures {
        restart: restart.index,
        seed,
        ended: restart.ended?,
        epochs: restart.epoch,
        best_epoch: restart.best.as_ref().map_or(0, |best| best.epoch),
        training_loss: restart.best.as_ref().map_or(f64::INFINITY, |best| best.loss),
        loss: outcome.loss,
        acc: outcome.scores.map(|[acc, _, _]| acc),
        nmi: outcome.scores.map(|[_, nmi, _]| nmi),
        ari: outcome.scores.map(|[_, _, ari]| ari),
        used_clusters: outcome.sizes.iter().filter(|&&size| size > 0).count(),
        skipped_steps: restart.skipped,
    })
}

fn summarise(
    run: &RunDir,
    config: &RunConfig,
    runs: Vec<RunFigures>,
    restarts: &[Restart],
) -> Result<Summary, TrainError> {
    let Some(best_restart) = summary::best(&runs).map(|best| best.restart) else {
        let text = "no restart reached a finite loss; try a smaller --lr, another --seed or --preset plus";
        return Err(TrainError::NothingTrained(text.into()));
    };
    let best = restarts.iter().find(|restart| restart.index == best_restart);
    let mut cluster_sizes = best.and_then(|r| r.outcome.as_ref()).map(|o| o.sizes.clone()).unwrap_or_default();
    cluster_sizes.sort_unstable_by(|a, b| b.cmp(a));
    let records = log::read(&run.log())?;
    let seconds: f64 = records.iter().map(|record| record.seconds).sum();
    Ok(Summary {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        method: config.settings.method.to_string(),
        preset: config.settings.preset.to_string(),
        dataset: config.data.name.clone(),
        dataset_fingerprint: config.data.fingerprint.clone(),
        images: config.data.images,
        clusters: cluster_sizes.len(),
        seed: config.run.seed,
        config_hash: config.hash(),
        best_restart,
        cluster_sizes,
        acc: summary::spread(&runs, |run| run.acc),
        nmi: summary::spread(&runs, |run| run.nmi),
        runs,
        timing: Timing {
            seconds,
            loading_seconds: records.iter().map(|record| record.loading_seconds).sum(),
            images_per_second: (records.len() * config.data.images) as f64 / seconds.max(1e-9),
        },
    })
}
