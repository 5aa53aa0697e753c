//! The operations composed from burn's own: the body for every device without a faster one.

mod gru;

pub(crate) use gru::gru;

use burn::backend::{Backend, DType, Scalar, TensorData, TensorMetadata, ops::ConvOptions, tensor::FloatTensor};
use burn::tensor::{Shape, Slice};

use crate::{
    Padding,
    cpu::projector::{RIDGE, RIDGE_FLOOR},
};

const TO_NCHW: [usize; 4] = [0, 3, 1, 2];
const TO_NHWC: [usize; 4] = [0, 2, 3, 1];

/// See [`crate::conv2d`].
pub(crate) fn conv2d<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    padding: Padding,
    relu: bool,
) -> FloatTensor<B> {
    let kernel = weight.shape();
    let mut options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
    options.padding = [padding.amounts(kernel[0]), padding.amounts(kernel[1])];
    let x = B::float_permute(x, &TO_NCHW);
    let weight = B::float_permute(weight, &[3, 2, 0, 1]);
    let y = B::conv2d(x, weight, Some(bias), options);
    let y = if relu { B::relu(y) } else { y };
    B::float_permute(y, &TO_NHWC)
}

/// See [`crate::batch_norm_relu_pool`].
pub(crate) fn batch_norm_relu_pool<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
    epsilon: f64,
    pool: usize,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let normal = B::batch_norm_train(B::float_permute(x, &TO_NCHW), gamma, beta, epsilon);
    let y = B::float_permute(relu_pool::<B>(normal.output, pool), &TO_NHWC);
    (y, B::float_detach(normal.mean), B::float_detach(normal.variance))
}

/// See [`crate::scale_relu_pool`].
pub(crate) fn scale_relu_pool<B: Backend>(
    x: FloatTensor<B>,
    scale: FloatTensor<B>,
    shift: FloatTensor<B>,
    pool: usize,
) -> FloatTensor<B> {
    let channels = Shape::new([1, 1, 1, x.shape()[3]]);
    let scaled = B::float_mul(x, B::float_reshape(scale, channels.clone()));
    let shifted = B::float_add(scaled, B::float_reshape(shift, channels));
    B::float_permute(relu_pool::<B>(B::float_permute(shifted, &TO_NCHW), pool), &TO_NHWC)
}

/// ReLU and max-pooling of a channels-first tensor.
fn relu_pool<B: Backend>(x: FloatTensor<B>, pool: usize) -> FloatTensor<B> {
    let x = B::relu(x);
    if pool == 1 { x } else { B::max_pool2d(x, [pool, pool], [pool, pool], [0, 0], [1, 1], false) }
}

/// See [`crate::projector_distances`].
///
/// Only `L^-1 X` carries a gradient, with `L` the Cholesky factor of the Gram matrix: with `Y = stop(L^-1) X` and
/// `V0 = stop(Y)`, `V = Y - (Y - V0) V0^T V0` equals `V0` in value and has `dV = L^-1 dX (I - P)`, which makes
/// `d(V^T V)` the exact differential of the projector. No decomposition is differentiated.
pub(crate) fn projector_distances<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let x = if shape[1] > shape[2] { B::float_swap_dims(x, 1, 2) } else { x };
    let inverse = inverse_factor::<B>(B::float_detach(x.clone()));
    let y = B::float_matmul(inverse, x);
    let v0 = B::float_detach(y.clone());
    let projector = B::float_matmul(B::float_swap_dims(v0.clone(), 1, 2), v0.clone());
    let v = B::float_sub(y.clone(), B::float_matmul(B::float_sub(y, v0), projector));
    distances::<B>(overlaps::<B>(v))
}

