//! The last layer: outputs become orthonormal over a batch.

use burn::tensor::{Tensor, TensorData};

/// Outputs made orthonormal over their own batch: `Y = Z W`, W by [`orthonormaliser`].
///
/// The loss of orthonormal outputs depends on the space that their columns span and on nothing else, so that its slope is
/// exact when W is held and what would only turn or stretch the columns is taken away: `dY = (I - Y Y^T / n) dZ W`. Held
/// W alone, as the authors have it, lets a step lower the loss by shrinking the outputs, which then all become the same.
///
/// # Shapes
/// - raw, result: `[n, k]`
pub fn orthonormal(raw: Tensor<2>) -> Tensor<2> {
    let [n, k] = raw.dims();
    let values: Vec<f32> = raw.clone().detach().into_data().iter::<f32>().collect();
    let layer = Tensor::from_data(TensorData::new(orthonormaliser(&values, k), [k, k]), &raw.device());
    let outputs = raw.matmul(layer);
    let held = outputs.clone().detach();
    let moved = outputs.clone() - held.clone();
    let within = held.clone().matmul(held.transpose().matmul(moved)) * (1.0 / n.max(1) as f64);
    outputs - within
}

/// The matrix W, `[k, k]` row-major, for which the columns of `Y W / sqrt(n)` are orthonormal: `W = sqrt(n) L^-T` with
/// `L L^T = Y^T Y`. A tiny ridge keeps outputs that say the same from being no matrix at all.
pub fn orthonormaliser(outputs: &[f32], k: usize) -> Vec<f32> {
    let n = outputs.len() / k.max(1);
    let mut gram = vec![0.0f64; k * k];
    for row in outputs.chunks_exact(k) {
        for (i, &a) in row.iter().enumerate() {
            for (j, &b) in row[..=i].iter().enumerate() {
                gram[i * k + j] += f64::from(a) * f64::from(b);
            }
        }
    }
    let ridge = 1e-7 * (0..k).map(|i| gram[i * k + i]).sum::<f64>() / k.max(1) as f64 + 1e-12;
    (0..k).for_each(|i| gram[i * k + i] += ridge);
    factor(&mut gram, k);
    inverse_transposed(&gram, k).into_iter().map(|value| (value * (n as f64).sqrt()) as f32).collect()
}

/// Cholesky's lower factor in the place of the lower half.
fn factor(matrix: &mut [f64], k: usize) {
    for j in 0..k {
        let (before, _) = matrix[j * k..].split_at(j);
        let rest = matrix[j * k + j] - before.iter().map(|value| value * value).sum::<f64>();
        let pivot = rest.max(1e-300).sqrt();
        matrix[j * k + j] = pivot;
        for i in j + 1..k {
            let products: f64 = (0..j).map(|c| matrix[i * k + c] * matrix[j * k + c]).sum();
            matrix[i * k + j] = (matrix[i * k + j] - products) / pivot;
        }
    }
}

/// `L^-T`, upper triangular.
fn inverse_transposed(lower: &[f64], k: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; k * k];
    for column in 0..k {
        for i in column..k {
            let unit = if i == column { 1.0 } else { 0.0 };
            // The inverse is built transposed: its entry (i, column) stands at [column, i].
            let products: f64 = (column..i).map(|c| lower[i * k + c] * inverse[column * k + c]).sum();
            inverse[column * k + i] = (unit - products) / lower[i * k + i];
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_orthonormal() {
        let (n, k) = (40, 3);
        let value = |i: usize| ((i * 7919 % 101) as f32 / 50.0 - 1.0) * (1.0 + (i % k) as f32);
        let outputs: Vec<f32> = (0..n * k).map(value).collect();
        let layer = orthonormaliser(&outputs, k);
        let mut gram = [0.0f64; 9];
        for row in outputs.chunks_exact(k) {
            let y: Vec<f64> = (0..k).map(|j| (0..k).map(|i| f64::from(row[i] * layer[i * k + j])).sum()).collect();
            (0..9).for_each(|at| gram[at] += y[at / k] * y[at % k] / n as f64);
        }
        let expected = |at: usize| if at / k == at % k { 1.0 } else { 0.0 };
        assert!((0..9).all(|at| (gram[at] - expected(at)).abs() < 1e-4), "{gram:?}");
    }

    #[test]
    fn outputs_that_say_the_same_are_survived() {
        let layer = orthonormaliser(&[1.0, 1.0, 2.0, 2.0, 0.0, 0.0], 2);
        assert!(layer.iter().all(|value| value.is_finite()), "{layer:?}");
        assert!(orthonormaliser(&[0.0; 6], 2).iter().all(|value| value.is_finite()));
    }
}
