//! DCN as a learner.

use burn::module::Module as _;
use burn::tensor::{Tensor, TensorData};
use dtkc_core::augment::BatchKey;
use dtkc_core::loss::{Collector, LossTerms, student_t};
use dtkc_core::{Autoencoder, LossValues, NamedArray, Norms, Values};
use dtkc_item::{Batch, Items};
use dtkc_onnx::{Layer, Network, Weights};

use super::{Centres, Settings};
use crate::coder::{Images, Pretrainer, Start, all_codes, has_empty_cluster, measure_statistics, refill};
use crate::inside::{BackboneGradients, Features, Inside, gradients};
use crate::kmeans::{KmeansOptions, kmeans, lloyd_from};
use crate::learner::{
    Answers, CLUSTERING, EpochEnd, EpochPlace, INITIALISATION, Learner, Passes, Stage, StepClock, StepPlace, StepResult,
};
use crate::optimizer::Optimizer;
use crate::vectors::Vectors;
use crate::{LearnError, Method, Task, arrays};

const PRETRAINED: usize = 0;
const CENTRED: usize = 1;
const JOINT: usize = 2;

/// Most iterations of k-means, and the movement below which it ends.
const ITERATIONS: usize = 300;
const TOLERANCE: f64 = 1e-4;

/// DCN on its way.
pub struct DcnLearner {
    settings: Settings,
    stages: Vec<Stage>,
    clusters: usize,
    images: Images,
    seed: u64,
    model: Autoencoder,
    pretrainer: Pretrainer,
    optimizer: Optimizer,
    stage: usize,
    centres: Centres,
    /// The cluster of every item.
    labels: Vec<u32>,
}

impl DcnLearner {
    /// New weights from `seed`, or another run's autoencoder.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let start = Start::new(Method::Dcn, &settings.network, &settings.pretraining, task, seed)?;
        let stage = |name, epochs| Stage { name, epochs };
        let code = start.code;
        Ok(Self {
            stages: vec![start.pretraining, stage(INITIALISATION, 0), stage(CLUSTERING, task.plan.epochs)],
            clusters: task.clusters,
            images: start.images,
            seed,
            model: start.autoencoder,
            pretrainer: Pretrainer::new(&settings.pretraining),
            optimizer: Optimizer::new(&settings.optim),
            stage: PRETRAINED,
            centres: Centres::new(vec![0.0; task.clusters * code], code),
            labels: Vec::new(),
            settings: settings.clone(),
        })
    }

    fn rows(&self, values: Vec<f32>, x: &Tensor<4>) -> Tensor<2> {
        let width = self.centres.width();
        let rows = values.len() / width;
        Tensor::from_data(TensorData::new(values, [rows, width]), &x.device())
    }

    /// The loss of a batch, its memberships and its codes; `clusters` says which centre each item belongs to.
    fn evaluate(
        &self,
        model: &Autoencoder,
        x: Tensor<4>,
        clusters: impl FnOnce(&Tensor<2>) -> Vec<usize>,
    ) -> (Option<LossTerms>, Tensor<2>) {
        let loss = &self.settings.loss;
        let n = x.dims()[0];
        let encoded = model.encode(x.clone(), Norms::Running);
        let membership = student_t(encoded.code.clone(), self.rows(self.centres.values.clone(), &x));
        let centres = clusters(&encoded.code).into_iter().flat_map(|cluster| self.centres.of(cluster)).copied();
        let centres = self.rows(centres.collect(), &x);
        let mut terms = Collector::default();
        let mean = |a: Tensor<2>, b: Tensor<2>| (a - b).square().sum() * (1.0 / n.max(1) as f64);
        terms.add("clustering", loss.clustering, || mean(encoded.code.clone(), centres));
        terms.add("reconstruction", loss.reconstruction, || {
            mean(model.decode(encoded.code.clone()), x.reshape([n, self.images.len()]))
        });
        loss.add_companions(&mut terms, &encoded.taps, &membership);
        (terms.sum(), membership)
    }

    fn joint_step(&mut self, batch: &Batch, lr: f64, clock: &mut StepClock) -> StepResult {
        let x = self.images.read_to_train(&batch.items);
        clock.lap(|c| &mut c.data);
        let present: Vec<usize> = batch.indices.iter().map(|&index| self.labels[index] as usize).collect();
        let (terms, membership) = self.evaluate(&self.model, x.clone(), |_| present);
        let membership: Vec<f32> = membership.detach().into_data().iter::<f32>().collect();
        let loss = terms.as_ref().map_or_else(LossValues::default, LossTerms::read);
        clock.lap(|c| &mut c.forward);
        let (Some(terms), true) = (terms, loss.is_finite()) else {
            return StepResult { loss, membership, applied: false };
        };
        let mut gradients = terms.total.backward();
        clock.lap(|c| &mut c.backward);
        let (stepped, applied) = self.optimizer.step(self.model.clone(), &mut gradients, lr);
        self.model = stepped;
        if applied {
            self.reassign(batch);
        }
        clock.lap(|c| &mut c.update);
        StepResult { loss, membership, applied }
    }

    /// Gives the items of a batch to the centres that are nearest now, which follow them.
    fn reassign(&mut self, batch: &Batch) {
        let code = self.model.valid().encode(self.images.read(&batch.items), Norms::Running).code;
        let code: Vec<f32> = code.into_data().iter::<f32>().collect();
        for (&index, code) in batch.indices.iter().zip(code.chunks_exact(self.centres.width())) {
            self.labels[index] = self.centres.take(code) as u32;
        }
    }
}

