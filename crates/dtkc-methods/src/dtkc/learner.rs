//! DTKC and DDC as a learner: images in, loss, gradients, new weights.

use burn::module::Module as _;
use burn::tensor::{Device, Tensor};
use dtkc_core::augment::BatchKey;
use dtkc_core::{
    Augmenter, Model, Moment, NamedArray, Objective, Output, OutputLayer, StatisticsPass, ValidModel, Views,
};
use dtkc_item::{Batch, Items};
use dtkc_onnx::Network;

use super::Settings;
use super::flops::step_flops;
use super::partners::{self, Partners};
use super::regroup::Evidence;
use crate::learner::{
    Answers, CLUSTERING, EpochEnd, EpochPlace, Learner, Passes, Stage, StepClock, StepPlace, StepResult, joined,
};
use crate::optimizer::Optimizer;
use crate::places::Pass;
use crate::{LearnError, SettingError, Task};

/// Images after which batch-norm statistics no longer change in a digit that matters.
const STATISTICS_IMAGES: usize = 20_000;

/// DTKC or DDC on its way.
pub struct DtkcLearner {
    settings: Settings,
    epochs: usize,
    batch: usize,
    objective: Objective,
    augmenter: Option<Augmenter>,
    device: Device,
    model: Model,
    optimizer: Optimizer,
    /// Near neighbours, once they were looked for.
    partners: Option<Option<Partners>>,
    /// Their table, from a checkpoint.
    known: Vec<u32>,
}

impl DtkcLearner {
    /// New weights from `seed`.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let valid = settings.model(task.input, task.clusters)?;
        let augmenter = match settings.paired() {
            true => Some(Augmenter::new(&settings.augment, valid.seen()).map_err(SettingError::from)?),
            false => None,
        };
        Ok(Self {
            settings: settings.clone(),
            epochs: task.plan.epochs,
            batch: task.plan.batch,
            objective: Objective::new(&settings.loss).map_err(SettingError::from)?,
            augmenter,
            device: task.device.clone(),
            model: valid.init(&task.device.clone().autodiff(), seed),
            optimizer: Optimizer::new(&settings.optim),
            partners: None,
            known: Vec::new(),
        })
    }

    fn valid(&self) -> &ValidModel {
        self.model.valid_config()
    }

    /// Images as the network sees them in evaluation.
    fn clean(&self, items: &Items) -> Tensor<4> {
        self.valid().input(pixels(items), &self.device)
    }

    /// Images as the loss wants them: single, or paired with a second view.
    fn views(&self, items: &Items, key: BatchKey, device: &Device) -> (Tensor<4>, Views) {
        match &self.augmenter {
            Some(augmenter) => (augmenter.pairs(self.valid().input_values(pixels(items)), key, device), Views::Paired),
            None => (self.valid().input(pixels(items), device), Views::Single),
        }
    }

    /// A batch as it is trained on: second views may be those of near neighbours.
    fn training_views(&self, batch: &Batch, key: BatchKey, device: &Device) -> (Tensor<4>, Views) {
        match (&self.augmenter, self.partners.as_ref().and_then(Option::as_ref)) {
            (Some(augmenter), Some(partners)) => {
                let clean = self.valid().input_values(pixels(&batch.items));
                let second = self.valid().input_values(&partners.pixels(batch, key));
                (augmenter.pairs_with(clean, &second, key, device), Views::Paired)
            }
            _ => self.views(&batch.items, key, device),
        }
    }

    /// Looks for near neighbours where they are wanted and not there.
    fn find_partners(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        if self.partners.is_none() && self.settings.paired() && self.settings.neighbours.is_on() {
            let shape = self.valid().config().input;
            let known = std::mem::take(&mut self.known);
            self.partners = Some(Partners::find(&self.settings.neighbours, data, shape, known)?);
        }
        Ok(())
    }

    /// What the network says about a batch in training mode, without training on it.
    fn output(&self, items: &Items, key: BatchKey) -> (Output, Views) {
        let (x, views) = self.views(items, key, &self.device);
        (self.model.valid().forward_train(x), views)
    }

    /// Epochs in which only the fine clusters are learnt.
    fn fine_epochs(&self, epochs: usize) -> usize {
        match self.has_fine_clusters() {
            true => (self.settings.loss.fine_first * epochs as f64).round() as usize,
            false => 0,
        }
    }

    fn moment(&self, epoch: f64, epochs: usize) -> Moment {
        Moment { epoch, is_fine_only: epoch < self.fine_epochs(epochs) as f64 }
    }

    /// Whether there are fine clusters that training improves and that a new output layer can be made from.
    fn has_fine_clusters(&self) -> bool {
        self.settings.paired() && self.settings.loss.overclustering > 0.0 && self.valid().fine_clusters() > 0
    }

    /// A better output layer from the fine clusters, where it is time to look for one.
    fn better_output(&self, place: &EpochPlace, data: &mut dyn Passes) -> Result<Option<OutputLayer>, LearnError> {
        if !self.upheavals(place.epochs).contains(&place.done) {
            return Ok(None);
        }
        let mut evidence = Evidence::default();
        for batch in data.comparison() {
            let (batch, key) = batch?;
            let (x, _) = self.training_views(&batch, key, &self.device);
            evidence.add(&self.model.valid().forward_train(x));
        }
        Ok(if place.done == self.fine_epochs(place.epochs) { evidence.groups() } else { evidence.propose() })
    }
}

