//! The end of a restart.

use dtkc_core::{NamedArray, Values};
use dtkc_methods::LearnError;

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
        (restart.outcome, restart.ended) = match self.worth(restart) {
            Ok(Some(outcome)) => (Some(outcome), Some(reason)),
            Ok(None) | Err(TrainError::Learn(LearnError::Diverged(_))) => {
                (Some(Outcome::nothing(restart.learner.clusters())), Some(Ended::Diverged))
            }
            Err(error) => return Err(error),
        };
        // The network first: a checkpoint that says "ended" promises that the network is there.
        self.journal.save_network(restart)?;
        self.journal.save(restart)?;
        self.console.ended(restart);
        Ok(())
    }

    /// What a restart is worth; `None` where it never came to clustering, or holds a number that is not finite. Such a
    /// network may well have a low loss (an infinite deviation makes all images equal) but is no result.
    fn worth(&mut self, restart: &mut Restart) -> Result<Option<Outcome>, TrainError> {
        if restart.stage + 1 < self.stages.len() {
            return Ok(None);
        }
        restart.learner.settle(&mut self.data)?;
        if !is_finite(&restart.learner.weights()) {
            return Ok(None);
        }
        let loss = self.comparison_loss(restart)?;
        let assigned = assign::assign_all(restart.learner.as_ref(), &mut self.data)?;
        let scores = assign::scores(self.labels.as_deref(), &assigned.clusters)?;
        Ok(Some(Outcome {
            loss,
            scores: scores.map(|s| [s.acc, s.nmi, s.ari]),
            confidence: Some(assigned.confidence),
            sample: assigned.sample(),
            sizes: assigned.sizes,
        }))
    }

    /// The loss on the batches that all restarts share.
    pub(super) fn comparison_loss(&mut self, restart: &Restart) -> Result<f64, TrainError> {
        assign::comparison_loss(restart.learner.as_ref(), &mut self.data)
    }
}

fn is_finite(arrays: &[NamedArray]) -> bool {
    arrays.iter().all(|array| match &array.values {
        Values::F32(values) => values.iter().all(|value| value.is_finite()),
        Values::F64(values) => values.iter().all(|value| value.is_finite()),
        Values::U32(_) | Values::U64(_) => true,
    })
}
