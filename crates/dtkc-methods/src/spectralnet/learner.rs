//! SpectralNet as a learner.

use burn::module::Module as _;
use burn::tensor::{Tensor, TensorData};
use dtkc_core::augment::BatchKey;
use dtkc_core::loss::{Collector, LossTerms, student_t};
use dtkc_core::{Autoencoder, End, LossValues, Mlp, MlpOutput, NamedArray, Norms, Tapped, Values};
use dtkc_item::{Batch, Items};
use dtkc_onnx::{Layer, Network, Weights};

use super::Settings;
use super::affinity::{affinities, spectral_loss, square_tensor};
use super::orthonormal::{orthonormal, orthonormaliser};
use super::pairs::{Partners, contrastive_loss};
use super::table::Table;
use crate::coder::{Codes, Images, Pretrainer, Start, all_codes, measure_statistics};
use crate::kmeans::{KmeansOptions, Points, kmeans};
use crate::learner::{
    Answers, CLUSTERING, EpochEnd, EpochPlace, Learner, Passes, Stage, StepClock, StepPlace, StepResult,
};
use crate::nearest::Neighbours;
use crate::optimizer::Optimizer;
use crate::random::Random;
use crate::{LearnError, Method, Task, arrays};

const PRETRAINED: usize = 0;
const SIAMESE: usize = 1;
const SPECTRAL: usize = 2;

/// Codes of a forward pass without gradients.
const CHUNK: usize = 4096;
/// Starts of the k-means that follows training epoch by epoch.
const FOLLOWING_STARTS: usize = 2;

/// SpectralNet on its way.
pub struct SpectralnetLearner {
    settings: Settings,
    stages: Vec<Stage>,
    clusters: usize,
    images: Images,
    seed: u64,
    autoencoder: Autoencoder,
    siamese: Mlp,
    network: Mlp,
    /// The layer that makes outputs orthonormal, `[k, k]`.
    last: Vec<f32>,
    /// `[k, k]`: centres among the outputs; empty before the first epoch has ended.
    centres: Vec<f32>,
    pretrainer: Pretrainer,
    optimizer: Optimizer,
    stage: usize,
    table: Table,
}

