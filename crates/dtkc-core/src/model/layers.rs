//! The layers of the network, channels-last.

use super::statistics::BatchStatistics;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module::{batch_norm_train, linear};
use dtkc_ops::Padding;

/// A convolution: weight `[kernel, kernel, in, out]`, bias `[out]`.
#[derive(Module, Debug)]
pub(crate) struct Conv {
    pub(crate) weight: Param<Tensor<4>>,
    pub(crate) bias: Param<Tensor<1>>,
}

/// Batch norm: learned scale and shift, running mean and biased variance.
///
/// The running statistics are plain parameters without gradient: they travel with records and clones, and a clone
/// does not share them with its original.
#[derive(Module, Debug)]
pub(crate) struct Norm {
    pub(crate) gamma: Param<Tensor<1>>,
    pub(crate) beta: Param<Tensor<1>>,
    pub(crate) mean: Param<Tensor<1>>,
    pub(crate) variance: Param<Tensor<1>>,
}

/// A dense layer: weight `[in, out]`, bias `[out]`.
#[derive(Module, Debug)]
pub(crate) struct Dense {
    pub(crate) weight: Param<Tensor<2>>,
    pub(crate) bias: Param<Tensor<1>>,
}

/// Convolutions, optional batch norm, ReLU, pooling.
#[derive(Module, Debug)]
pub(crate) struct Block {
    pub(crate) convs: Vec<Conv>,
    pub(crate) norm: Option<Norm>,
    pub(crate) pool: usize,
    /// Whether the block is tapped before pooling.
    pub(crate) unpooled: bool,
}

/// What a block gives.
pub(crate) struct BlockOutput {
    /// Its output.
    pub(crate) output: Tensor<4>,
    /// What companion objectives see: the output, or what was pooled to it.
    pub(crate) tap: Tensor<4>,
}

impl Block {
    /// # Shapes
    /// - x: `[n, h, w, in]`
    /// - output: `[n, h', w', filters]`
    pub(crate) fn forward(
        &self,
        x: Tensor<4>,
        padding: Padding,
        epsilon: f64,
        statistics: Option<&mut Vec<BatchStatistics>>,
    ) -> BlockOutput {
        if !self.unpooled {
            let output = self.pooled(x, padding, epsilon, statistics, self.pool);
            return BlockOutput { tap: output.clone(), output };
        }
        let tap = self.pooled(x, padding, epsilon, statistics, 1);
        // There is nothing below zero behind a ReLU, so another one changes nothing.
        BlockOutput { output: plain(tap.clone(), self.pool), tap }
    }

    fn pooled(
        &self,
        x: Tensor<4>,
        padding: Padding,
        epsilon: f64,
        statistics: Option<&mut Vec<BatchStatistics>>,
        pool: usize,
    ) -> Tensor<4> {
        let last = self.convs.len() - 1;
        let mut y = x;
        for (i, conv) in self.convs.iter().enumerate() {
            // The last ReLU comes after batch norm, together with pooling.
            y = dtkc_ops::conv2d(y, conv.weight.val(), conv.bias.val(), padding, i < last);
        }
        match (&self.norm, statistics) {
            (Some(norm), Some(statistics)) => {
                let out = dtkc_ops::batch_norm_relu_pool(y, norm.gamma.val(), norm.beta.val(), epsilon, pool);
                statistics.push(BatchStatistics { mean: out.mean, variance: out.variance });
                out.y
            }
            (Some(norm), None) => {
                let (scale, shift) = norm.scale_shift(epsilon);
                dtkc_ops::scale_relu_pool(y, scale, shift, pool)
            }
            (None, _) => plain(y, pool),
        }
    }
}

/// ReLU and pooling alone.
fn plain(x: Tensor<4>, pool: usize) -> Tensor<4> {
    let [_, _, _, channels] = x.dims();
    let device = x.device();
    dtkc_ops::scale_relu_pool(x, Tensor::ones([channels], &device), Tensor::zeros([channels], &device), pool)
}

impl Norm {
    /// Batch norm as `x * scale + shift`, from the running statistics.
    fn scale_shift(&self, epsilon: f64) -> (Tensor<1>, Tensor<1>) {
        let scale = self.gamma.val() / (self.variance.val() + epsilon).sqrt();
        let shift = self.beta.val() - self.mean.val() * scale.clone();
        (scale, shift)
    }

    /// # Shapes
    /// - x, output: `[n, features]`
    pub(crate) fn forward_vector(
        &self,
        x: Tensor<2>,
        epsilon: f64,
        statistics: Option<&mut Vec<BatchStatistics>>,
    ) -> Tensor<2> {
        match statistics {
            Some(statistics) => {
                let out = batch_norm_train(x, self.gamma.val(), self.beta.val(), epsilon);
                statistics.push(BatchStatistics { mean: out.mean, variance: out.variance });
                out.output
            }
            None => {
                let (scale, shift) = self.scale_shift(epsilon);
                x * scale.unsqueeze() + shift.unsqueeze()
            }
        }
    }

    /// `running = momentum * running + (1 - momentum) * batch`, without gradients.
    pub(crate) fn update(&mut self, batch: &BatchStatistics, momentum: f64) {
        let mix = |running: &mut Param<Tensor<1>>, batch: &Tensor<1>| {
            let value = running.val() * momentum + batch.clone().detach() * (1.0 - momentum);
            set_constant(running, value);
        };
        mix(&mut self.mean, &batch.mean);
        mix(&mut self.variance, &batch.variance);
    }
}

/// Replaces the value of a parameter that never has a gradient; its id stays.
pub(crate) fn set_constant<const D: usize>(param: &mut Param<Tensor<D>>, value: Tensor<D>) {
    *param = Param::initialized(param.id, value.detach()).set_require_grad(false);
}

impl Dense {
    /// # Shapes
    /// - x: `[n, in]`
    /// - output: `[n, out]`
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        linear(x, self.weight.val(), Some(self.bias.val()))
    }
}
