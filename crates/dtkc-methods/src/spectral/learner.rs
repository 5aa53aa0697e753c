//! Spectral clustering as a learner: the clusters are found when the first stage begins; then a network learns them, so
//! that new images can be assigned.

use burn::module::Module as _;
use burn::tensor::Device;
use dtkc_core::augment::BatchKey;
use dtkc_core::loss::cross_entropy_with;
use dtkc_core::{Input, LossValues, Model, NamedArray, StatisticsPass, Values};
use dtkc_item::{Batch, ItemShape, Items};
use dtkc_onnx::Network;

use super::embedding::{EXACT, SpectralOptions, spectral};
use super::settings::Settings;
use super::suited::Suited;
use crate::features::{Described, read_features};
use crate::learner::{
    Answers, CLUSTERING, INITIALISATION, Learner, Passes, Stage, StepClock, StepPlace, StepResult, joined,
};
use crate::nearest::{
    Images, Likeness, Resampled, Rows, read_sequences, seconds_of_all_pairs, seconds_of_all_sequences,
};
use crate::optimizer::Optimizer;
use crate::places::Pass;
use crate::sequences::{clean_input, learn_scaling};
use crate::{LearnError, Task, arrays};

/// Images after which batch-norm statistics no longer change in a digit that matters.
const STATISTICS_IMAGES: usize = 20_000;
/// Most images: every pair is looked at, and twice as many take four times as long.
pub const MOST_IMAGES: usize = 500_000;
/// Most bytes of sequences that are held to compare them.
const MOST_BYTES: usize = 1 << 30;
/// Seconds that are worth a word before they begin.
const LONG: f64 = 20.0;

/// Spectral clustering on its way.
pub struct SpectralLearner {
    settings: Settings,
    epochs: usize,
    batch: usize,
    seed: u64,
    device: Device,
    model: Model,
    optimizer: Optimizer,
    /// The spectral cluster of every item.
    labels: Vec<u32>,
    /// Where every item is in the space of the eigenvectors, `[n, k]`.
    embedding: Vec<f32>,
    /// The centres of the clusters there, `[k, k]`.
    centres: Vec<f32>,
}

impl SpectralLearner {
    /// A new network from `seed`; clusters are found when the first stage begins.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let valid = settings.model(task.input, task.clusters)?;
        Ok(Self {
            settings: settings.clone(),
            epochs: task.plan.epochs,
            batch: task.plan.batch,
            seed,
            device: task.device.clone(),
            model: valid.init(&task.device.clone().autodiff(), seed),
            optimizer: Optimizer::new(&settings.optim),
            labels: Vec::new(),
            embedding: Vec::new(),
            centres: Vec::new(),
        })
    }

    fn input(&self, items: &Items, device: &Device) -> Input {
        clean_input(&self.model, items, device)
    }

    /// All items as rows whose distances say how alike they are.
    fn rows(&self, data: &mut dyn Passes) -> Result<Box<dyn Rows>, LearnError> {
        match self.model.valid_config().config().input {
            ItemShape::Image(shape) => {
                let (by, k) = (self.settings.by, self.clusters());
                let seconds = |by: &Likeness| by.seconds_of_all_pairs(data.len(), shape);
                announce(data, by.candidates(k).iter().map(seconds).sum())?;
                let images = Images::read(data, shape)?;
                let by = match by.candidates(k) {
                    [only] => *only,
                    _ => Suited::find(by, &images, (self.settings.neighbours, k), data)?.by,
                };
                Ok(by.rows(images))
            }
            ItemShape::Sequence { dim } => {
                announce(data, seconds_of_all_sequences(data.len(), dim))?;
                let Some(all) = read_sequences(data, dim, MOST_BYTES)? else {
                    let text =
                        "spectral holds all sequences in memory, and these take more than 1 GiB: use kmeans or dtkc";
                    return Err(LearnError::Unsuitable(text.into()));
                };
                let (steps, lengths) = all.steps().unwrap_or_default();
                Ok(Box::new(Resampled::of(&self.model.scaled(steps), &lengths, dim)))
            }
            ItemShape::Features(shape) => {
                announce(data, seconds_of_all_pairs(data.len(), shape.dim))?;
                let Some(all) = read_features(data, shape, MOST_BYTES)? else {
                    let text =
                        "spectral holds all features in memory, and these take more than 1 GiB: use kmeans or ddc";
                    return Err(LearnError::Unsuitable(text.into()));
                };
                Ok(Box::new(Described::of(&all, shape)))
            }
        }
    }

    /// The spectral clusters of a batch; the first one where a set is not the one that was clustered.
    fn targets(&self, batch: &Batch) -> Vec<u32> {
        batch.indices.iter().map(|&item| self.labels.get(item).copied().unwrap_or(0)).collect()
    }

    /// Squared distance of an item from the centre of a cluster, in the space of the eigenvectors.
    fn square(&self, item: usize, cluster: usize) -> f64 {
        let k = self.clusters();
        let place = self.embedding.get(item * k..(item + 1) * k).unwrap_or_default();
        let centre = self.centres.get(cluster * k..(cluster + 1) * k).unwrap_or_default();
        place.iter().zip(centre).map(|(a, b)| f64::from(a - b).powi(2)).sum()
    }
}

impl Learner for SpectralLearner {
    fn stages(&self) -> Vec<Stage> {
        vec![Stage { name: INITIALISATION, epochs: 0 }, Stage { name: CLUSTERING, epochs: self.epochs }]
    }