impl Inside for DcnLearner {
    fn features(&self, items: &Items) -> Features {
        Features::read(self.model.valid().encode(self.images.read(items), Norms::Batch).features)
    }

    fn gradients(&self, batch: &Batch, place: &StepPlace) -> BackboneGradients {
        // Pretraining has no clusters whose gradient there could be.
        if place.stage != JOINT || self.labels.is_empty() {
            return BackboneGradients::default();
        }
        let terms = || {
            let present = batch.indices.iter().map(|&index| self.labels[index] as usize).collect();
            self.evaluate(&self.model, self.images.read_to_train(&batch.items), |_| present).0
        };
        gradients(terms, |gradients| self.model.encoder_gradient(gradients))
    }
}

impl Learner for DcnLearner {
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
            measure_statistics(&mut self.model, &self.images, data)?;
            let codes = all_codes(&self.model, &self.images, data)?;
            let (clusters, starts, seed) = (self.clusters, self.settings.starts, self.seed);
            let options = KmeansOptions { clusters, starts, iterations: ITERATIONS, tolerance: TOLERANCE, seed };
            let found = kmeans(codes.points(), &options, &|| data.stop())?;
            (self.centres, self.labels) = (Centres::new(found.centres, codes.width), found.labels);
        }
        Ok(())
    }

    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
        match place.stage {
            PRETRAINED => {
                let x = self.images.read_to_train(&batch.items);
                self.pretrainer.step(&mut self.model, x, lr, clock)
            }
            _ => self.joint_step(batch, lr, clock),
        }
    }

    /// Centres and items move on: the last epoch counts.
    fn is_settled(&self, _: &EpochPlace) -> bool {
        false
    }

    fn end_epoch(&mut self, place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        if place.stage == JOINT && place.done.is_multiple_of(self.settings.recentre) {
            let codes = all_codes(&self.model, &self.images, data)?;
            let centres = self.centres.values.clone();
            let found = lloyd_from(codes.points(), centres, ITERATIONS, TOLERANCE, &|| data.stop())?;
            (self.centres, self.labels) = (Centres::new(found.centres, codes.width), found.labels);
        } else if place.stage == JOINT && has_empty_cluster(&self.labels, self.clusters) {
            let codes = all_codes(&self.model, &self.images, data)?;
            let mut centres = self.centres.values.clone();
            if refill(codes.points(), &mut self.labels, &mut centres, self.seed, &|| data.stop())? {
                self.centres = Centres::new(centres, codes.width);
            }
        }
        Ok(EpochEnd::default())
    }

    fn learning_rate(&self, stage: usize, epoch: f64, epochs: usize) -> f64 {
        let optim = if stage == PRETRAINED { &self.settings.pretraining.optim } else { &self.settings.optim };
        optim.lr_at(epoch, epochs as f64)
    }

    fn loss(&self, batch: &Batch, _: BatchKey) -> f64 {
        let nearest = |code: &Tensor<2>| {
            let values: Vec<f32> = code.clone().into_data().iter::<f32>().collect();
            values.chunks_exact(self.centres.width()).map(|code| self.centres.nearest(code)).collect()
        };
        let (terms, _) = self.evaluate(&self.model.valid(), self.images.read(&batch.items), nearest);
        terms.map_or(f64::NAN, |terms| terms.read().total)
    }

    fn answers(&self, items: &Items) -> Answers {
        let x = self.images.read(items);
        let code = self.model.valid().encode(x.clone(), Norms::Running).code;
        Answers::read(student_t(code.clone(), self.rows(self.centres.values.clone(), &x)), code)
    }

    fn clusters(&self) -> usize {
        self.clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        let mut weights = self.model.state();
        weights.extend(self.centres.save());
        weights.extend(self.images.vectors.save());
        weights
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        let centres = self.centres.restore(weights)?;
        let mut network = Vectors::others(weights);
        network.retain(|array| !array.name.starts_with("centres."));
        self.model.load_state(&network)?;
        self.centres = centres;
        self.images.vectors.restore(weights)
    }

    fn progress(&self) -> Vec<NamedArray> {
        let mut arrays = vec![
            NamedArray::list("stage", Values::U64(vec![self.stage as u64])),
            NamedArray::list("labels", Values::U32(self.labels.clone())),
        ];
        arrays.extend(match self.stage {
            PRETRAINED => self.pretrainer.optimizer.save(),
            _ => self.optimizer.save(),
        });
        arrays
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        let stage = arrays::u64s(progress, "stage", Some(1))?[0] as usize;
        let labels = arrays::u32s(progress, "labels", None)?;
        match stage {
            PRETRAINED => self.pretrainer = Pretrainer::restore(&self.settings.pretraining, progress, &self.model)?,
            _ => self.optimizer = Optimizer::restore(&self.settings.optim, progress, &self.model)?,
        }
        (self.stage, self.labels) = (stage, labels);
        Ok(())
    }

    fn pretrained(&self) -> Vec<NamedArray> {
        self.model.state()
    }

    fn inside(&self) -> Option<&dyn Inside> {
        Some(self)
    }

    fn freeze(&self) -> Network {
        let mut layers = self.model.frozen_encoder();
        let centres = Weights::new([self.clusters, self.centres.width()], self.centres.values.clone());
        layers.extend([Layer::Embedding, Layer::StudentT { centres }]);
        self.images.vectors.network(layers)
    }
}
