//! One restart: everything that training it changes.

mod store;

use std::fmt;

use dtkc_core::{Model, NamedArray};
use serde::{Deserialize, Serialize};

use crate::monitor::Monitor;
use crate::optimizer::Adam;

pub use store::{BestMeta, Identity, StoredNetwork, log_lines};

/// Why a restart ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It had all its epochs.
    Epochs,
    /// The loss had not fallen for `patience` epochs.
    Patience,
    /// Its loss was too high beside the others.
    Pruned,
    /// The time was used up.
    Budget,
    /// Too many steps in a row were not finite.
    Diverged,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Epochs => "all epochs",
            Self::Patience => "loss stopped falling",
            Self::Pruned => "pruned",
            Self::Budget => "time used up",
            Self::Diverged => "not finite",
        })
    }
}

/// The weights of the best epoch so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// Its mean loss.
    pub loss: f64,
    /// Weights and running statistics at its end.
    pub state: Vec<NamedArray>,
}

/// What a finished restart is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Loss on the fixed batches that all restarts share.
    pub loss: f64,
    /// ACC, NMI and ARI, where the data has labels.
    pub scores: Option<[f64; 3]>,
    /// Images in each cluster, as the network numbers them.
    pub sizes: Vec<u64>,
}

/// A restart in progress. Saved and restored as a whole, it goes on to the same bits.
#[derive(Debug, Clone)]
pub struct Restart {
    /// Its number, from 0.
    pub index: usize,
    /// Epochs that are complete.
    pub epoch: usize,
    /// Batches of the current epoch that are done.
    pub batch: usize,
    /// The network, on the training device.
    pub model: Model,
    /// The optimiser.
    pub adam: Adam,
    /// Figures of the current epoch.
    pub monitor: Monitor,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// Epochs since the loss last fell.
    pub stale: usize,
    /// Steps in a row that were not finite.
    pub bad_steps: usize,
    /// Steps that were not finite, in all.
    pub skipped: usize,
    /// Loss on the fixed batches at the end of each pruning stage.
    pub stage_losses: Vec<f64>,
    /// Why it ended, once it has.
    pub ended: Option<Ended>,
    /// What it is worth, once it has ended.
    pub outcome: Option<Outcome>,
}

impl Restart {
    /// A restart at its beginning.
    pub fn new(index: usize, model: Model, adam: Adam, clusters: usize) -> Self {
        Self {
            index,
            epoch: 0,
            batch: 0,
            model,
            adam,
            monitor: Monitor::new(clusters),
            best: None,
            stale: 0,
            bad_steps: 0,
            skipped: 0,
            stage_losses: Vec::new(),
            ended: None,
            outcome: None,
        }
    }

    /// Closes the current epoch with its mean loss: remembers the weights when it is the best so far. While the
    /// loss itself still changes (`settled` is false), a later epoch always counts as better.
    pub fn close_epoch(&mut self, settled: bool) {
        let loss = self.monitor.loss();
        self.epoch += 1;
        self.batch = 0;
        self.monitor = Monitor::new(self.monitor.clusters());
        let lower = self.best.as_ref().is_none_or(|best| loss < best.loss);
        if lower || (!settled && loss.is_finite()) {
            self.best = Some(Best { epoch: self.epoch, loss, state: self.model.state() });
            self.stale = 0;
        } else {
            self.stale += 1;
        }
    }
}