impl SpectralnetLearner {
    /// New weights from `seed`, or another run's autoencoder.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let start = Start::new(Method::Spectralnet, &settings.network, &settings.pretraining, task, seed)?;
        let device = task.device.clone().autodiff();
        let (code, k) = (start.code, task.clusters);
        let sizes = |hidden: &[usize], end: usize| [&[code], hidden, &[end]].concat();
        let siamese = sizes(&settings.siamese.hidden, settings.siamese.outputs);
        let stage = |name, epochs| Stage { name, epochs };
        Ok(Self {
            stages: vec![
                start.pretraining,
                stage("siamese", settings.siamese.epochs),
                stage(CLUSTERING, task.plan.epochs),
            ],
            clusters: k,
            images: start.images,
            seed,
            autoencoder: start.autoencoder,
            siamese: Mlp::init(&siamese, End::Linear, &device, seed.wrapping_add(1)),
            network: Mlp::init(&sizes(&settings.hidden, k), End::Tanh, &device, seed.wrapping_add(2)),
            last: (0..k * k).map(|at| if at / k == at % k { 1.0 } else { 0.0 }).collect(),
            centres: Vec::new(),
            pretrainer: Pretrainer::new(&settings.pretraining),
            optimizer: Optimizer::new(&settings.siamese.optim),
            stage: PRETRAINED,
            table: Table::default(),
            settings: settings.clone(),
        })
    }

    fn rows(&self, values: Vec<f32>, width: usize, training: bool) -> Tensor<2> {
        let device = if training { self.images.device.clone().autodiff() } else { self.images.device.clone() };
        Tensor::from_data(TensorData::new(values.clone(), [values.len() / width, width]), &device)
    }

    /// What a network makes of all codes.
    fn all(&self, network: &Mlp, stop: &dyn Fn() -> bool) -> Result<Codes, LearnError> {
        let network = network.valid();
        let codes = &self.table.codes;
        let mut all = Codes::default();
        for part in codes.values.chunks(CHUNK * codes.width.max(1)) {
            if stop() {
                return Err(LearnError::Stopped);
            }
            let output = network.forward(self.rows(part.to_vec(), codes.width, false)).output;
            all.width = output.dims()[1];
            all.values.extend(output.into_data().iter::<f32>());
        }
        Ok(all)
    }

    /// Makes the outputs orthonormal over all items, and finds their clusters.
    fn centre(&mut self, starts: usize, data: &dyn Passes) -> Result<(), LearnError> {
        let k = self.clusters;
        let stop = || data.stop();
        let raw = self.all(&self.network, &stop)?;
        let last = orthonormaliser(&raw.values, k);
        let outputs = self.rows(raw.values, k, false).matmul(self.rows(last.clone(), k, false));
        let values: Vec<f32> = outputs.into_data().iter::<f32>().collect();
        let options = KmeansOptions { clusters: k, starts, iterations: 300, tolerance: 1e-4, seed: self.seed };
        let found = kmeans(Points { values: &values, width: k }, &options, &stop)?;
        (self.last, self.centres) = (last, found.centres);
        Ok(())
    }

    /// One step of an optimiser on a network.
    fn apply(&mut self, terms: &LossTerms, lr: f64, clock: &mut StepClock) -> bool {
        let mut gradients = terms.total.backward();
        clock.lap(|c| &mut c.backward);
        let trained = if self.stage == SIAMESE { &mut self.siamese } else { &mut self.network };
        let (stepped, applied) = self.optimizer.step(trained.clone(), &mut gradients, lr);
        *trained = stepped;
        clock.lap(|c| &mut c.update);
        applied
    }

    fn siamese_step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        let (count, margin) =
            (self.settings.siamese.neighbours.min(self.table.len() - 1), self.settings.siamese.margin);
        let mut random = draws(place.views, b"partners");
        let partners = Partners::draw(&batch.indices, &self.table.neighbours, count, &mut random);
        let items = batch.indices.iter().chain(&partners.near).chain(&partners.far).copied();
        let codes = self.rows(self.table.codes.rows(items), self.table.codes.width, true);
        clock.lap(|c| &mut c.data);
        let (n, output) = (batch.len(), self.siamese.forward(codes).output);
        let part = |i: usize| output.clone().narrow(0, i * n, n);
        let mut terms = Collector::default();
        terms.add("contrast", 1.0, || contrastive_loss(part(0), part(1), part(2), margin));
        self.finish(terms, Vec::new(), place, clock)
    }

    fn spectral_step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        match self.evaluate(&self.network, &batch.indices, true) {
            Ok((terms, membership)) => self.finish(terms, membership, place, clock),
            // Neighbours of a batch are found without being stopped; what is not a number shows in the loss.
            Err(_) => {
                StepResult { loss: LossValues { total: f64::NAN, terms: vec![] }, membership: vec![], applied: false }
            }
        }
    }

    /// The terms of some items, and their memberships once there are centres.
    fn evaluate(&self, network: &Mlp, indices: &[usize], training: bool) -> Result<(Collector, Vec<f32>), LearnError> {
        let (k, loss) = (self.clusters, &self.settings.loss);
        let near = self.table.embedded.rows(indices.iter().copied());
        let points = Points { values: &near, width: self.table.embedded.width };
        let ties = affinities(points, self.settings.neighbours, self.settings.scale_neighbour)?;
        let codes = self.rows(self.table.codes.rows(indices.iter().copied()), self.table.codes.width, training);
        let MlpOutput { hidden, output } = network.forward(codes);
        let mut terms = Collector::default();
        let ties = square_tensor(ties, &output.device());
        terms.add("clustering", loss.clustering, || spectral_loss(orthonormal(output.clone()), ties));
        if self.centres.is_empty() {
            return Ok((terms, Vec::new()));
        }
        // Centres belong to the layer that was made for all items.
        let outputs = output.matmul(self.rows(self.last.clone(), k, training));
        let membership = student_t(outputs, self.rows(self.centres.clone(), k, training));
        let taps: Vec<Tapped> = hidden.into_iter().map(Tapped::Vectors).collect();
        loss.add_companions(&mut terms, &taps, &membership);
        Ok((terms, membership.detach().into_data().iter::<f32>().collect()))
    }

    fn finish(
        &mut self,
        terms: Collector,
        membership: Vec<f32>,
        place: &StepPlace,
        clock: &mut StepClock,
    ) -> StepResult {
        let terms = terms.sum();
        let loss = terms.as_ref().map_or_else(LossValues::default, LossTerms::read);
        clock.lap(|c| &mut c.forward);
        let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
        let applied = match terms {
            Some(terms) if loss.is_finite() => self.apply(&terms, lr, clock),
            _ => false,
        };
        StepResult { loss, membership, applied }
    }
}

fn draws(key: BatchKey, purpose: &[u8; 8]) -> Random {
    Random::new(key.seed, purpose, (key.epoch << 32) | key.batch)
}

impl Learner for SpectralnetLearner {
    fn stages(&self) -> Vec<Stage> {
        self.stages.clone()
    }

