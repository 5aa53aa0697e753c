//! DEC, IDEC and DBC as a learner.

use burn::module::Module as _;
use burn::tensor::{Tensor, TensorData};
use dtkc_core::augment::BatchKey;
use dtkc_core::loss::{Collector, LossTerms, divergence_from, student_t};
use dtkc_core::{LossValues, NamedArray, Norms, Values, mean_square_error};
use dtkc_item::{Batch, Items};
use dtkc_onnx::{Layer, Network, Weights};

use super::targets::{self, Targets, sharpened};
use super::{Centred, Settings};
use crate::coder::{Codes, Images, Pretrainer, Start, all_codes, has_empty_cluster, measure_statistics, refill};
use crate::inside::{BackboneGradients, Features, Inside, gradients};
use crate::kmeans::{KmeansOptions, kmeans};
use crate::learner::{
    Answers, CLUSTERING, EpochEnd, EpochPlace, INITIALISATION, Learner, Passes, Stage, StepClock, StepPlace, StepResult,
};
use crate::optimizer::Optimizer;
use crate::vectors::Vectors;
use crate::{LearnError, Method, Task, arrays};

const PRETRAINED: usize = 0;
const CENTRED: usize = 1;
const SHARPENED: usize = 2;

/// DEC, IDEC or DBC on its way.
pub struct DecLearner {
    settings: Settings,
    stages: Vec<Stage>,
    clusters: usize,
    images: Images,
    seed: u64,
    model: Centred,
    pretrainer: Pretrainer,
    optimizer: Optimizer,
    stage: usize,
    /// Steps of the clustering stage.
    steps: u64,
    /// The step before which the targets were computed last, plus 1; 0 before the first time.
    refreshed: u64,
    targets: Targets,
    converged: bool,
}

impl DecLearner {
    /// New weights from `seed`, or another run's autoencoder.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let start = Start::new(Method::Dec, &settings.network, &settings.pretraining, task, seed)?;
        let device = task.device.clone().autodiff();
        let stage = |name, epochs| Stage { name, epochs };
        Ok(Self {
            stages: vec![start.pretraining, stage(INITIALISATION, 0), stage(CLUSTERING, task.plan.epochs)],
            clusters: task.clusters,
            images: start.images,
            seed,
            model: Centred::new(start.autoencoder, task.clusters, start.code, &device),
            pretrainer: Pretrainer::new(&settings.pretraining),
            optimizer: Optimizer::new(&settings.optim),
            stage: PRETRAINED,
            steps: 0,
            refreshed: 0,
            targets: Targets::default(),
            converged: false,
            settings: settings.clone(),
        })
    }

    /// The loss of a batch, and its memberships. `target` gives p for the memberships q.
    fn evaluate(
        &self,
        model: &Centred,
        x: Tensor<4>,
        target: impl FnOnce(&Tensor<2>) -> Tensor<2>,
    ) -> (Option<LossTerms>, Tensor<2>) {
        let loss = &self.settings.loss;
        let n = x.dims()[0];
        let encoded = model.coder.encode(x.clone(), Norms::Running);
        let membership = student_t(encoded.code.clone(), model.centres.val());
        let mut terms = Collector::default();
        terms.add("clustering", loss.clustering, || divergence_from(target(&membership), membership.clone()));
        terms.add("reconstruction", loss.reconstruction, || {
            mean_square_error(model.coder.decode(encoded.code.clone()), x.reshape([n, self.images.len()]))
        });
        loss.add_companions(&mut terms, &encoded.taps, &membership);
        (terms.sum(), membership)
    }

    /// The memberships of all items, in their order.
    fn memberships(&self, codes: Codes) -> Vec<f32> {
        let rows = codes.values.len() / codes.width.max(1);
        let codes = Tensor::from_data(TensorData::new(codes.values, [rows, codes.width]), &self.images.device);
        student_t(codes, self.model.centres.val().inner()).into_data().iter::<f32>().collect()
    }

    /// Gives clusters that lost all their items half of another one; says whether there was any.
    fn refill(&mut self, data: &mut dyn Passes) -> Result<bool, LearnError> {
        let codes = all_codes(&self.model.coder, &self.images, data)?;
        self.targets.update(&self.memberships(codes.clone()), self.clusters);
        let mut centres = self.model.centres();
        let refilled = refill(codes.points(), &mut self.targets.labels, &mut centres, self.seed, &|| data.stop())?;
        if refilled {
            self.model.set_centres(centres);
            self.optimizer.forget(&self.model, &[self.model.centres.id]);
            self.targets.update(&self.memberships(codes), self.clusters);
        }
        Ok(refilled)
    }

    /// The targets of some items.
    fn target(&self, indices: &[usize]) -> Tensor<2> {
        let k = self.clusters;
        let rows: Vec<f32> = indices.iter().flat_map(|&i| &self.targets.values[i * k..][..k]).copied().collect();
        let device = self.images.device.clone().autodiff();
        Tensor::from_data(TensorData::new(rows, [indices.len(), k]), &device)
    }

    fn clustering_step(&mut self, batch: &Batch, lr: f64, clock: &mut StepClock) -> StepResult {
        let x = self.images.read_to_train(&batch.items);
        clock.lap(|c| &mut c.data);
        let target = self.target(&batch.indices);
        let (terms, membership) = self.evaluate(&self.model, x, |_| target);
        let membership: Vec<f32> = membership.detach().into_data().iter::<f32>().collect();
        let loss = terms.as_ref().map_or_else(LossValues::default, LossTerms::read);
        clock.lap(|c| &mut c.forward);
        self.steps += 1;
        let (Some(terms), true) = (terms, loss.is_finite()) else {
            return StepResult { loss, membership, applied: false };
        };
        let mut gradients = terms.total.backward();
        clock.lap(|c| &mut c.backward);
        let (stepped, applied) = self.optimizer.step(self.model.clone(), &mut gradients, lr);
        self.model = stepped;
        clock.lap(|c| &mut c.update);
        StepResult { loss, membership, applied }
    }
}