/// `L^-1` of the ridged Gram matrices `X X^T + e I = L L^T`, by elimination on `[X X^T + e I | I]`.
fn inverse_factor<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let (n, r) = (shape[0], shape[1]);
    let device = x.device();
    let identity = B::float_reshape(identity::<B>(r, &x), Shape::new([1, r, r]));
    let gram = B::float_matmul(x.clone(), B::float_swap_dims(x, 1, 2));
    let diagonal = B::float_sum_dim(B::float_sum_dim(B::float_mul(gram.clone(), identity.clone()), 2), 1);
    let ridge =
        B::float_add_scalar(B::float_mul_scalar(diagonal, Scalar::Float(RIDGE / r as f64)), Scalar::Float(RIDGE_FLOOR));
    let ridged = B::float_add(gram, B::float_mul(identity.clone(), ridge.clone()));
    let zeros = B::float_zeros(Shape::new([n, r, r]), &device, ridged.dtype().into());
    let mut rest = B::float_cat(vec![ridged, B::float_add(zeros, identity)], 2);
    let mut rows = Vec::with_capacity(r);
    for j in 0..r {
        let top = part::<B>(&rest, 0..1, 0..2 * r);
        // In exact arithmetic no pivot is below the ridge; rounding may put it there.
        let excess = B::float_sub(part::<B>(&top, 0..1, j..j + 1), ridge.clone());
        let pivot = B::float_add(B::float_clamp_min(excess, Scalar::Float(0.0)), ridge.clone());
        let root = B::float_sqrt(pivot);
        let row = B::float_div(top, root.clone());
        rows.push(part::<B>(&row, 0..1, r..2 * r));
        if j + 1 < r {
            let below = part::<B>(&rest, 1..r - j, 0..2 * r);
            let factor = B::float_div(part::<B>(&below, 0..r - j - 1, j..j + 1), root);
            rest = B::float_sub(below, B::float_mul(factor, row));
        }
    }
    B::float_cat(rows, 1)
}

/// Rows and columns of every matrix of a batch.
fn part<B: Backend>(
    x: &FloatTensor<B>,
    rows: core::ops::Range<usize>,
    columns: core::ops::Range<usize>,
) -> FloatTensor<B> {
    B::float_slice(x.clone(), &[Slice::full(), Slice::from(rows), Slice::from(columns)])
}

/// `tr(P_a P_b)` for all pairs, by the cheaper of two routes.
fn overlaps<B: Backend>(v: FloatTensor<B>) -> FloatTensor<B> {
    let shape = v.shape();
    let (n, r, d) = (shape[0], shape[1], shape[2]);
    if n * r * r <= d * (n + r) {
        let stacked = B::float_reshape(v, Shape::new([n * r, d]));
        let products = B::float_matmul(stacked.clone(), B::float_swap_dims(stacked, 0, 1));
        let squares = B::float_reshape(B::float_mul(products.clone(), products), Shape::new([n, r, n, r]));
        B::float_reshape(B::float_sum_dim(B::float_sum_dim(squares, 3), 1), Shape::new([n, n]))
    } else {
        let projectors = B::float_matmul(B::float_swap_dims(v.clone(), 1, 2), v);
        let flat = B::float_reshape(projectors, Shape::new([n, d * d]));
        B::float_matmul(flat.clone(), B::float_swap_dims(flat, 0, 1))
    }
}

/// `t_aa + t_bb - 2 t_ab`, at least 0.
fn distances<B: Backend>(overlaps: FloatTensor<B>) -> FloatTensor<B> {
    let n = overlaps.shape()[0];
    let own = B::float_sum_dim(B::float_mul(overlaps.clone(), identity::<B>(n, &overlaps)), 1);
    let sum = B::float_add(own.clone(), B::float_swap_dims(own, 0, 1));
    let distances = B::float_sub(sum, B::float_mul_scalar(overlaps, Scalar::Float(2.0)));
    B::float_clamp_min(distances, Scalar::Float(0.0))
}

/// The identity matrix on the device and in the type of `like`.
fn identity<B: Backend>(n: usize, like: &FloatTensor<B>) -> FloatTensor<B> {
    let mut values = vec![0.0f32; n * n];
    values.iter_mut().step_by(n + 1).for_each(|value| *value = 1.0);
    let identity = B::float_from_data(TensorData::new(values, [n, n]), &like.device());
    match like.dtype() {
        DType::F32 => identity,
        other => B::float_cast(identity, other.into()),
    }
}
