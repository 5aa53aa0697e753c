//! The end of a restart: its best weights are scored, stored and described.

use super::Trainer;
use crate::error::TrainError;
use crate::eval;
use crate::restart::{Ended, Outcome, Restart};

impl Trainer<'_> {
    /// Restores the best epoch, measures what it is worth and saves both.
    pub(super) fn finish_restart(&mut self, restart: &mut Restart, reason: Ended) -> Result<(), TrainError> {
        if let Some(best) = &restart.best {
            let restored = restart.model.load_state(&best.state);
            restored.map_err(|error| TrainError::Mismatch(format!("the best weights cannot be restored: {error}")))?;
        }
        if self.config.run.refresh_statistics {
            eval::refresh_statistics(&self.recipe, &mut restart.model, &mut self.batches)?;
        }
        let loss = self.comparison_loss(restart)?;
        let assigned = eval::assign_all(&self.recipe, &restart.model, &mut self.batches, false)?;
        let scores = eval::scores(self.labels.as_deref(), &assigned.clusters)?;
        restart.outcome = Some(Outcome { loss, scores: scores.map(|s| [s.acc, s.nmi, s.ari]), sizes: assigned.sizes });
        restart.ended = Some(reason);
        // The network first: a checkpoint that says "ended" promises that the network is there.
        self.journal.save_network(restart)?;
        self.journal.save(restart)?;
        self.console.ended(restart);
        Ok(())
    }

    /// The loss on the batches that all restarts share.
    pub(super) fn comparison_loss(&mut self, restart: &Restart) -> Result<f64, TrainError> {
        let (seed, count) = (self.config.run.seed, self.config.run.comparison_batches);
        eval::comparison_loss(&self.recipe, &restart.model, &mut self.batches, seed, count)
    }
}
