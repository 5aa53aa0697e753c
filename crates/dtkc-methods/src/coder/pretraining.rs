//! An autoencoder is trained before anything is clustered.

use burn::tensor::Tensor;
use dtkc_core::{Autoencoder, ConfigError, LossValues, NamedArray, Norms, StateError, mean_square_error};
use serde::{Deserialize, Serialize};

use crate::learner::{PRETRAINING, Stage, StepClock, StepResult};
use crate::optimizer::{OptimConfig, Optimizer};
use crate::plan::open_epochs;
use crate::{LearnError, Task};

/// How an autoencoder is trained: by the mean squared error of what it decodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pretraining {
    /// Epochs; 0 for as many as the number of items asks for.
    pub epochs: usize,
    /// The optimiser.
    pub optim: OptimConfig,
}

impl Default for Pretraining {
    fn default() -> Self {
        Self { epochs: 50, optim: OptimConfig::adam(1e-3) }
    }
}

impl Pretraining {
    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.optim.check()
    }

    /// The number of epochs where it was left open.
    pub fn set_epochs(&mut self, items: usize, items_per_step: usize) {
        self.epochs = open_epochs(self.epochs, items, items_per_step);
    }

    /// The stage; it has no epochs where another run's takes its place.
    pub(crate) fn stage(&self, task: &Task) -> Stage {
        Stage { name: PRETRAINING, epochs: if task.pretrained.is_some() { 0 } else { self.epochs } }
    }
}

/// Trains an autoencoder step by step.
pub(crate) struct Pretrainer {
    pub(crate) optimizer: Optimizer,
}

impl Pretrainer {
    pub(crate) fn new(settings: &Pretraining) -> Self {
        Self { optimizer: Optimizer::new(&settings.optim) }
    }

    pub(crate) fn restore(
        settings: &Pretraining,
        arrays: &[NamedArray],
        autoencoder: &Autoencoder,
    ) -> Result<Self, StateError> {
        Ok(Self { optimizer: Optimizer::restore(&settings.optim, arrays, autoencoder)? })
    }

    /// One step on scaled images.
    pub(crate) fn step(
        &mut self,
        autoencoder: &mut Autoencoder,
        x: Tensor<4>,
        lr: f64,
        clock: &mut StepClock,
    ) -> StepResult {
        clock.lap(|c| &mut c.data);
        let [n, height, width, channels] = x.dims();
        let code = autoencoder.encode(x.clone(), Norms::Batch).code;
        let decoded = autoencoder.decode(code);
        clock.lap(|c| &mut c.forward);
        let loss = mean_square_error(decoded, x.reshape([n, height * width * channels]));
        let value = loss.clone().detach().into_data().iter::<f64>().next().unwrap_or(f64::NAN);
        let values = LossValues { total: value, terms: vec![("reconstruction".into(), value)] };
        clock.lap(|c| &mut c.loss);
        if !value.is_finite() {
            return StepResult { loss: values, membership: Vec::new(), applied: false };
        }
        let mut gradients = loss.backward();
        clock.lap(|c| &mut c.backward);
        let (stepped, applied) = self.optimizer.step(autoencoder.clone(), &mut gradients, lr);
        *autoencoder = stepped;
        clock.lap(|c| &mut c.update);
        StepResult { loss: values, membership: Vec::new(), applied }
    }
}

/// Takes another run's autoencoder, where there is one.
pub(crate) fn adopt(autoencoder: &mut Autoencoder, task: &Task) -> Result<(), LearnError> {
    let Some(arrays) = &task.pretrained else { return Ok(()) };
    autoencoder.load_state(arrays).map_err(|error| {
        LearnError::Unsuitable(format!(
            "the pretrained autoencoder does not fit ({error}); pretrain one on images of this size and with these layers"
        ))
    })
}