impl Inside for DecLearner {
    fn features(&self, items: &Items) -> Features {
        Features::read(self.model.coder.valid().encode(self.images.read(items), Norms::Batch).features)
    }

    fn gradients(&self, batch: &Batch, place: &StepPlace) -> BackboneGradients {
        // Pretraining has no clusters whose gradient there could be.
        if place.stage != SHARPENED || self.targets.values.is_empty() {
            return BackboneGradients::default();
        }
        let terms = || {
            let target = self.target(&batch.indices);
            self.evaluate(&self.model, self.images.read_to_train(&batch.items), |_| target).0
        };
        gradients(terms, |gradients| self.model.coder.encoder_gradient(gradients))
    }
}

impl Learner for DecLearner {
    fn stages(&self) -> Vec<Stage> {
        self.stages.clone()
    }

    fn enter(&mut self, stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        self.stage = stage;
        if stage == 0 {
            self.images.vectors.learn(data)?;
        }
        if stage == CENTRED {
            data.note("k-means on the codes");
            measure_statistics(&mut self.model.coder, &self.images, data)?;
            let codes = all_codes(&self.model.coder, &self.images, data)?;
            let (clusters, starts) = (self.clusters, self.settings.starts);
            let options = KmeansOptions { clusters, starts, iterations: 300, tolerance: 1e-4, seed: self.seed };
            let found = kmeans(codes.points(), &options, &|| data.stop())?;
            self.model.set_centres(found.centres);
            self.targets.labels = found.labels;
        }
        Ok(())
    }

    fn is_refresh_due(&self, stage: usize) -> bool {
        let due = self.steps.is_multiple_of(self.settings.update_interval as u64) && self.refreshed != self.steps + 1;
        stage == SHARPENED && (due || self.refreshed == 0)
    }

