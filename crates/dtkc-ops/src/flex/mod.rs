//! The fast bodies for burn's CPU backend, and their backward steps.

mod conv;
mod tensor;

use burn::backend::{
    Autodiff, Flex, autodiff::checkpoint::strategy::CheckpointStrategy, flex::FlexTensor, tensor::FloatTensor,
};

use crate::{OpsBackend, Padding, reference};
use tensor::is_f32;

impl OpsBackend for Flex {
    fn nhwc_conv2d(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, padding: Padding, relu: bool) -> FlexTensor {
        if !is_f32(&x) {
            return reference::conv2d::<Self>(x, weight, bias, padding, relu);
        }
        conv::forward(&x, &weight, &bias, padding, relu)
    }
}

impl<C: CheckpointStrategy> OpsBackend for Autodiff<Flex, C> {
    fn nhwc_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        padding: Padding,
        relu: bool,
    ) -> FloatTensor<Self> {
        if !is_f32(x.primitive()) {
            return reference::conv2d::<Self>(x, weight, bias, padding, relu);
        }
        conv::tracked::<C>(x, weight, bias, padding, relu)
    }
}
