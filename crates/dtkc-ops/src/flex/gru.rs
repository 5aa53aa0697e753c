//! [`crate::gru`] on flex.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Flex,
    autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    flex::FlexTensor,
    tensor::FloatTensor,
};

use super::tensor::{dims, result, tensor, values};
use crate::{
    GruStates, Lengths,
    cpu::isa::Isa,
    gru::{Gru, Kept, Weights},
};

/// Values, input weights, state weights, input biases, state biases.
pub(super) type Operands<T> = [T; 5];

/// The layer that these shapes ask for.
fn layer(operands: &Operands<FlexTensor>, lengths: Lengths, states: GruStates) -> Gru {
    let [x, input, recurrent, input_bias, recurrent_bias] = operands;
    let [steps, inputs]: [usize; 2] = dims(x);
    let [_, _, units]: [usize; 3] = dims(recurrent);
    assert_eq!(steps, lengths.steps(), "gru: {steps} steps, but the lengths add up to {}", lengths.steps());
    assert_eq!(dims(input), [2, 3 * units, inputs], "gru: input weights");
    assert_eq!(dims(recurrent), [2, 3 * units, units], "gru: recurrent weights");
    assert_eq!([dims(input_bias), dims(recurrent_bias)], [[2, 3 * units]; 2], "gru: biases");
    Gru::new(Isa::detect(), inputs, units, lengths, states)
}

/// Calls `work` with the weights as slices.
fn with_weights<R>(operands: &Operands<FlexTensor>, work: impl FnOnce(&[f32], Weights<'_>) -> R) -> R {
    let [x, input, recurrent, input_bias, recurrent_bias] = operands.each_ref().map(values);
    let weights =
        Weights { input: &input, recurrent: &recurrent, input_bias: &input_bias, recurrent_bias: &recurrent_bias };
    work(&x, weights)
}

fn run(gru: &Gru, operands: &Operands<FlexTensor>, keep: bool) -> (FlexTensor, Option<Kept>) {
    let mut kept = None;
    let y = result(gru.shape(), |y| kept = with_weights(operands, |x, weights| gru.forward(x, weights, y, keep)));
    (y, kept)
}

/// The forward pass.
pub(super) fn forward(operands: &Operands<FlexTensor>, lengths: Lengths, states: GruStates) -> FlexTensor {
    run(&layer(operands, lengths, states), operands, false).0
}

/// The step that the autodiff graph keeps.
#[derive(Debug)]
struct GruBackward {
    lengths: Lengths,
    states: GruStates,
}

/// What the backward pass needs of the forward pass.
#[derive(Debug, Clone)]
struct Saved {
    operands: Operands<FlexTensor>,
    kept: Arc<Kept>,
}

impl Backward<Flex, 5> for GruBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 5>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        let Saved { operands, kept } = ops.state;
        let gru = layer(&operands, self.lengths, self.states);
        let mut nodes = ops.parents;
        let gradients = with_weights(&operands, |x, weights| {
            let mut found = None;
            if let Some(node) = nodes[0].take() {
                let dx = result(dims::<2>(&operands[0]), |dx| {
                    found = Some(gru.backward((x, &kept), weights, &values(&dy), Some(dx)));
                });
                grads.register::<Flex>(node.id, dx);
            }
            found.unwrap_or_else(|| gru.backward((x, &kept), weights, &values(&dy), None))
        });
        let [_, input, recurrent, input_bias, recurrent_bias] = nodes;
        let shapes = [dims::<3>(&operands[1]), dims(&operands[2])];
        for (node, (values, shape)) in
            [input, recurrent].into_iter().zip([gradients.input, gradients.recurrent].into_iter().zip(shapes))
        {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, tensor(values, shape));
            }
        }
        for (node, values) in
            [input_bias, recurrent_bias].into_iter().zip([gradients.input_bias, gradients.recurrent_bias])
        {
            if let Some(node) = node {
                grads.register::<Flex>(node.id, tensor(values, dims::<2>(&operands[3])));
            }
        }
    }
}

/// The forward pass, recorded for the backward pass where a gradient is wanted.
pub(super) fn tracked<C: CheckpointStrategy>(
    operands: Operands<FloatTensor<Autodiff<Flex, C>>>,
    lengths: Lengths,
    states: GruStates,
) -> FloatTensor<Autodiff<Flex, C>> {
    let nodes = operands.each_ref().map(|operand| operand.node());
    let operands = operands.map(|operand| operand.into_primitive());
    let gru = layer(&operands, lengths.clone(), states);
    match (GruBackward { lengths, states }).prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => {
            let (y, kept) = run(&gru, &operands, true);
            match kept {
                Some(kept) => prepared.finish(Saved { operands, kept: Arc::new(kept) }, y),
                None => unreachable!("the forward pass was asked to keep"),
            }
        }
        OpsKind::UnTracked(prepared) => prepared.finish(run(&gru, &operands, false).0),
    }
}
