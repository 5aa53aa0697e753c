//! Weights to the transform domain, and their gradient back.

use super::{
    Plan, TILE,
    transform::{POINTS, weight_matrix},
};

/// `out[row] += factor * values` over whole rows.
fn add_scaled(out: &mut [f32], factor: f32, values: &[f32]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += factor * value;
    }
}

/// `G w G^T` for every pair of channels, as `[point][cin][cout]`.
fn transform(plan: &Plan, weight: &[f32]) -> Vec<f32> {
    let k = plan.geometry.kernel.0;
    let pairs = plan.geometry.channels_in * plan.geometry.channels_out;
    let matrix = weight_matrix(k);
    let mut rows = vec![0.0; POINTS * k * pairs];
    for (i, out) in rows.chunks_exact_mut(k * pairs).enumerate() {
        for (factor, values) in matrix[i].iter().zip(weight.chunks_exact(k * pairs)) {
            add_scaled(out, *factor as f32, values);
        }
    }
    let mut all = vec![0.0; TILE * pairs];
    for (point, out) in all.chunks_exact_mut(pairs).enumerate() {
        let row = &rows[point / POINTS * k * pairs..][..k * pairs];
        for (factor, values) in matrix[point % POINTS].iter().zip(row.chunks_exact(pairs)) {
            add_scaled(out, *factor as f32, values);
        }
    }
    all
}

/// Transformed weights as `[point][block of cout][cin][lane]`, the operand of the forward products.
pub(crate) fn pack(plan: &Plan, weight: &[f32]) -> Vec<f32> {
    let (cin, cout, lanes) = (plan.geometry.channels_in, plan.geometry.channels_out, plan.isa.lanes());
    let values = transform(plan, weight);
    let mut packed = vec![0.0; TILE * cin * plan.channels_out];
    let points = packed.chunks_exact_mut(cin * plan.channels_out).zip(values.chunks_exact(cin * cout));
    for (packed, values) in points {
        for (i, row) in values.chunks_exact(cout).enumerate() {
            for (block, part) in row.chunks(lanes).enumerate() {
                packed[(block * cin + i) * lanes..][..part.len()].copy_from_slice(part);
            }
        }
    }
    packed
}

/// Transformed weights as `[point][block of cin][cout][lane]`, the operand of the gradient to the input.
pub(crate) fn pack_transposed(plan: &Plan, weight: &[f32]) -> Vec<f32> {
    let (cin, cout, lanes) = (plan.geometry.channels_in, plan.geometry.channels_out, plan.isa.lanes());
    let values = transform(plan, weight);
    let mut packed = vec![0.0; TILE * cout * plan.channels_in];
    let points = packed.chunks_exact_mut(cout * plan.channels_in).zip(values.chunks_exact(cin * cout));
    for (packed, values) in points {
        for (i, row) in values.chunks_exact(cout).enumerate() {
            let (block, lane) = (i / lanes, i % lanes);
            for (o, value) in row.iter().enumerate() {
                packed[(block * cout + o) * lanes + lane] = *value;
            }
        }
    }
    packed
}

/// `G^T dU G`: the gradient `[k, k, cin, cout]` of the weights from `dU` as `[point][cin padded][cout padded]`.
pub(crate) fn gradient(plan: &Plan, transformed: &[f32]) -> Vec<f32> {
    let (cin, cout, k) = (plan.geometry.channels_in, plan.geometry.channels_out, plan.geometry.kernel.0);
    let padded = plan.channels_in * plan.channels_out;
    let matrix = weight_matrix(k);
    let mut rows = vec![0.0; POINTS * k * padded];
    for (i, out) in rows.chunks_exact_mut(k * padded).enumerate() {
        for (j, values) in transformed[i * POINTS * padded..][..POINTS * padded].chunks_exact(padded).enumerate() {
            for (b, out) in out.chunks_exact_mut(padded).enumerate() {
                add_scaled(out, matrix[j][b] as f32, values);
            }
        }
    }
    let mut whole = vec![0.0; k * k * padded];
    for (a, out) in whole.chunks_exact_mut(k * padded).enumerate() {
        for (i, values) in rows.chunks_exact(k * padded).enumerate() {
            add_scaled(out, matrix[i][a] as f32, values);
        }
    }
    let mut gradient = vec![0.0; k * k * cin * cout];
    for (out, values) in gradient.chunks_exact_mut(cin * cout).zip(whole.chunks_exact(padded)) {
        for (out, values) in out.chunks_exact_mut(cout).zip(values.chunks_exact(plan.channels_out)) {
            out.copy_from_slice(&values[..cout]);
        }
    }
    gradient
}
