//! The end of a restart.

use super::Trainer;
use crate::assign;
use crate::error::TrainError;
use crate::restart::{Ended, Outcome, Restart};

impl Trainer<'_> {
    /// Restores the best epoch, measures what it is worth and saves both.
    pub(super) fn finish_restart(&mut self, restart: &mut Restart, reason: Ended) -> Result<(), TrainError> {
        self.save_before_long_work(restart)?;
        if let Some(best) = &restart.best {
            let restored = restart.learner.set_weights(&best.weights);
            restored.map_err(|error| TrainError::Mismatch(format!("the best weights cannot be restored: {error}")))?;
        }
        restart.learner.settle(&mut self.data)?;
        let loss = self.comparison_loss(restart)?;
        let assigned = assign::assign_all(restart.learner.as_ref(), &mut self.data)?;
        let scores = assign::scores(self.labels.as_deref(), &assigned.clusters)?;
        restart.outcome = Some(Outcome {
            loss,
            scores: scores.map(|s| [s.acc, s.nmi, s.ari]),
            confidence: Some(assigned.confidence),
            sample: assigned.sample(),
            sizes: assigned.sizes,
        });
        restart.ended = Some(reason);
        // The network first: a checkpoint that says "ended" promises that the network is there.
        self.journal.save_network(restart)?;
        self.journal.save(restart)?;
        self.console.ended(restart);
        Ok(())
    }

    /// The loss on the batches that all restarts share.
    pub(super) fn comparison_loss(&mut self, restart: &Restart) -> Result<f64, TrainError> {
        assign::comparison_loss(restart.learner.as_ref(), &mut self.data)
    }
}
