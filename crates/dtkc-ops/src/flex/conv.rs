//! [`crate::conv2d`] on flex.

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
    Padding,
    convolution::{Convolution, Upstream},
    cpu::{geometry::Geometry, isa::Isa},
};

/// The convolution that these shapes and this border ask for.
fn geometry(x: [usize; 4], weight: [usize; 4], padding: Padding) -> Geometry {
    let [_, height, width, channels_in] = x;
    let [rows, columns, weight_in, channels_out] = weight;
    assert_eq!(channels_in, weight_in, "conv2d: {channels_in} input channels, but the weights have {weight_in}");
    let (Some(out_height), Some(out_width)) = (padding.output(height, rows), padding.output(width, columns)) else {
        panic!("conv2d: a {rows}x{columns} kernel does not fit into a {height}x{width} image");
    };
    Geometry {
        height,
        width,
        channels_in,
        channels_out,
        kernel: (rows, columns),
        before: (padding.amounts(rows).0, padding.amounts(columns).0),
        out_height,
        out_width,
    }
}

/// The forward pass.
pub(super) fn forward(
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: &FlexTensor,
    padding: Padding,
    relu: bool,
) -> FlexTensor {
    let geometry = geometry(dims(x), dims(weight), padding);
    let shape = [dims::<4>(x)[0], geometry.out_height, geometry.out_width, geometry.channels_out];
    let convolution = Convolution::new(Isa::detect(), geometry);
    result(shape, |y| convolution.forward(&values(x), &values(weight), &values(bias), relu, y))
}

/// The step that the autodiff graph keeps.
#[derive(Debug)]
struct ConvBackward {
    padding: Padding,
}

/// What the backward pass needs of the forward pass; `y` only with ReLU.
#[derive(Debug, Clone)]
struct Saved {
    x: FlexTensor,
    weight: FlexTensor,
    y: Option<FlexTensor>,
}

impl Backward<Flex, 3> for ConvBackward {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, weight_node, bias_node] = ops.parents;
        let dy = grads.consume::<Flex>(&ops.node);
        let Saved { x, weight, y } = ops.state;
        let geometry = geometry(dims(&x), dims(&weight), self.padding);
        let convolution = Convolution::new(Isa::detect(), geometry);
        let y = y.as_ref().map(values);
        let upstream = Upstream { x: &values(&x), weight: &values(&weight), y: y.as_deref(), dy: &values(&dy) };
        let mut gradients = None;
        if let Some(node) = x_node {
            let dx = result(dims::<4>(&x), |dx| gradients = Some(convolution.backward(&upstream, Some(dx))));
            grads.register::<Flex>(node.id, dx);
        }
        let gradients = gradients.unwrap_or_else(|| convolution.backward(&upstream, None));
        if let Some(node) = weight_node {
            grads.register::<Flex>(node.id, tensor(gradients.weight, dims::<4>(&weight)));
        }
        if let Some(node) = bias_node {
            grads.register::<Flex>(node.id, tensor(gradients.bias, [geometry.channels_out]));
        }
    }
}

/// The forward pass, recorded for the backward pass where a gradient is wanted.
pub(super) fn tracked<C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<Flex, C>>,
    weight: FloatTensor<Autodiff<Flex, C>>,
    bias: FloatTensor<Autodiff<Flex, C>>,
    padding: Padding,
    relu: bool,
) -> FloatTensor<Autodiff<Flex, C>> {
    let y = forward(x.primitive(), weight.primitive(), bias.primitive(), padding, relu);
    let prepared = ConvBackward { padding }.prepare::<C>([x.node(), weight.node(), bias.node()]).compute_bound();
    match prepared.stateful() {
        OpsKind::Tracked(prepared) => {
            let saved = Saved { x: x.into_primitive(), weight: weight.into_primitive(), y: relu.then(|| y.clone()) };
            prepared.finish(saved, y)
        }
        OpsKind::UnTracked(prepared) => prepared.finish(y),
    }
}
