//! How one step is made: images in, loss, gradients, new weights.

use std::time::{Duration, Instant};

use burn::module::Module as _;
use burn::tensor::{Device, Tensor};
use dtkc_core::augment::BatchKey;
use dtkc_core::{Augmenter, LossValues, Model, Moment, Objective, Output, Settings, ValidModel, Views, scale_images};

use crate::error::TrainError;
use crate::optimizer::{Adam, AdamConfig};

/// Where the time of a step goes. Only the CPU computes when it is asked to; on a GPU the parts are shifted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// Scaling and augmentation.
    pub data: Duration,
    /// The network, forward.
    pub forward: Duration,
    /// Kernels and the terms of the loss.
    pub kernels: Duration,
    /// All gradients.
    pub backward: Duration,
    /// Clipping, Adam, running statistics.
    pub optimiser: Duration,
}

impl Parts {
    /// Sum of all parts.
    pub fn total(&self) -> Duration {
        self.data + self.forward + self.kernels + self.backward + self.optimiser
    }
}

/// Adds the time since `since` to `part` and starts the next one.
fn lap(since: &mut Instant, part: &mut Duration) {
    let now = Instant::now();
    *part += now - *since;
    *since = now;
}

/// What a step found.
#[derive(Debug, Clone)]
pub struct StepResult {
    /// The loss before the step.
    pub loss: LossValues,
    /// Memberships of the first views, `[n, k]` row-major.
    pub membership: Vec<f32>,
    /// Whether the weights were changed; not so when something was not finite.
    pub applied: bool,
}

/// Which step of a restart it is.
#[derive(Debug, Clone, Copy)]
pub struct StepPlace {
    /// Seed of the random views.
    pub key: BatchKey,
    /// Epochs done, with the part of the running one.
    pub epoch: f64,
}

/// The method with its settings, ready to be applied to batches.
#[derive(Debug, Clone)]
pub struct Recipe {
    settings: Settings,
    model: ValidModel,
    objective: Objective,
    augmenter: Option<Augmenter>,
    device: Device,
}

impl Recipe {
    /// Checks what is left to check.
    pub fn new(settings: &Settings, model: ValidModel, device: Device) -> Result<Self, TrainError> {
        let size = model.config().size();
        let augmenter = if settings.paired() { Some(Augmenter::new(&settings.augment, size)?) } else { None };
        let objective = Objective::new(&settings.loss)?;
        Ok(Self { settings: settings.clone(), model, objective, augmenter, device })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The network.
    pub fn model(&self) -> &ValidModel {
        &self.model
    }

    /// Number of clusters.
    pub fn clusters(&self) -> usize {
        self.model.config().clusters
    }

    /// Whether there are fine clusters that training improves and that a new output layer can be made from.
    pub fn has_fine_clusters(&self) -> bool {
        self.settings.paired() && self.settings.loss.overclustering > 0.0 && self.model.fine_clusters() > 0
    }

    /// New weights on the training device.
    pub fn init(&self, seed: u64) -> Model {
        self.model.init(&self.device.clone().autodiff(), seed)
    }

    /// A fresh optimiser.
    pub fn adam(&self) -> Adam {
        Adam::new(self.adam_config())
    }

    /// The numbers of the optimiser.
    pub fn adam_config(&self) -> AdamConfig {
        AdamConfig::from(&self.settings.optim)
    }

    /// Images as the network sees them in evaluation.
    pub fn clean(&self, images: &[u8]) -> Tensor<4> {
        scale_images(images, self.model.config().size(), &self.device)
    }

    /// Images as the loss wants them: single, or paired with a second view.
    pub fn views(&self, images: &[u8], key: BatchKey, device: &Device) -> (Tensor<4>, Views) {
        match &self.augmenter {
            Some(augmenter) => (augmenter.pairs(images, key, device), Views::Paired),
            None => (scale_images(images, self.model.config().size(), device), Views::Single),
        }
    }

    /// What the network says about a batch in training mode, without training on it.
    pub fn output(&self, model: &Model, images: &[u8], key: BatchKey) -> (Output, Views) {
        let (x, views) = self.views(images, key, &self.device);
        (model.valid().forward_train(x), views)
    }

    /// The loss of a batch without training on it.
    pub fn loss(&self, model: &Model, images: &[u8], key: BatchKey) -> LossValues {
        let (output, views) = self.output(model, images, key);
        self.objective.evaluate(&output, views, Moment::LATE).read()
    }

    /// One step: `model` and `adam` are changed unless the loss or a gradient is not finite.
    pub fn step(
        &self,
        model: &mut Model,
        adam: &mut Adam,
        images: &[u8],
        place: StepPlace,
        parts: &mut Parts,
    ) -> StepResult {
        let mut now = Instant::now();
        let (x, views) = self.views(images, place.key, &self.device.clone().autodiff());
        lap(&mut now, &mut parts.data);
        let output = model.forward_train(x);
        lap(&mut now, &mut parts.forward);
        let terms = self.objective.evaluate(&output, views, Moment { epoch: place.epoch });
        let loss = terms.read();
        let membership = self.first_views(&output, views);
        lap(&mut now, &mut parts.kernels);
        if !loss.is_finite() {
            return StepResult { loss, membership, applied: false };
        }
        let mut gradients = terms.total.backward();
        lap(&mut now, &mut parts.backward);
        let lr = self.lr(place.epoch);
        let (mut stepped, applied) = adam.step(model.clone(), &mut gradients, lr);
        if applied {
            stepped.update_running(&output, self.settings.network.batch_norm_momentum);
            *model = stepped;
        }
        lap(&mut now, &mut parts.optimiser);
        StepResult { loss, membership, applied }
    }

    /// The learning rate at this place.
    pub fn lr(&self, epoch: f64) -> f64 {
        self.settings.optim.lr_at(epoch, self.settings.plan.epochs as f64)
    }

    fn first_views(&self, output: &Output, views: Views) -> Vec<f32> {
        let membership = views.first(output.membership.clone().detach()).into_data();
        membership.iter::<f32>().collect()
    }
}
