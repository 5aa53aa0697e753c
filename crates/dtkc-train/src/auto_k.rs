//! `--clusters auto`: which number of clusters the data itself supports, without labels.
//!
//! For every number k two short runs with different seeds are made. Two questions are asked of them:
//!
//! - **stability**: do both find the same groups? The adjusted Rand index of the two assignments; 0 is chance, 1 is
//!   the same groups. A k that does not fit the data cuts it at arbitrary places, and elsewhere with another seed.
//! - **silhouette** of the embedding, the mean of both runs: are the groups apart from each other?
//!
//! The score is the mean of the two. It is a rough guide for data about which nothing is known: short runs find the
//! coarse groups first, so look at the whole ranking, and at neighbours of the best k.

use dtkc_dataset::Batches;
use std::fmt::Write as _;
use std::io::Write as _;

use burn::module::Module as _;
use dtkc_cli::{Progress, interrupt};
use dtkc_core::Model;
use dtkc_core::augment::BatchKey;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::config::RunConfig;
use crate::error::TrainError;
use crate::monitor::argmax;
use crate::recipe::{Parts, Recipe, StepPlace};
use crate::run_dir::RunDir;
use crate::seeds::{self, Purpose};
use crate::{eval, trainer};

/// Images on which assignments are compared.
const COMPARED: usize = 4000;
/// Images of which the silhouette is taken; its cost is quadratic.
const SILHOUETTE: usize = 2000;
/// Epoch number of the loader for the compared images.
const COMPARED_EPOCH: u64 = (1 << 62) + 4;

/// What was found for one number of clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The number of clusters.
    pub clusters: usize,
    /// Mean of stability and silhouette: the ranking goes by it.
    pub score: f64,
    /// Adjusted Rand index between the two runs.
    pub stability: f64,
    /// Mean silhouette of the two embeddings.
    pub silhouette: f64,
    /// Clusters that were used, in the run that used fewer.
    pub used_clusters: usize,
}

/// Tries every number of the range that was not tried before and returns the ranking, best first.
pub fn rank(run: &RunDir, config: &RunConfig, quiet: bool) -> Result<Vec<Trial>, TrainError> {
    let mut trials = read(run)?;
    let range = config.run.k_range;
    let wanted: Vec<usize> =
        (range.first..=range.last).filter(|k| trials.iter().all(|trial| trial.clusters != *k)).collect();
    let total = (wanted.len() * 2 * config.run.trial_steps) as u64;
    let progress = Progress::new_unless(quiet, "try clusters", "steps", Some(total));
    let mut search = Search { run, config, batches: trainer::open_batches(config)?, progress };
    for k in wanted {
        search.progress.note(format!("k = {k}"));
        let trial = search.try_one(k)?;
        append(run, &trial)?;
        trials.push(trial);
    }
    search.progress.finish();
    trials.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.clusters.cmp(&b.clusters)));
    Ok(trials)
}

struct Search<'a> {
    run: &'a RunDir,
    config: &'a RunConfig,
    batches: Batches,
    progress: Progress,
}

impl Search<'_> {
    fn try_one(&mut self, clusters: usize) -> Result<Trial, TrainError> {
        let options = &self.config.run;
        let mut settings = self.config.settings.clone();
        // The schedule of the learning rate should come to its end within the trial.
        settings.plan.epochs = options.trial_steps.div_ceil(self.batches.batches_per_epoch()).max(1);
        let recipe = Recipe::new(&settings, self.config.model_of(clusters)?, options.device.open()?)?;
        let mut found = Vec::new();
        for attempt in 0..2 {
            let mut model = self.short_run(&recipe, [clusters as u64, attempt])?;
            if options.refresh_statistics {
                eval::refresh_statistics(&recipe, &mut model, &mut self.batches)?;
            }
            found.push(look(&recipe, &model, &mut self.batches)?);
        }
        let stability = dtkc_metrics::ari(&found[0].clusters, &found[1].clusters)?;
        let seed = seeds::derive(options.seed, Purpose::Sample, &[clusters as u64]);
        let silhouette = found.iter().map(|seen| silhouette(seen, seed)).sum::<f64>() / 2.0;
        let used_clusters = found.iter().map(Seen::used).min().unwrap_or(0);
        Ok(Trial { clusters, score: (stability + silhouette) / 2.0, stability, silhouette, used_clusters })
    }

    /// Trains new weights for `trial_steps` steps.
    fn short_run(&mut self, recipe: &Recipe, place: [u64; 2]) -> Result<Model, TrainError> {
        let (seed, steps) = (self.config.run.seed, self.config.run.trial_steps);
        let mut model = recipe.init(seeds::derive(seed, Purpose::Weights, &place));
        let mut adam = recipe.adam();
        let views = seeds::derive(seed, Purpose::Augmentation, &place);
        let per_epoch = self.batches.batches_per_epoch();
        let mut step = 0;
        for epoch in 0u64.. {
            // Orders that no restart uses, different for the two attempts.
            let order = (1 << 61) | (place[1] << 40) | epoch;
            for (i, batch) in self.batches.epoch(order).enumerate() {
                if step == steps {
                    return Ok(model);
                }
                let key = BatchKey { seed: views, epoch, batch: i as u64 };
                let at = StepPlace { key, epoch: step as f64 / per_epoch as f64 };
                recipe.step(&mut model, &mut adam, &batch?.images, at, &mut Parts::default());
                step += 1;
                self.progress.inc(1);
                if interrupt::requested() {
                    let root = self.run.root().display();
                    let text = format!("the numbers tried so far are saved; go on with `dtkc-train resume {root}`");
                    return Err(TrainError::Interrupted(text));
                }
            }
        }
        Ok(model)
    }
}

