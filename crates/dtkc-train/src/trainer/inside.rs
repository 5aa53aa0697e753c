//! A look inside the network after an epoch, for those who study it (`dtkc-train mismatch`): it changes nothing.

use std::collections::BTreeMap;

use dtkc_methods::inside::Inside;
use dtkc_methods::kmeans::{KmeansOptions, Points, kmeans};
use dtkc_methods::learner::{EpochPlace, Passes as _, StepPlace, joined};
use dtkc_methods::places::Pass;

use super::Trainer;
use crate::error::TrainError;
use crate::log::InsideRecord;
use crate::restart::Restart;

/// Items whose features are clustered, at most: enough for a third digit, and they fit any memory.
const ITEMS: usize = 10_000;
/// Values of all features together, at most (256 MiB, of which k-means makes a copy); fewer items are taken where a backbone
/// says more.
const VALUES: usize = 1 << 26;
/// Items of a forward pass.
const CHUNK: usize = 500;
/// Batches over which cosines are averaged.
const BATCHES: usize = 4;
/// k-means on the features: the best of so many starts.
const STARTS: usize = 3;
const ITERATIONS: usize = 100;

impl Trainer<'_> {
    /// What is to be seen after an epoch, where somebody asked for it.
    pub(super) fn look_inside(
        &mut self,
        restart: &Restart,
        place: &EpochPlace,
    ) -> Result<Option<InsideRecord>, TrainError> {
        let every = self.config.run.inside_every;
        let is_due = every > 0 && (place.done.is_multiple_of(every) || place.done == place.epochs);
        let Some(inside) = restart.learner.inside().filter(|_| is_due) else { return Ok(None) };
        let nmi = self.feature_nmi(inside, restart)?;
        Ok(Some(InsideRecord { nmi, cosines: self.cosines(inside, place)? }))
    }

    /// NMI of the labels with k-means on what the backbone says; `None` where there are no labels.
    fn feature_nmi(&mut self, inside: &dyn Inside, restart: &Restart) -> Result<Option<f64>, TrainError> {
        let Some(labels) = &self.labels else { return Ok(None) };
        self.data.note("k-means on the features");
        let (mut values, mut truth, mut width) = (Vec::new(), Vec::new(), 1);
        for batch in joined(self.data.batches(Pass::Everything), CHUNK) {
            let batch = batch?;
            let features = inside.features(&batch.items);
            width = features.width;
            values.extend(features.values);
            truth.extend(batch.indices.iter().map(|&item| labels[item]));
            if truth.len() >= ITEMS || values.len() + CHUNK * width > VALUES {
                break;
            }
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Ok(None);
        }
        let clusters = restart.learner.clusters().min(truth.len());
        let options = KmeansOptions { clusters, starts: STARTS, iterations: ITERATIONS, tolerance: 1e-4, seed: 0 };
        let found = kmeans(Points { values: &values, width }, &options, &|| self.data.stop())?;
        let found: Vec<i64> = found.labels.into_iter().map(i64::from).collect();
        Ok(Some(dtkc_metrics::scores(&truth, &found)?.nmi))
    }

    /// The cosine between the gradient of what makes clusters and that of each other term, a mean over fixed batches.
    fn cosines(&mut self, inside: &dyn Inside, place: &EpochPlace) -> Result<BTreeMap<String, f64>, TrainError> {
        let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
        for batch in self.data.comparison().take(BATCHES) {
            let (batch, views) = batch?;
            // As the last step of the epoch saw it: weights that change with time have changed when the next one begins.
            let epoch = (place.done as f64).next_down();
            let here = StepPlace { stage: place.stage, epoch, epochs: place.epochs, views };
            for (name, cosine) in inside.gradients(&batch, &here).cosines() {
                let sum = sums.entry(name).or_default();
                *sum = (sum.0 + cosine, sum.1 + 1);
            }
        }
        Ok(sums.into_iter().map(|(name, (sum, count))| (name, sum / count as f64)).collect())
    }
}
