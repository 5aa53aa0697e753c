//! What a method must be able to do.

use std::time::{Duration, Instant};

use burn::tensor::Tensor;
use dtkc_core::augment::BatchKey;
use dtkc_core::{LossValues, NamedArray};
use dtkc_item::{Batch, ItemShape, Items};
use dtkc_onnx::Network;

use crate::LearnError;
use crate::dtkc::Joinings;
use crate::inside::Inside;
use crate::places::Pass;

/// A method on its way: one restart, from new weights to a network that can be frozen.
///
/// The training loop asks for the [`stages`](Self::stages), tells when one is [entered](Self::enter), gives batches to
/// [`step`](Self::step), tells when an [epoch ends](Self::end_epoch) and at the end lets the learner
/// [settle](Self::settle). Everything in between (order of items, restarts, pruning, checkpoints, resume, figures, export)
/// is the loop's. A learner draws random numbers only from the seeds it is given, so that the same calls give the same
/// bits.
pub trait Learner {
    /// The stages in order, at least one. The last is the one whose loss restarts are compared by.
    fn stages(&self) -> Vec<Stage>;

    /// A stage begins: whatever it needs to know about all items is found out here (an initialisation, first targets).
    fn enter(&mut self, stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        let _ = (stage, data);
        Ok(())
    }

    /// One step: weights change unless the loss or a gradient is not finite.
    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult;

    /// Whether something that depends on all items is due before the next step: targets that follow the network.
    fn is_refresh_due(&self, stage: usize) -> bool {
        let _ = stage;
        false
    }

    /// Brings it up to date.
    fn refresh(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        let _ = data;
        Ok(())
    }

    /// Whether the mean loss of this epoch can be compared with that of later ones: every weight in it had its final value.
    fn is_settled(&self, place: &EpochPlace) -> bool {
        let _ = place;
        true
    }

    /// An epoch has ended, and its weights were remembered if they are the best so far: regrouping, new targets.
    fn end_epoch(&mut self, place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        let _ = (place, data);
        Ok(EpochEnd::default())
    }

    /// The epochs after which clusters may be made anew. Restarts are first compared when the first of them is an epoch
    /// behind: before it, a good restart and a bad one may still look alike.
    fn upheavals(&self, epochs: usize) -> Vec<usize> {
        let _ = epochs;
        Vec::new()
    }

    /// The learning rate after so many epochs of a stage.
    fn learning_rate(&self, stage: usize, epoch: f64, epochs: usize) -> f64;

    /// The loss of a batch under fixed views, without training on it: the measure by which restarts are compared.
    fn loss(&self, batch: &Batch, views: BatchKey) -> f64;

    /// The weights are final: brings what lags behind them up to date before they are scored and frozen.
    fn settle(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        let _ = data;
        Ok(())
    }

    /// What the network says about items, each by itself.
    fn answers(&self, items: &Items) -> Answers;

    /// Number of clusters.
    fn clusters(&self) -> usize;

    /// Everything that the frozen network is made of, always in the same order.
    fn weights(&self) -> Vec<NamedArray>;

    /// Takes the weights of [`weights`](Self::weights) back. On an error nothing is changed.
    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError>;

    /// Whatever else is needed to go on to the same bits: moments, targets, counts.
    fn progress(&self) -> Vec<NamedArray>;

    /// Takes [`progress`](Self::progress) back, after the weights.
    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError>;

    /// What the stage [`PRETRAINING`] has made, for other runs to begin with; empty for a method without such a stage.
    fn pretrained(&self) -> Vec<NamedArray> {
        Vec::new()
    }

    /// The network as it is now, as a plain list of layers.
    fn freeze(&self) -> Network;

    /// How well up to so many groups of items are apart, from which the number of clusters can be read; `None` for a method
    /// that cannot tell.
    fn joinings(&mut self, clusters: usize, data: &mut dyn Passes) -> Result<Option<Joinings>, LearnError> {
        let _ = (clusters, data);
        Ok(None)
    }

    /// A look at its backbone; `None` for a method without one.
    fn inside(&self) -> Option<&dyn Inside> {
        None
    }

    /// Multiplications and additions of a step, by the plain formulas, where somebody counted them.
    fn step_flops(&self, extent: Extent) -> Option<f64> {
        let _ = extent;
        None
    }
}

/// How much there is in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Rows of the loss.
    pub rows: usize,
    /// Time steps of all rows together; 0 where items are images.
    pub steps: usize,
}

/// A part of training with a purpose of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its name in progress and log, such as `pretraining`.
    pub name: &'static str,
    /// How many epochs it lasts; 0 where entering it is all.
    pub epochs: usize,
}

/// The name of the stage that learns to describe items before they are clustered.
pub const PRETRAINING: &str = "pretraining";
/// The name of a stage that is over once it was entered: first centres, a graph.
pub const INITIALISATION: &str = "initialisation";
/// The name of the last stage of every method.
pub const CLUSTERING: &str = "clustering";

/// Which step of a restart it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepPlace {
    /// The stage, from 0.
    pub stage: usize,
    /// Epochs of the stage that are done, with the part of the running one.
    pub epoch: f64,
    /// Epochs that the stage has in all.
    pub epochs: usize,
    /// Seed of the random views.
    pub views: BatchKey,
}

/// Which epoch of a restart has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochPlace {
    /// The stage, from 0.
    pub stage: usize,
    /// Epochs of the stage that are done, this one included.
    pub done: usize,
    /// Epochs that the stage has in all.
    pub epochs: usize,
}

