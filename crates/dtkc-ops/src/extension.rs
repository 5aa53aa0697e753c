//! The burn backend extension: which backend runs which body.

use burn::backend::{
    Autodiff, Backend, Capture, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    tensor::FloatTensor,
};

use crate::{GruStates, Lengths, Padding, reference};

/// The operations of this crate as a burn backend extension; call the free functions of the crate instead.
///
/// The default bodies are burn's own operations, differentiated by burn where the backend is `Autodiff`.
#[backend_extension(
    Autodiff,
    Flex,
    Capture,
    Cube: cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))
)]
pub trait OpsBackend: Backend {
    /// See [`crate::conv2d`].
    fn nhwc_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        padding: Padding,
        relu: bool,
    ) -> FloatTensor<Self> {
        reference::conv2d::<Self>(x, weight, bias, padding, relu)
    }

    /// See [`crate::batch_norm_relu_pool`].
    fn nhwc_batch_norm_relu_pool(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
        pool: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        reference::batch_norm_relu_pool::<Self>(x, gamma, beta, epsilon, pool)
    }

    /// See [`crate::scale_relu_pool`].
    fn nhwc_scale_relu_pool(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        pool: usize,
    ) -> FloatTensor<Self> {
        reference::scale_relu_pool::<Self>(x, scale, shift, pool)
    }

    /// See [`crate::projector_distances`].
    fn projector_distances(x: FloatTensor<Self>) -> FloatTensor<Self> {
        reference::projector_distances::<Self>(x)
    }

    /// See [`crate::gru`].
    fn packed_gru(
        x: FloatTensor<Self>,
        input: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        input_bias: FloatTensor<Self>,
        recurrent_bias: FloatTensor<Self>,
        run: (Lengths, GruStates),
    ) -> FloatTensor<Self> {
        reference::gru::<Self>([x, input, recurrent, input_bias, recurrent_bias], &run.0, run.1)
    }
}

// An export sees ordinary operations.
impl OpsBackend for Capture {}
impl<C: CheckpointStrategy> OpsBackend for Autodiff<Capture, C> {}

#[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]
impl OpsBackend for burn::backend::Cube {}
#[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]
impl<C: CheckpointStrategy> OpsBackend for Autodiff<burn::backend::Cube, C> {}