    fn refresh(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        let codes = all_codes(&self.model.coder, &self.images, data)?;
        let memberships = self.memberships(codes);
        let changed = self.targets.update(&memberships, self.clusters);
        // The first time compares with k-means, which says nothing.
        self.converged = self.steps > 0 && changed < self.settings.tolerance;
        self.refreshed = self.steps + 1;
        Ok(())
    }

    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
        match place.stage {
            PRETRAINED => {
                let x = self.images.read_to_train(&batch.items);
                self.pretrainer.step(&mut self.model.coder, x, lr, clock)
            }
            _ => self.clustering_step(batch, lr, clock),
        }
    }

    /// The targets change, so that no two epochs have the same loss: the last one counts.
    fn is_settled(&self, _: &EpochPlace) -> bool {
        false
    }

    fn end_epoch(&mut self, place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        let is_clustering = place.stage == SHARPENED;
        let is_empty = is_clustering && has_empty_cluster(&self.targets.labels, self.clusters);
        // New clusters have still to be learnt, however few items moved before.
        let refilled = is_empty && self.refill(data)?;
        Ok(EpochEnd { converged: is_clustering && self.converged && !refilled, ..EpochEnd::default() })
    }

    fn learning_rate(&self, stage: usize, epoch: f64, epochs: usize) -> f64 {
        let optim = if stage == PRETRAINED { &self.settings.pretraining.optim } else { &self.settings.optim };
        optim.lr_at(epoch, epochs as f64)
    }

    fn loss(&self, batch: &Batch, _: BatchKey) -> f64 {
        let device = self.images.device.clone();
        let sharper = |membership: &Tensor<2>| {
            let shape = membership.dims();
            let q: Vec<f32> = membership.clone().into_data().iter::<f32>().collect();
            let sizes = match self.targets.sizes.is_empty() {
                true => targets::sizes(&q, self.clusters),
                false => self.targets.sizes.clone(),
            };
            Tensor::from_data(TensorData::new(sharpened(&q, &sizes), shape), &device)
        };
        let (terms, _) = self.evaluate(&self.model.valid(), self.images.read(&batch.items), sharper);
        terms.map_or(f64::NAN, |terms| terms.read().total)
    }

    fn answers(&self, items: &Items) -> Answers {
        let model = self.model.valid();
        let code = model.coder.encode(self.images.read(items), Norms::Running).code;
        Answers::read(student_t(code.clone(), model.centres.val()), code)
    }

    fn clusters(&self) -> usize {
        self.clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        let mut weights = self.model.state();
        weights.extend(self.images.vectors.save());
        weights
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        self.model.load_state(&Vectors::others(weights))?;
        self.images.vectors.restore(weights)
    }

    fn progress(&self) -> Vec<NamedArray> {
        let counts = [self.stage as u64, self.steps, self.refreshed, u64::from(self.converged)];
        let mut arrays = vec![NamedArray::list("counts", Values::U64(counts.to_vec()))];
        arrays.extend(self.targets.save());
        arrays.extend(match self.stage {
            PRETRAINED => self.pretrainer.optimizer.save(),
            _ => self.optimizer.save(),
        });
        arrays
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        let counts = arrays::u64s(progress, "counts", Some(4))?;
        let targets = Targets::restore(progress)?;
        match counts[0] as usize {
            PRETRAINED => {
                self.pretrainer = Pretrainer::restore(&self.settings.pretraining, progress, &self.model.coder)?;
            }
            _ => self.optimizer = Optimizer::restore(&self.settings.optim, progress, &self.model)?,
        }
        (self.stage, self.steps, self.refreshed) = (counts[0] as usize, counts[1], counts[2]);
        self.converged = counts[3] > 0;
        self.targets = targets;
        Ok(())
    }

    fn pretrained(&self) -> Vec<NamedArray> {
        self.model.coder.state()
    }

    fn inside(&self) -> Option<&dyn Inside> {
        Some(self)
    }

    fn freeze(&self) -> Network {
        let mut layers = self.model.coder.frozen_encoder();
        let centres = Weights::new(self.model.centres.val().dims(), self.model.centres());
        layers.extend([Layer::Embedding, Layer::StudentT { centres }]);
        self.images.vectors.network(layers)
    }
}
