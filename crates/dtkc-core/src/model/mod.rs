//! The network: convolution blocks or recurrent layers (neither where items are features), hidden layer, softmax over clusters.

pub(crate) mod freeze;
pub(crate) mod init;
pub(crate) mod layers;
mod recurrent;
pub(crate) mod state;
mod statistics;

pub use recurrent::RecurrentConfig;
pub use state::{NamedArray, OutputLayer, Values};
pub use statistics::{BatchStatistics, StatisticsPass};

use crate::Tapped;
use crate::config::ValidModel;
use crate::sequences::{Scaling, Sequences};
use burn::module::Module;
use burn::tensor::{Tensor, activation};
use layers::{Block, BlockOutput, Dense, Norm};
use recurrent::{GruLayer, last_states};

/// The trained part: blocks or recurrent layers, hidden layer, output layer.
///
/// Built by [`ValidModel::init`]. On an autodiff device its parameters require gradients, its running batch-norm
/// statistics never do. [`Module::valid`] gives the same model without autodiff, for scoring and export.
#[derive(Module, Debug)]
pub struct Model {
    blocks: Vec<Block>,
    recurrent: Vec<GruLayer>,
    scaling: Option<Scaling>,
    hidden: Dense,
    hidden_norm: Option<Norm>,
    output: Dense,
    fine: Option<Dense>,
    #[module(skip)]
    valid: ValidModel,
}

/// What the network takes.
#[derive(Debug, Clone)]
pub enum Input {
    /// `[n, height, width, channels]`, made by [`ValidModel::input`].
    Images(Tensor<4>),
    /// Scaled sequences, made by [`Model::scaled`].
    Sequences(Sequences),
    /// Scaled vectors `[n, dim]` of another network, made by [`Model::scaled`].
    Features(Tensor<2>),
}

impl From<Tensor<4>> for Input {
    fn from(images: Tensor<4>) -> Self {
        Self::Images(images)
    }
}

impl From<Tensor<2>> for Input {
    fn from(features: Tensor<2>) -> Self {
        Self::Features(features)
    }
}

impl From<Sequences> for Input {
    fn from(sequences: Sequences) -> Self {
        Self::Sequences(sequences)
    }
}

/// What the network says about a batch of n items.
#[derive(Debug, Clone)]
pub struct Output {
    /// What companion objectives see of every block, its output unless it is tapped before pooling, or the last states of
    /// every recurrent layer.
    pub blocks: Vec<Tapped>,
    /// The embedding z: `[n, hidden]`.
    pub embedding: Tensor<2>,
    /// Input of the softmax: `[n, k]`.
    pub logits: Tensor<2>,
    /// The memberships U, rows sum to one: `[n, k]`.
    pub membership: Tensor<2>,
    /// Memberships in the fine clusters of the second output layer, in training if there is one: `[n, fine clusters]`.
    pub fine: Option<Tensor<2>>,
    /// Batch mean and variance of every batch norm, in order; empty after [`Model::forward_eval`].
    pub statistics: Vec<BatchStatistics>,
}

