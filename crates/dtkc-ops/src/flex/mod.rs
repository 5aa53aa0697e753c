//! The fast bodies for burn's CPU backend, and their backward steps.

mod conv;
mod gru;
mod pool;
mod projector;
mod tensor;

use burn::backend::{
    Autodiff, Flex, autodiff::checkpoint::strategy::CheckpointStrategy, flex::FlexTensor, tensor::FloatTensor,
};

use crate::{GruStates, Lengths, OpsBackend, Padding, reference};
use tensor::is_f32;

impl OpsBackend for Flex {
    fn nhwc_conv2d(x: FlexTensor, weight: FlexTensor, bias: FlexTensor, padding: Padding, relu: bool) -> FlexTensor {
        if !is_f32(&x) {
            return reference::conv2d::<Self>(x, weight, bias, padding, relu);
        }
        conv::forward(&x, &weight, &bias, padding, relu)
    }

    fn nhwc_batch_norm_relu_pool(
        x: FlexTensor,
        gamma: FlexTensor,
        beta: FlexTensor,
        epsilon: f64,
        pool: usize,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        if !is_f32(&x) {
            return reference::batch_norm_relu_pool::<Self>(x, gamma, beta, epsilon, pool);
        }
        pool::batch_norm(&x, &gamma, &beta, epsilon, pool)
    }

    fn nhwc_scale_relu_pool(x: FlexTensor, scale: FlexTensor, shift: FlexTensor, pool: usize) -> FlexTensor {
        if !is_f32(&x) {
            return reference::scale_relu_pool::<Self>(x, scale, shift, pool);
        }
        pool::scale(&x, &scale, &shift, pool)
    }

    fn projector_distances(x: FlexTensor) -> FlexTensor {
        if !is_f32(&x) {
            return reference::projector_distances::<Self>(x);
        }
        projector::forward(&x)
    }

    fn packed_gru(
        x: FlexTensor,
        input: FlexTensor,
        recurrent: FlexTensor,
        input_bias: FlexTensor,
        recurrent_bias: FlexTensor,
        run: (Lengths, GruStates),
    ) -> FlexTensor {
        let (lengths, states) = run;
        let is_fast = is_f32(&x);
        let operands = [x, input, recurrent, input_bias, recurrent_bias];
        match is_fast {
            true => gru::forward(&operands, lengths, states),
            false => reference::gru::<Self>(operands, &lengths, states),
        }
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

    fn nhwc_batch_norm_relu_pool(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
        pool: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !is_f32(x.primitive()) {
            return reference::batch_norm_relu_pool::<Self>(x, gamma, beta, epsilon, pool);
        }
        pool::batch_norm_tracked::<C>(x, gamma, beta, epsilon, pool)
    }

    fn nhwc_scale_relu_pool(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        pool: usize,
    ) -> FloatTensor<Self> {
        if !is_f32(x.primitive()) {
            return reference::scale_relu_pool::<Self>(x, scale, shift, pool);
        }
        pool::scale_tracked::<C>(x, scale, shift, pool)
    }

    fn projector_distances(x: FloatTensor<Self>) -> FloatTensor<Self> {
        if !is_f32(x.primitive()) {
            return reference::projector_distances::<Self>(x);
        }
        projector::tracked::<C>(x)
    }

    fn packed_gru(
        x: FloatTensor<Self>,
        input: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        input_bias: FloatTensor<Self>,
        recurrent_bias: FloatTensor<Self>,
        run: (Lengths, GruStates),
    ) -> FloatTensor<Self> {
        let (lengths, states) = run;
        let is_fast = is_f32(x.primitive());
        let operands = [x, input, recurrent, input_bias, recurrent_bias];
        match is_fast {
            true => gru::tracked::<C>(operands, lengths, states),
            false => reference::gru::<Self>(operands, &lengths, states),
        }
    }
}