/// What a step found.
#[derive(Debug, Clone)]
pub struct StepResult {
    /// The loss before the step.
    pub loss: LossValues,
    /// Memberships of the batch's items, `[n, k]` row-major; empty where a stage has none.
    pub membership: Vec<f32>,
    /// Whether the weights were changed; not so when something was not finite.
    pub applied: bool,
}

/// What the end of an epoch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EpochEnd {
    /// Whether clusters were made anew.
    pub regrouped: bool,
    /// Whether further epochs would change nothing that matters.
    pub converged: bool,
}

/// What a network says about n items.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Number of clusters k.
    pub clusters: usize,
    /// `[n, k]` row-major, rows sum to 1.
    pub membership: Vec<f32>,
    /// Width of the embedding.
    pub width: usize,
    /// `[n, width]` row-major.
    pub embedding: Vec<f32>,
}

impl Answers {
    /// From memberships `[n, k]` and embeddings `[n, width]`.
    pub(crate) fn read(membership: Tensor<2>, embedding: Tensor<2>) -> Self {
        let ([_, clusters], [_, width]) = (membership.dims(), embedding.dims());
        let values = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect();
        Self { clusters, membership: values(membership), width, embedding: values(embedding) }
    }
}

/// The items of a run, as a learner may ask for them.
pub trait Passes {
    /// Number of items.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the items look like.
    fn shape(&self) -> ItemShape;

    /// The batches of one pass. Fails with [`LearnError::Stopped`] where the work should end.
    fn batches(&mut self, pass: Pass) -> Box<dyn Iterator<Item = Result<Batch, LearnError>> + '_>;

    /// The fixed batches on which restarts are compared, with the seeds of their views.
    fn comparison(&mut self) -> Box<dyn Iterator<Item = Result<(Batch, BatchKey), LearnError>> + '_>;

    /// Whether the work should end; asked between the parts of long work that goes through no batches.
    fn stop(&self) -> bool {
        false
    }

    /// What long work is doing now, for whoever watches it.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// A sentence worth keeping.
    fn say(&self, text: &str) {
        let _ = text;
    }
}

/// For tests of work that goes through no batches: nobody listens.
#[cfg(test)]
pub(crate) struct Silent;

#[cfg(test)]
impl Passes for Silent {
    fn len(&self) -> usize {
        0
    }

    fn shape(&self) -> ItemShape {
        ItemShape::Sequence { dim: 1 }
    }

    fn batches(&mut self, _: Pass) -> Box<dyn Iterator<Item = Result<Batch, LearnError>> + '_> {
        Box::new(std::iter::empty())
    }

    fn comparison(&mut self) -> Box<dyn Iterator<Item = Result<(Batch, BatchKey), LearnError>> + '_> {
        Box::new(std::iter::empty())
    }
}

/// Joins batches until there are at least `size` items, so that a forward pass is worth its overhead.
pub fn joined<E>(
    mut batches: impl Iterator<Item = Result<Batch, E>>,
    size: usize,
) -> impl Iterator<Item = Result<Batch, E>> {
    std::iter::from_fn(move || {
        let mut all: Option<Batch> = None;
        for batch in batches.by_ref() {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            let all = match &mut all {
                None => all.insert(batch),
                Some(all) => {
                    all.append(&batch);
                    all
                }
            };
            if all.len() >= size {
                break;
            }
        }
        all.map(Ok)
    })
}

/// Where the time of a step goes. Only the CPU computes when it is asked to; on a GPU the parts are shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepClock {
    /// Scaling and augmentation.
    pub data: Duration,
    /// The network, forward.
    pub forward: Duration,
    /// Kernels and the terms of the loss.
    pub loss: Duration,
    /// All gradients.
    pub backward: Duration,
    /// Clipping, the optimiser, running statistics.
    pub update: Duration,
    since: Instant,
}

impl StepClock {
    /// Starts now.
    pub fn start() -> Self {
        let zero = Duration::ZERO;
        Self { data: zero, forward: zero, loss: zero, backward: zero, update: zero, since: Instant::now() }
    }

    /// Adds the time since the last call to one part.
    pub fn lap(&mut self, part: impl FnOnce(&mut Self) -> &mut Duration) {
        let now = Instant::now();
        let time = now - self.since;
        *part(self) += time;
        self.since = now;
    }

    /// Sum of all parts.
    pub fn total(&self) -> Duration {
        self.data + self.forward + self.loss + self.backward + self.update
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_item::ImageShape;

    #[test]
    fn whole_batches_are_joined() {
        let shape = ImageShape { height: 1, width: 1, channels: 1 };
        let batch = |first: usize, n: usize| {
            let items = Items::Images { shape, pixels: vec![first as u8; n] };
            Ok::<_, LearnError>(Batch { indices: (first..first + n).collect(), items })
        };
        let source = [batch(0, 2), batch(2, 2), batch(4, 1)].into_iter();
        let chunks: Vec<Batch> = joined(source, 3).collect::<Result<_, _>>().unwrap();
        assert_eq!(chunks.len(), 2);
        assert_eq!(chunks[0].indices, [0, 1, 2, 3]);
        assert_eq!(chunks[0].items.pixels().unwrap(), [0, 0, 2, 2]);
        assert_eq!(chunks[1].indices, [4]);
    }
}