    fn enter(&mut self, stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        if stage == 0 {
            self.images.vectors.learn(data)?;
        }
        match stage {
            SIAMESE => {
                data.note("neighbours among the codes");
                measure_statistics(&mut self.autoencoder, &self.images, data)?;
                let codes = all_codes(&self.autoencoder, &self.images, data)?;
                let count = self.settings.siamese.neighbours;
                let neighbours = Neighbours::find(&codes.points(), count, &|| data.stop())?.items;
                if neighbours.is_empty() {
                    return Err(LearnError::Unsuitable("one item has no neighbours: spectralnet needs more".into()));
                }
                self.table = Table { codes, neighbours, embedded: Codes::default() };
                self.optimizer = Optimizer::new(&self.settings.siamese.optim);
            }
            SPECTRAL => {
                self.table.embedded = self.all(&self.siamese, &|| data.stop())?;
                self.optimizer = Optimizer::new(&self.settings.optim);
            }
            _ => {}
        }
        self.stage = stage;
        Ok(())
    }

    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        match place.stage {
            PRETRAINED => {
                let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
                let x = self.images.read_to_train(&batch.items);
                self.pretrainer.step(&mut self.autoencoder, x, lr, clock)
            }
            SIAMESE => self.siamese_step(batch, place, clock),
            _ => self.spectral_step(batch, place, clock),
        }
    }

    /// Clusters follow the outputs: the last epoch counts.
    fn is_settled(&self, _: &EpochPlace) -> bool {
        false
    }

    fn end_epoch(&mut self, place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        if place.stage == SPECTRAL {
            self.centre(FOLLOWING_STARTS, data)?;
        }
        Ok(EpochEnd::default())
    }

    fn settle(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        self.centre(self.settings.starts, data)
    }

    fn learning_rate(&self, stage: usize, epoch: f64, epochs: usize) -> f64 {
        let optim = match stage {
            PRETRAINED => &self.settings.pretraining.optim,
            SIAMESE => &self.settings.siamese.optim,
            _ => &self.settings.optim,
        };
        optim.lr_at(epoch, epochs as f64)
    }

    fn loss(&self, batch: &Batch, _: BatchKey) -> f64 {
        let found = self.evaluate(&self.network.valid(), &batch.indices, false);
        let terms = found.ok().and_then(|(terms, _)| terms.sum());
        terms.map_or(f64::NAN, |terms| terms.read().total)
    }

    fn answers(&self, items: &Items) -> Answers {
        let k = self.clusters;
        let code = self.autoencoder.valid().encode(self.images.read(items), Norms::Running).code;
        let output = self.network.valid().forward(code).output;
        let outputs = output.matmul(self.rows(self.last.clone(), k, false));
        Answers::read(student_t(outputs.clone(), self.rows(self.centre_values(), k, false)), outputs)
    }

    fn clusters(&self) -> usize {
        self.clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        let mut weights = prefixed("autoencoder.", self.autoencoder.state());
        weights.extend(prefixed("network.", self.network.state()));
        weights.push(NamedArray::list("last", Values::F32(self.last.clone())));
        weights.push(NamedArray::list("centres", Values::F32(self.centres.clone())));
        weights.extend(self.images.vectors.save());
        weights
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        let (last, centres) =
            (arrays::f32s(weights, "last", Some(self.last.len()))?, arrays::f32s(weights, "centres", None)?);
        let (mut autoencoder, mut network) = (self.autoencoder.clone(), self.network.clone());
        autoencoder.load_state(&unprefixed("autoencoder.", weights))?;
        network.load_state(&unprefixed("network.", weights))?;
        (self.autoencoder, self.network, self.last, self.centres) = (autoencoder, network, last, centres);
        self.images.vectors.restore(weights)
    }

    fn progress(&self) -> Vec<NamedArray> {
        let mut saved = vec![NamedArray::list("stage", Values::U64(vec![self.stage as u64]))];
        saved.extend(prefixed("siamese.", self.siamese.state()));
        saved.extend(self.table.save());
        saved.extend(match self.stage {
            PRETRAINED => self.pretrainer.optimizer.save(),
            _ => self.optimizer.save(),
        });
        saved
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        let stage = arrays::u64s(progress, "stage", Some(1))?[0] as usize;
        let table = Table::restore(progress)?;
        self.siamese.load_state(&unprefixed("siamese.", progress))?;
        match stage {
            PRETRAINED => {
                self.pretrainer = Pretrainer::restore(&self.settings.pretraining, progress, &self.autoencoder)?
            }
            SIAMESE => self.optimizer = Optimizer::restore(&self.settings.siamese.optim, progress, &self.siamese)?,
            _ => self.optimizer = Optimizer::restore(&self.settings.optim, progress, &self.network)?,
        }
        (self.stage, self.table) = (stage, table);
        Ok(())
    }

    fn pretrained(&self) -> Vec<NamedArray> {
        self.autoencoder.state()
    }

    fn freeze(&self) -> Network {
        let k = self.clusters;
        let mut layers = self.autoencoder.frozen_encoder();
        layers.extend(self.network.frozen());
        layers.push(Layer::Dense { weight: Weights::new([k, k], self.last.clone()), bias: vec![0.0; k] });
        layers.extend([Layer::Embedding, Layer::StudentT { centres: Weights::new([k, k], self.centre_values()) }]);
        self.images.vectors.network(layers)
    }
}

impl SpectralnetLearner {
    /// The centres; all at 0 while there are none.
    fn centre_values(&self) -> Vec<f32> {
        match self.centres.is_empty() {
            true => vec![0.0; self.clusters * self.clusters],
            false => self.centres.clone(),
        }
    }
}

fn prefixed(prefix: &str, arrays: Vec<NamedArray>) -> Vec<NamedArray> {
    arrays.into_iter().map(|array| NamedArray { name: format!("{prefix}{}", array.name), ..array }).collect()
}

fn unprefixed(prefix: &str, arrays: &[NamedArray]) -> Vec<NamedArray> {
    let rest = |a: &NamedArray| Some(NamedArray { name: a.name.strip_prefix(prefix)?.to_owned(), ..a.clone() });
    arrays.iter().filter_map(rest).collect()
}
