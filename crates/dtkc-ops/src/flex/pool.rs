//! [`crate::batch_norm_relu_pool`] and [`crate::scale_relu_pool`] on flex.

use burn::backend::{
    Autodiff, AutodiffBackend, Flex,
    autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    flex::FlexTensor,
    tensor::FloatTensor,
};

use super::tensor::{dims, result, tensor, values};
use crate::{
    cpu::{isa::Isa, pool::Pooling},
    pooling::{self, Line, Statistics, inverse_deviation},
};

/// Result, mean and variance.
type Normalised<T> = (T, T, T);

fn sizes(x: &FlexTensor, pool: usize) -> Pooling {
    let [_, height, width, channels] = dims(x);
    assert!(pool >= 1 && pool <= height.min(width), "a pooling window of {pool} does not fit into {height}x{width}");
    Pooling { height, width, channels, pool }
}

fn pooled(x: &FlexTensor, sizes: Pooling, line: &Line) -> FlexTensor {
    let shape = [dims::<4>(x)[0], sizes.height / sizes.pool, sizes.width / sizes.pool, sizes.channels];
    result(shape, |y| pooling::forward(Isa::detect(), sizes, line, &values(x), y))
}

/// Batch normalisation, ReLU and pooling, and what their backward pass needs.
fn normalise(
    x: &FlexTensor,
    gamma: &FlexTensor,
    beta: &FlexTensor,
    epsilon: f64,
    pool: usize,
) -> (FlexTensor, Statistics, Line) {
    let sizes = sizes(x, pool);
    let statistics = pooling::statistics(Isa::detect(), sizes, &values(x));
    let line = Line::normalising(&statistics, &values(gamma), &values(beta), epsilon);
    (pooled(x, sizes, &line), statistics, line)
}

/// Batch normalisation, ReLU and pooling.
pub(super) fn batch_norm(
    x: &FlexTensor,
    gamma: &FlexTensor,
    beta: &FlexTensor,
    epsilon: f64,
    pool: usize,
) -> Normalised<FlexTensor> {
    let (y, statistics, _) = normalise(x, gamma, beta, epsilon, pool);
    let channels = statistics.mean.len();
    (y, tensor(statistics.mean, [channels]), tensor(statistics.variance, [channels]))
}

/// Scaling, ReLU and pooling.
pub(super) fn scale(x: &FlexTensor, scale: &FlexTensor, shift: &FlexTensor, pool: usize) -> FlexTensor {
    let line = Line { scale: values(scale).into_owned(), shift: values(shift).into_owned() };
    pooled(x, sizes(x, pool), &line)
}

#[derive(Debug)]
struct BatchNormBackward {
    epsilon: f64,
    pool: usize,
}

#[derive(Debug, Clone)]
struct BatchNormSaved {
    x: FlexTensor,
    statistics: Statistics,
    line: Line,
}

impl Backward<Flex, 3> for BatchNormBackward {
    type State = BatchNormSaved;

    fn backward(self, ops: Ops<BatchNormSaved, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let BatchNormSaved { x, statistics, line } = ops.state;
        let (sizes, isa) = (sizes(&x, self.pool), Isa::detect());
        let (x_values, dy) = (values(&x), values(&dy));
        let totals = pooling::totals(isa, sizes, &line, &statistics.mean, &x_values, &dy);
        let inverse: Vec<f64> = inverse_deviation(&statistics, self.epsilon).collect();
        let dgamma: Vec<f64> = totals.weighted.iter().zip(&inverse).map(|(sum, i)| sum * i).collect();
        let [x_node, gamma_node, beta_node] = ops.parents;
        if let Some(node) = x_node {
            // dx = scale (g - mean(g) - x^ mean(g x^)), written as a line in x.
            let count = (x_values.len() / sizes.channels) as f64;
            let mut slope = Line { scale: Vec::new(), shift: Vec::new() };
            for c in 0..sizes.channels {
                let scale = f64::from(line.scale[c]);
                let factor = -scale * dgamma[c] * inverse[c] / count;
                slope.scale.push(factor as f32);
                slope.shift.push((-scale * totals.plain[c] / count - factor * f64::from(statistics.mean[c])) as f32);
            }
            let dx = result(dims::<4>(&x), |dx| {
                pooling::input_gradient(isa, sizes, (&line, &slope), (&x_values, &dy), dx);
            });
            grads.register::<Flex>(node.id, dx);
        }
        register(grads, gamma_node.map(|node| node.id), &dgamma);
        register(grads, beta_node.map(|node| node.id), &totals.plain);
    }
}