    fn enter(&mut self, stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        if stage > 0 {
            return Ok(());
        }
        learn_scaling(&mut self.model, data)?;
        let Settings { neighbours, affinity, .. } = self.settings;
        let rows = self.rows(data)?;
        let options =
            SpectralOptions { clusters: self.clusters(), neighbours, affinity, residual: EXACT, seed: self.seed };
        let found = spectral(rows.as_ref(), &options, &|text| data.note(text), &|| data.stop())?;
        self.labels = found.clustering.labels;
        self.centres = found.clustering.centres;
        self.embedding = found.embedding;
        Ok(())
    }

    /// Cross-entropy of the network's memberships with the spectral clusters. The memberships that are reported are the
    /// spectral clusters themselves, so that the figures of an epoch are those of spectral clustering and the figures of
    /// the restart those of the network that learnt it.
    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        let (n, k) = (batch.len(), self.clusters());
        let device = self.device.clone().autodiff();
        let x = self.input(&batch.items, &device);
        let targets = self.targets(batch);
        clock.lap(|c| &mut c.data);
        let output = self.model.forward_train(x);
        clock.lap(|c| &mut c.forward);
        let wanted: Vec<i32> = targets.iter().map(|&target| target as i32).collect();
        let loss = cross_entropy_with(output.logits.clone(), &wanted);
        let total = f64::from(loss.clone().into_scalar::<f32>());
        let mut membership = vec![0.0; n * k];
        targets.iter().enumerate().for_each(|(row, &target)| membership[row * k + target as usize] = 1.0);
        let loss_values = LossValues { total, terms: Vec::new() };
        clock.lap(|c| &mut c.loss);
        if !total.is_finite() {
            return StepResult { loss: loss_values, membership, applied: false };
        }
        let mut gradients = loss.backward();
        clock.lap(|c| &mut c.backward);
        let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
        let (mut stepped, applied) = self.optimizer.step(self.model.clone(), &mut gradients, lr);
        if applied {
            stepped.update_running(&output, self.settings.network.batch_norm_momentum);
            self.model = stepped;
        }
        clock.lap(|c| &mut c.update);
        StepResult { loss: loss_values, membership, applied }
    }

    fn learning_rate(&self, _stage: usize, epoch: f64, epochs: usize) -> f64 {
        self.settings.optim.lr_at(epoch, epochs as f64)
    }

    /// Mean squared distance, in the space of the eigenvectors, between images and the centres of the clusters that the
    /// network gives them: what k-means minimises there, and the same question for every restart.
    fn loss(&self, batch: &Batch, _views: BatchKey) -> f64 {
        let k = self.clusters();
        let membership = self.answers(&batch.items).membership;
        let largest = |row: &[f32]| (0..k).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap_or(0);
        let rows = batch.indices.iter().zip(membership.chunks_exact(k));
        rows.map(|(&item, row)| self.square(item, largest(row))).sum::<f64>() / batch.len().max(1) as f64
    }

    /// Replaces the running batch-norm statistics, which lag behind the weights, by those of all images.
    fn settle(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        let valid = self.model.valid();
        let mut pass = StatisticsPass::new();
        for batch in joined(data.batches(Pass::Everything), self.batch) {
            pass.add(&valid.forward_train(self.input(&batch?.items, &self.device)));
            if pass.images() >= STATISTICS_IMAGES {
                break;
            }
        }
        pass.apply(&mut self.model);
        Ok(())
    }

    fn answers(&self, items: &Items) -> Answers {
        let output = self.model.valid().forward_eval(self.input(items, &self.device));
        Answers::read(output.membership, output.embedding)
    }

    fn clusters(&self) -> usize {
        self.model.valid_config().config().clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        self.model.state()
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        Ok(self.model.load_state(weights)?)
    }

    fn progress(&self) -> Vec<NamedArray> {
        let mut arrays = self.optimizer.save();
        arrays.push(NamedArray::list("spectral.labels", Values::U32(self.labels.clone())));
        arrays.push(NamedArray::list("spectral.embedding", Values::F32(self.embedding.clone())));
        arrays.push(NamedArray::list("spectral.centres", Values::F32(self.centres.clone())));
        arrays
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        let labels = arrays::u32s(progress, "spectral.labels", None)?;
        let embedding = arrays::f32s(progress, "spectral.embedding", Some(labels.len() * self.clusters()))?;
        let centres = arrays::f32s(progress, "spectral.centres", None)?;
        self.optimizer = Optimizer::restore(&self.settings.optim, progress, &self.model)?;
        (self.labels, self.embedding, self.centres) = (labels, embedding, centres);
        Ok(())
    }

    fn freeze(&self) -> Network {
        self.model.to_network()
    }
}

/// Says how long it takes to compare every pair, and refuses what nobody would wait for.
fn announce(data: &dyn Passes, seconds: f64) -> Result<(), LearnError> {
    let (n, kind) = (data.len(), data.shape().kind());
    if n > MOST_IMAGES {
        return Err(LearnError::Unsuitable(format!(
            "spectral clustering compares every pair of {kind}, and {n} would take about {} on two cores: use at most \
             {MOST_IMAGES} (`dtkc-data subset`), or --method kmeans, dec or dtkc",
            duration(seconds)
        )));
    }
    if seconds > LONG {
        data.say(&format!("comparing every pair of {n} {kind} takes about {} on two cores", duration(seconds)));
    }
    Ok(())
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} hours", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_readable() {
        let found = [56.4, 600.0, 7200.0, 400_000.0].map(duration);
        assert_eq!(found, ["56 seconds", "10 minutes", "2 hours", "5 days"]);
    }
}
