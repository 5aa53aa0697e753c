//! Fast CPU operations with their own backward passes, as burn backend extensions.
//!
//! Tensors are channels-last (`[n, h, w, c]`) and f32. On the flex device every operation has a
//! hand-written forward and backward pass; on every other device the same function runs burn's own
//! operations, so a network is written once and has no `if cpu`. What k-means and nearest neighbours need ([`Panel`],
//! [`Centres`]) works on plain slices and knows no device.

mod buffer;
mod convolution;
mod cpu;
mod extension;
mod flex;
mod gru;
mod lengths;
mod padding;
mod parallel;
mod pooling;
mod projectors;
mod reference;
mod rows;
mod scratch;
mod threads;

pub use extension::OpsBackend;
pub use gru::GruStates;
pub use lengths::Lengths;
pub use padding::Padding;
pub use parallel::for_each;
pub use projectors::ProjectorMemory;
pub use rows::{Centres, Panel, add_rows, block_rows};
pub use threads::{set_threads, threads};

use burn::{backend::Dispatch, tensor::Tensor};

/// What [`batch_norm_relu_pool`] returns.
#[derive(Debug, Clone)]
pub struct BatchNormOutput {
    /// The normalised, rectified and pooled activations `[n, h / pool, w / pool, c]`.
    pub y: Tensor<4>,
    /// Mean of each channel over the batch `[c]`, without gradient.
    pub mean: Tensor<1>,
    /// Biased variance of each channel over the batch `[c]`, without gradient.
    pub variance: Tensor<1>,
}

/// Convolution of stride 1 with bias and, on request, ReLU.
///
/// # Shapes
/// `x`: `[n, h, w, cin]`, `weight`: `[kh, kw, cin, cout]`, `bias`: `[cout]`; the result is
/// `[n, h - kh + 1, w - kw + 1, cout]` with [`Padding::Valid`] and `[n, h, w, cout]` with [`Padding::Same`].
pub fn conv2d(x: Tensor<4>, weight: Tensor<4>, bias: Tensor<1>, padding: Padding, relu: bool) -> Tensor<4> {
    let y = <Dispatch as OpsBackend>::nhwc_conv2d(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        padding,
        relu,
    );
    Tensor::from_dispatch(y)
}

/// Batch normalisation with the statistics of this batch, then ReLU, then max-pooling of `pool` x `pool`.
///
/// # Shapes
/// `x`: `[n, h, w, c]`, `gamma` and `beta`: `[c]`. Rows and columns that do not fill a window are dropped
/// by the pooling but count for the statistics; `pool` = 1 does not pool.
pub fn batch_norm_relu_pool(
    x: Tensor<4>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
    pool: usize,
) -> BatchNormOutput {
    let (y, mean, variance) = <Dispatch as OpsBackend>::nhwc_batch_norm_relu_pool(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        epsilon,
        pool,
    );
    BatchNormOutput {
        y: Tensor::from_dispatch(y),
        mean: Tensor::from_dispatch(mean),
        variance: Tensor::from_dispatch(variance),
    }
}

/// `max-pool(relu(x * scale + shift))`: batch normalisation in evaluation mode, or a block without it.
///
/// # Shapes
/// `x`: `[n, h, w, c]`, `scale` and `shift`: `[c]`; the result is `[n, h / pool, w / pool, c]`.
pub fn scale_relu_pool(x: Tensor<4>, scale: Tensor<1>, shift: Tensor<1>, pool: usize) -> Tensor<4> {
    let y = <Dispatch as OpsBackend>::nhwc_scale_relu_pool(
        x.into_dispatch(),
        scale.into_dispatch(),
        shift.into_dispatch(),
        pool,
    );
    Tensor::from_dispatch(y)
}

/// Squared distances `||P_a - P_b||_F^2` between the projectors on the row spaces of `x[a]` and `x[b]`.
///
/// `P = X^T (X X^T + e I)^-1 X` with the small ridge `e = 1e-5 mean(diag(X X^T)) + 1e-6`, held constant in
/// the gradient. Finite, zero on the diagonal and never negative, also for blank, constant and equal inputs.
///
/// # Shapes
/// `x`: `[n, r, d]`, one unfolding per image, transposed here when `r > d`; the result is `[n, n]`.
pub fn projector_distances(x: Tensor<3>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as OpsBackend>::projector_distances(x.into_dispatch()))
}

/// What [`projector_distances`] of a batch `[n, r, d]` takes on the CPU.
pub fn projector_memory(shape: [usize; 3]) -> ProjectorMemory {
    projectors::Sizes::new(cpu::isa::Isa::detect(), shape).memory()
}

/// The weights of a layer of gated recurrent units, both directions one after the other: forward in time, then backward.
/// The gates of a direction are in ONNX's order: update `z`, reset `r`, candidate `n`.
#[derive(Debug, Clone)]
pub struct GruOperands {
    /// `[2, 3 units, inputs]`.
    pub input: Tensor<3>,
    /// `[2, 3 units, units]`.
    pub recurrent: Tensor<3>,
    /// `[2, 3 units]`.
    pub input_bias: Tensor<2>,
    /// `[2, 3 units]`.
    pub recurrent_bias: Tensor<2>,
}

/// A bidirectional layer of gated recurrent units over sequences of any lengths, as PyTorch and cuDNN have it:
///
/// `z = s(W_z x + b_z + R_z h + c_z)`, `r` alike, `n = tanh(W_n x + b_n + r (R_n h + c_n))`, `h' = (1 - z) n + z h`, from
/// `h = 0` on. The backward direction runs from a sequence's own last step to its first.
///
/// # Shapes
/// `x`: `[steps, inputs]`, sequence after sequence; the result has both directions side by side, the forward one first:
/// `[steps, 2 units]` with [`GruStates::All`], `[sequences, 2 units]` with [`GruStates::Last`].
///
/// # Panics
/// Panics when the lengths do not add up to the steps, or one of them is 0.
pub fn gru(x: Tensor<2>, weights: GruOperands, lengths: &Lengths, states: GruStates) -> Tensor<2> {
    assert!(lengths.iter().all(|length| length > 0), "gru: a sequence without steps");
    let y = <Dispatch as OpsBackend>::packed_gru(
        x.into_dispatch(),
        weights.input.into_dispatch(),
        weights.recurrent.into_dispatch(),
        weights.input_bias.into_dispatch(),
        weights.recurrent_bias.into_dispatch(),
        (lengths.clone(), states),
    );
    Tensor::from_dispatch(y)
}
