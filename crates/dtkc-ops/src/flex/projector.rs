//! [`crate::projector_distances`] on flex.

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
use crate::{cpu::isa::Isa, projectors::Projectors};

fn project(x: &FlexTensor) -> (Projectors, FlexTensor) {
    let shape: [usize; 3] = dims(x);
    let projectors = Projectors::new(Isa::detect(), shape, &values(x));
    let distances = tensor(projectors.distances().to_vec(), [shape[0], shape[0]]);
    (projectors, distances)
}

/// The forward pass.
pub(super) fn forward(x: &FlexTensor) -> FlexTensor {
    project(x).1
}

#[derive(Debug)]
struct DistancesBackward {
    shape: [usize; 3],
}

impl Backward<Flex, 1> for DistancesBackward {
    type State = Arc<Projectors>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let upstream = grads.consume::<Flex>(&ops.node);
        let [node] = ops.parents;
        if let Some(node) = node {
            let dx = result(self.shape, |dx| ops.state.gradient(&values(&upstream), dx));
            grads.register::<Flex>(node.id, dx);
        }
    }
}

/// The forward pass, recorded for the backward pass where a gradient is wanted.
pub(super) fn tracked<C: CheckpointStrategy>(x: FloatTensor<Autodiff<Flex, C>>) -> FloatTensor<Autodiff<Flex, C>> {
    let shape = dims(x.primitive());
    let (projectors, distances) = project(x.primitive());
    match (DistancesBackward { shape }).prepare::<C>([x.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(Arc::new(projectors), distances),
        OpsKind::UnTracked(prepared) => prepared.finish(distances),
    }
}