/// Clusters and embedding of the compared images, in a fixed order.
struct Seen {
    clusters: Vec<i64>,
    embedding: Array2<f32>,
}

impl Seen {
    fn used(&self) -> usize {
        self.clusters.iter().collect::<std::collections::BTreeSet<_>>().len()
    }
}

fn look(recipe: &Recipe, model: &Model, batches: &mut Batches) -> Result<Seen, TrainError> {
    let valid = model.valid();
    let (k, hidden) = (recipe.clusters(), recipe.model().config().network.hidden);
    let (mut clusters, mut values) = (Vec::new(), Vec::new());
    for batch in batches.epoch(COMPARED_EPOCH) {
        let output = valid.forward_eval(recipe.clean(&batch?.images));
        let membership: Vec<f32> = output.membership.into_data().iter::<f32>().collect();
        clusters.extend(membership.chunks_exact(k).map(|row| argmax(row) as i64));
        values.extend(output.embedding.into_data().iter::<f32>());
        if clusters.len() >= COMPARED {
            break;
        }
    }
    let embedding = Array2::from_shape_vec((clusters.len(), hidden), values);
    let embedding = embedding.map_err(|e| TrainError::Mismatch(e.to_string()))?;
    Ok(Seen { clusters, embedding })
}

/// A run that put everything into one cluster has no silhouette; that is the worst.
fn silhouette(seen: &Seen, seed: u64) -> f64 {
    dtkc_metrics::silhouette(&seen.embedding.view(), &seen.clusters, SILHOUETTE, seed).unwrap_or(-1.0)
}

/// The ranking for people.
pub fn table(trials: &[Trial]) -> String {
    let mut out = String::from("clusters  score  stability  silhouette  used\n");
    for (place, trial) in trials.iter().enumerate() {
        let Trial { clusters, score, stability, silhouette, used_clusters } = trial;
        let mark = if place == 0 { '*' } else { ' ' };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{mark}{clusters:>7}  {score:>5.3}  {stability:>9.3}  {silhouette:>10.3}  {used_clusters:>4}"
        );
    }
    out
}

fn read(run: &RunDir) -> Result<Vec<Trial>, TrainError> {
    let path = run.trials();
    if !path.exists() {
        return Ok(Vec::new());
    }
    // A line that was cut off by a crash is tried again.
    let text = fs_err::read_to_string(path)?;
    Ok(text.lines().map_while(|line| serde_json::from_str(line).ok()).collect())
}

fn append(run: &RunDir, trial: &Trial) -> Result<(), TrainError> {
    // Rewritten as a whole: it is small, and a half-written line of a crash must not stay in its middle.
    let mut trials = read(run)?;
    trials.push(trial.clone());
    let mut text = Vec::new();
    for trial in &trials {
        writeln!(text, "{}", serde_json::to_string(trial).unwrap_or_default())?;
    }
    Ok(dtkc_files::write(&run.trials(), &text)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run_dir::Existing;

    #[test]
    fn trials_survive_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), Existing::Refuse).unwrap();
        let trial = |clusters| Trial { clusters, score: 0.5, stability: 0.4, silhouette: 0.6, used_clusters: clusters };
        append(&run, &trial(3)).unwrap();
        append(&run, &trial(4)).unwrap();
        let mut text = std::fs::read_to_string(run.trials()).unwrap();
        text.push_str("{\"clusters\":5,");
        std::fs::write(run.trials(), text).unwrap();
        assert_eq!(read(&run).unwrap(), [trial(3), trial(4)]);
        append(&run, &trial(5)).unwrap();
        assert_eq!(read(&run).unwrap().len(), 3);
    }

    #[test]
    fn the_ranking_marks_the_first() {
        let trial = |clusters, score| Trial { clusters, score, stability: 0.4, silhouette: 0.6, used_clusters: 3 };
        let text = table(&[trial(10, 0.75), trial(9, 0.5)]);
        assert!(text.contains("*     10  0.750      0.400       0.600     3"), "{text}");
    }
}