impl Output {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.membership.dims()[0]
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Model {
    /// Training mode: batch norm uses the batch's own statistics and reports them.
    ///
    /// # Panics
    /// Panics when the items are not of the model's kind.
    pub fn forward_train(&self, x: impl Into<Input>) -> Output {
        let mut statistics = Vec::new();
        self.forward(x.into(), Some(&mut statistics)).with_statistics(statistics)
    }

    /// Evaluation mode: batch norm uses the running statistics; an item's result does not depend on its batch.
    ///
    /// # Panics
    /// Panics when the items are not of the model's kind.
    pub fn forward_eval(&self, x: impl Into<Input>) -> Output {
        self.forward(x.into(), None)
    }

    /// What the last block gives for a batch, in a row, or the last states of the last recurrent layer; batch norm uses the
    /// batch's own statistics. Features of another network are that already.
    ///
    /// # Shapes
    /// - result: `[n, features]`
    pub fn features(&self, x: impl Into<Input>) -> Tensor<2> {
        match x.into() {
            Input::Images(x) => self.features_of_images(x, Some(&mut Vec::new())).1,
            Input::Sequences(x) => self.features_of_sequences(x).1,
            Input::Features(x) => x,
        }
    }

    /// The configuration that the model was built from.
    pub fn valid_config(&self) -> &ValidModel {
        &self.valid
    }

    /// Moves the running statistics towards those of a batch: `momentum * old + (1 - momentum) * batch`.
    ///
    /// `momentum` is usually `network.batch_norm_momentum`, .99 in the paper.
    pub fn update_running(&mut self, output: &Output, momentum: f64) {
        for (norm, batch) in self.norms_mut().into_iter().zip(&output.statistics) {
            norm.update(batch, momentum);
        }
    }

    /// Steps of sequences, or vectors of another network, as the network takes them: less the mean of their dimension, by its
    /// deviation. Images have no scaling that is learnt.
    pub fn scaled(&self, steps: &[f32]) -> Vec<f32> {
        self.scaling.as_ref().map_or_else(|| steps.to_vec(), |scaling| scaling.apply(steps))
    }

    /// Learns the scaling of sequences or features.
    pub fn set_scaling(&mut self, mean: Vec<f32>, deviation: Vec<f32>) {
        if let Some(scaling) = &mut self.scaling {
            scaling.set(mean, deviation);
        }
    }

    fn forward(&self, x: Input, mut statistics: Option<&mut Vec<BatchStatistics>>) -> Output {
        let (blocks, features) = match x {
            Input::Images(x) => self.features_of_images(x, statistics.as_deref_mut()),
            Input::Sequences(x) => self.features_of_sequences(x),
            Input::Features(x) => (Vec::new(), x),
        };
        let epsilon = self.valid.config().network.batch_norm_epsilon;
        let hidden = activation::relu(self.hidden.forward(features));
        let fine = self.fine.as_ref().filter(|_| statistics.is_some());
        let embedding = match &self.hidden_norm {
            Some(norm) => norm.forward_vector(hidden, epsilon, statistics),
            None => hidden,
        };
        let logits = self.output.forward(embedding.clone());
        let membership = activation::softmax(logits.clone(), 1);
        let fine = fine.map(|fine| activation::softmax(fine.forward(embedding.clone()), 1));
        Output { blocks, embedding, logits, membership, fine, statistics: Vec::new() }
    }

    /// The taps of all blocks, and the output of the last as vectors.
    fn features_of_images(
        &self,
        x: Tensor<4>,
        mut statistics: Option<&mut Vec<BatchStatistics>>,
    ) -> (Vec<Tapped>, Tensor<2>) {
        let network = &self.valid.config().network;
        let (padding, epsilon) = (network.padding.into(), network.batch_norm_epsilon);
        let mut taps = Vec::with_capacity(self.blocks.len());
        let mut y = x;
        for block in &self.blocks {
            let BlockOutput { output, tap } = block.forward(y, padding, epsilon, statistics.as_deref_mut());
            taps.push(Tapped::Maps(tap));
            y = output;
        }
        let [n, height, width, channels] = y.dims();
        (taps, y.reshape([n, height * width * channels]))
    }

    fn features_of_sequences(&self, x: Sequences) -> (Vec<Tapped>, Tensor<2>) {
        let taps = last_states(&self.recurrent, x);
        assert!(!taps.is_empty(), "a network without recurrent layers takes no sequences");
        let features = taps[taps.len() - 1].clone();
        (taps.into_iter().map(Tapped::Vectors).collect(), features)
    }

    fn norms_mut(&mut self) -> Vec<&mut Norm> {
        self.blocks.iter_mut().filter_map(|b| b.norm.as_mut()).chain(self.hidden_norm.as_mut()).collect()
    }
}

impl Output {
    fn with_statistics(self, statistics: Vec<BatchStatistics>) -> Self {
        Self { statistics, ..self }
    }
}
