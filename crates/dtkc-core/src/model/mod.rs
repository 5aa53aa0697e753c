//! The network: convolution blocks, hidden layer, softmax over clusters.

pub(crate) mod freeze;
pub(crate) mod init;
pub(crate) mod layers;
pub(crate) mod state;
mod statistics;

pub use state::{NamedArray, OutputLayer, Values};
pub use statistics::{BatchStatistics, StatisticsPass};

use crate::config::ValidModel;
use burn::module::Module;
use burn::tensor::{Tensor, activation};
use layers::{Block, BlockOutput, Dense, Norm};

/// The trained part: blocks, hidden layer, output layer.
///
/// Built by [`ValidModel::init`]. On an autodiff device its parameters require gradients, its running batch-norm
/// statistics never do. [`Module::valid`] gives the same model without autodiff, for scoring and export.
#[derive(Module, Debug)]
pub struct Model {
    blocks: Vec<Block>,
    hidden: Dense,
    hidden_norm: Option<Norm>,
    output: Dense,
    fine: Option<Dense>,
    #[module(skip)]
    valid: ValidModel,
}

/// What the network says about a batch of n images.
#[derive(Debug, Clone)]
pub struct Output {
    /// What companion objectives see of every block, its output unless it is tapped before pooling:
    /// `[n, height, width, filters]`.
    pub blocks: Vec<Tensor<4>>,
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
    /// Number of images.
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
    /// # Shapes
    /// - x: `[n, height, width, channels]`, made by [`ValidModel::input`]
    pub fn forward_train(&self, x: Tensor<4>) -> Output {
        let mut statistics = Vec::new();
        self.forward(x, Some(&mut statistics)).with_statistics(statistics)
    }

    /// Evaluation mode: batch norm uses the running statistics; an image's result does not depend on its batch.
    ///
    /// # Shapes
    /// - x: `[n, height, width, channels]`, made by [`ValidModel::input`]
    pub fn forward_eval(&self, x: Tensor<4>) -> Output {
        self.forward(x, None)
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

    fn forward(&self, x: Tensor<4>, mut statistics: Option<&mut Vec<BatchStatistics>>) -> Output {
        let network = &self.valid.config().network;
        let epsilon = network.batch_norm_epsilon;
        let mut blocks: Vec<Tensor<4>> = Vec::with_capacity(self.blocks.len());
        let mut y = x;
        for block in &self.blocks {
            let BlockOutput { output, tap } =
                block.forward(y, network.padding.into(), epsilon, statistics.as_deref_mut());
            blocks.push(tap);
            y = output;
        }
        let [n, height, width, channels] = y.dims();
        let hidden = activation::relu(self.hidden.forward(y.reshape([n, height * width * channels])));
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

    fn norms_mut(&mut self) -> Vec<&mut Norm> {
        self.blocks.iter_mut().filter_map(|b| b.norm.as_mut()).chain(self.hidden_norm.as_mut()).collect()
    }
}

impl Output {
    fn with_statistics(self, statistics: Vec<BatchStatistics>) -> Self {
        Self { statistics, ..self }
    }
}