impl Learner for DtkcLearner {
    fn stages(&self) -> Vec<Stage> {
        vec![Stage { name: CLUSTERING, epochs: self.epochs }]
    }

    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        let (x, views) = self.training_views(batch, place.views, &self.device.clone().autodiff());
        clock.lap(|c| &mut c.data);
        let output = self.model.forward_train(x);
        clock.lap(|c| &mut c.forward);
        let terms = self.objective.evaluate(&output, views, self.moment(place.epoch, place.epochs));
        let loss = terms.read();
        let membership = views.first(output.membership.clone().detach()).into_data();
        let membership = membership.iter::<f32>().collect();
        clock.lap(|c| &mut c.loss);
        if !loss.is_finite() {
            return StepResult { loss, membership, applied: false };
        }
        let mut gradients = terms.total.backward();
        clock.lap(|c| &mut c.backward);
        let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
        let (mut stepped, applied) = self.optimizer.step(self.model.clone(), &mut gradients, lr);
        if applied {
            stepped.update_running(&output, self.settings.network.batch_norm_momentum);
            self.model = stepped;
        }
        clock.lap(|c| &mut c.update);
        StepResult { loss, membership, applied }
    }

    fn is_refresh_due(&self, _stage: usize) -> bool {
        self.partners.is_none() && self.settings.paired() && self.settings.neighbours.is_on()
    }

    fn refresh(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        self.find_partners(data)
    }

    fn is_settled(&self, place: &EpochPlace) -> bool {
        let loss = &self.settings.loss;
        let start = if loss.self_label > 0.0 { loss.self_label_start } else { 0.0 };
        place.done as f64 > loss.ramp.max(start) && place.done > self.fine_epochs(place.epochs)
    }

    fn end_epoch(&mut self, place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        self.find_partners(data)?;
        let better = self.better_output(place, data)?;
        let regrouped = better.is_some();
        if let Some(layer) = better {
            self.model.replace_output(layer)?;
            self.optimizer.forget(&self.model, &self.model.output_parameters());
        }
        Ok(EpochEnd { regrouped, ..EpochEnd::default() })
    }

    /// Three times in the first half of the training: earlier the fine clusters say nothing, later there is no time to
    /// learn from it.
    fn upheavals(&self, epochs: usize) -> Vec<usize> {
        if self.fine_epochs(epochs) > 0 {
            return vec![self.fine_epochs(epochs)];
        }
        match self.has_fine_clusters() {
            true => (2..=4).map(|eighths| (epochs * eighths).div_ceil(8)).filter(|&epoch| epoch < epochs).collect(),
            false => Vec::new(),
        }
    }

    fn learning_rate(&self, _stage: usize, epoch: f64, epochs: usize) -> f64 {
        self.settings.optim.lr_at(epoch, epochs as f64)
    }

    fn loss(&self, batch: &Batch, views: BatchKey) -> f64 {
        let (output, views) = self.output(&batch.items, views);
        self.objective.evaluate(&output, views, Moment::LATE).read().total
    }

    /// Replaces the running batch-norm statistics, which lag behind the weights, by those of clean images.
    fn settle(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        if !self.settings.refresh_statistics {
            return Ok(());
        }
        let valid = self.model.valid();
        let mut pass = StatisticsPass::new();
        for batch in joined(data.batches(Pass::Everything), self.batch) {
            pass.add(&valid.forward_train(self.clean(&batch?.items)));
            if pass.images() >= STATISTICS_IMAGES {
                break;
            }
        }
        pass.apply(&mut self.model);
        Ok(())
    }

    fn answers(&self, items: &Items) -> Answers {
        let output = self.model.valid().forward_eval(self.clean(items));
        Answers::read(output.membership, output.embedding)
    }

    fn clusters(&self) -> usize {
        self.valid().config().clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        self.model.state()
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        Ok(self.model.load_state(weights)?)
    }

    fn progress(&self) -> Vec<NamedArray> {
        let mut arrays = self.optimizer.save();
        arrays.extend(partners::save(self.partners.as_ref().and_then(Option::as_ref)));
        arrays
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        self.optimizer = Optimizer::restore(&self.settings.optim, progress, &self.model)?;
        self.known = partners::restore(progress);
        Ok(())
    }

    fn freeze(&self) -> Network {
        self.model.to_network()
    }

    fn step_flops(&self, rows: usize) -> Option<f64> {
        Some(step_flops(self.valid(), rows, self.settings.compared(rows)))
    }
}

fn pixels(items: &Items) -> &[u8] {
    // `Settings::model` refuses everything but images before a learner is made.
    items.pixels().unwrap_or_default()
}
