//! One restart: everything that training it changes.

mod recent;
mod store;

use std::fmt;

use dtkc_core::NamedArray;
use dtkc_methods::Learner;
use serde::{Deserialize, Serialize};

use crate::monitor::Monitor;

pub use recent::Recent;
pub use store::{BestMeta, Identity, Reached, StoredNetwork, copy, known_lines, reached, read_end};

/// Why a restart ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// It had all its epochs.
    Epochs,
    /// Further epochs would have changed nothing that matters.
    Converged,
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
            Self::Converged => "converged",
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
    /// The mean loss up to its end.
    pub loss: f64,
    /// The learner's weights at its end.
    pub weights: Vec<NamedArray>,
}

/// What a finished restart is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Loss on the fixed batches that all restarts share.
    pub loss: f64,
    /// ACC, NMI and ARI, where the data has labels.
    pub scores: Option<[f64; 3]>,
    /// Items in each cluster, as the network numbers them.
    pub sizes: Vec<u64>,
    /// Mean of the largest membership; `None` in older checkpoints.
    pub confidence: Option<f64>,
    /// Clusters of some items that are spread over the set, the same ones in every restart; empty in older checkpoints.
    pub sample: Vec<u32>,
}

impl Outcome {
    /// Of a restart that came to nothing: the worst loss, and no item in any cluster.
    pub fn nothing(clusters: usize) -> Self {
        Self { loss: f64::INFINITY, scores: None, sizes: vec![0; clusters], confidence: None, sample: Vec::new() }
    }
}

/// A restart in progress. Saved and restored as a whole, it goes on to the same bits.
pub struct Restart {
    /// Its number, from 0.
    pub index: usize,
    /// The method on its way.
    pub learner: Box<dyn Learner>,
    /// The stage, from 0.
    pub stage: usize,
    /// Whether the learner has entered the stage.
    pub entered: bool,
    /// Epochs of the stage that are complete.
    pub epoch: usize,
    /// Batches of the current epoch that are done.
    pub batch: usize,
    /// Figures of the current epoch.
    pub monitor: Monitor,
    /// The best epoch of the stage so far.
    pub best: Option<Best>,
    /// Losses of the last epochs.
    pub recent: Recent,
    /// Epochs since the loss last fell.
    pub stale: usize,
    /// Whether the learner says that further epochs of the stage would change nothing that matters.
    pub converged: bool,
    /// Steps in a row that were not finite.
    pub bad_steps: usize,
    /// Steps that were not finite, in all.
    pub skipped: usize,
    /// Loss on the fixed batches at the end of each pruning round.
    pub round_losses: Vec<f64>,
    /// Why it ended, once it has.
    pub ended: Option<Ended>,
    /// What it is worth, once it has ended.
    pub outcome: Option<Outcome>,
}

impl Restart {
    /// A restart at its beginning.
    pub fn new(index: usize, learner: Box<dyn Learner>) -> Self {
        let monitor = Monitor::new(learner.clusters());
        Self {
            index,
            learner,
            stage: 0,
            entered: false,
            epoch: 0,
            batch: 0,
            monitor,
            best: None,
            recent: Recent::default(),
            stale: 0,
            converged: false,
            bad_steps: 0,
            skipped: 0,
            round_losses: Vec::new(),
            ended: None,
            outcome: None,
        }
    }

    /// Closes the current epoch: remembers the weights when the mean loss of so many epochs is the lowest so far. While the
    /// loss itself still changes (`settled` is false), or there were fewer epochs, a later one always counts as better.
    pub fn close_epoch(&mut self, settled: bool, window: usize) {
        let loss = self.monitor.loss();
        self.epoch += 1;
        self.batch = 0;
        self.monitor = Monitor::new(self.monitor.clusters());
        let mean = if settled { self.recent.mean_with(loss, window) } else { None };
        let lower = |loss: f64| self.best.as_ref().is_none_or(|best| loss < best.loss);
        if mean.map_or(loss.is_finite() || self.best.is_none(), lower) {
            // What is no measure yet is beaten by whatever is one.
            self.remember(mean.filter(|mean| mean.is_finite()).unwrap_or(f64::INFINITY));
        } else {
            self.stale += 1;
        }
    }

    /// What was the best so far had other clusters: it is begun again with those that were made.
    pub fn begin_again(&mut self) {
        self.recent = Recent::default();
        self.remember(f64::INFINITY);
    }

    fn remember(&mut self, loss: f64) {
        self.best = Some(Best { epoch: self.epoch, loss, weights: self.learner.weights() });
        self.stale = 0;
    }

    /// Goes on to the next stage, which starts from the weights as they are.
    pub fn next_stage(&mut self) {
        self.stage += 1;
        (self.entered, self.converged) = (false, false);
        (self.epoch, self.batch, self.stale, self.bad_steps) = (0, 0, 0, 0);
        self.best = None;
        self.recent = Recent::default();
        self.monitor = Monitor::new(self.monitor.clusters());
    }
}