#[derive(Debug)]
struct ScaleBackward {
    pool: usize,
}

impl Backward<Flex, 3> for ScaleBackward {
    type State = (FlexTensor, Line);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let (x, line) = ops.state;
        let (sizes, isa) = (sizes(&x, self.pool), Isa::detect());
        let (x_values, dy) = (values(&x), values(&dy));
        let zeros = vec![0.0; sizes.channels];
        let [x_node, scale_node, shift_node] = ops.parents;
        if let Some(node) = x_node {
            let flat = Line { scale: zeros.clone(), shift: zeros.clone() };
            let dx = result(dims::<4>(&x), |dx| {
                pooling::input_gradient(isa, sizes, (&line, &flat), (&x_values, &dy), dx);
            });
            grads.register::<Flex>(node.id, dx);
        }
        if scale_node.is_some() || shift_node.is_some() {
            let totals = pooling::totals(isa, sizes, &line, &zeros, &x_values, &dy);
            register(grads, scale_node.map(|node| node.id), &totals.weighted);
            register(grads, shift_node.map(|node| node.id), &totals.plain);
        }
    }
}

/// Hands a per-channel gradient to its parameter.
fn register(grads: &mut Gradients, node: Option<NodeId>, values: &[f64]) {
    if let Some(node) = node {
        let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let channels = values.len();
        grads.register::<Flex>(node, tensor(values, [channels]));
    }
}

/// Batch normalisation, ReLU and pooling, recorded for the backward pass where a gradient is wanted.
pub(super) fn batch_norm_tracked<C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<Flex, C>>,
    gamma: FloatTensor<Autodiff<Flex, C>>,
    beta: FloatTensor<Autodiff<Flex, C>>,
    epsilon: f64,
    pool: usize,
) -> Normalised<FloatTensor<Autodiff<Flex, C>>> {
    let (y, statistics, line) = normalise(x.primitive(), gamma.primitive(), beta.primitive(), epsilon, pool);
    let channels = statistics.mean.len();
    let mean = Autodiff::<Flex, C>::from_inner(tensor(statistics.mean.clone(), [channels]));
    let variance = Autodiff::<Flex, C>::from_inner(tensor(statistics.variance.clone(), [channels]));
    let step = BatchNormBackward { epsilon, pool };
    let y = match step.prepare::<C>([x.node(), gamma.node(), beta.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(BatchNormSaved { x: x.into_primitive(), statistics, line }, y),
        OpsKind::UnTracked(prepared) => prepared.finish(y),
    };
    (y, mean, variance)
}

/// Scaling, ReLU and pooling, recorded for the backward pass where a gradient is wanted.
pub(super) fn scale_tracked<C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<Flex, C>>,
    scale: FloatTensor<Autodiff<Flex, C>>,
    shift: FloatTensor<Autodiff<Flex, C>>,
    pool: usize,
) -> FloatTensor<Autodiff<Flex, C>> {
    let line = Line { scale: values(scale.primitive()).into_owned(), shift: values(shift.primitive()).into_owned() };
    let y = pooled(x.primitive(), sizes(x.primitive(), pool), &line);
    let step = ScaleBackward { pool };
    match step.prepare::<C>([x.node(), scale.node(), shift.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish((x.into_primitive(), line), y),
        OpsKind::UnTracked(prepared) => prepared.finish(y),
    }
}
