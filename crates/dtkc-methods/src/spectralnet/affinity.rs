//! Who is near whom in a batch, and the loss that makes their outputs equal.

use burn::tensor::{Device, Tensor, TensorData};

use crate::LearnError;
use crate::kmeans::Points;
use crate::nearest::Neighbours;

/// Ties between the items of a batch: `exp(-d^2 / (2 s^2))` to each of the `neighbours` nearest, s the median distance to
/// the `scale_neighbour`-th, then the mean with the transpose. `[n, n]`, row-major.
pub fn affinities(points: Points<'_>, neighbours: usize, scale_neighbour: usize) -> Result<Vec<f32>, LearnError> {
    let n = points.len();
    let found = Neighbours::find(&points, neighbours.max(scale_neighbour), &|| false)?;
    let scale = found.median_distance(scale_neighbour).max(1e-12);
    let mut ties = vec![0.0f32; n * n];
    for item in 0..n {
        let squares = &found.squares[item * found.count..][..found.count];
        for (&other, &square) in found.of(item).iter().zip(squares).take(neighbours) {
            let tie = 0.5 * (-f64::from(square) / (2.0 * scale * scale)).exp() as f32;
            ties[item * n + other as usize] += tie;
            ties[other as usize * n + item] += tie;
        }
    }
    Ok(ties)
}

/// `sum_ij w_ij ||y_i - y_j||^2 / (2 n)` for symmetric ties w.
///
/// # Shapes
/// - outputs: `[n, k]`
/// - ties: `[n, n]`
/// - result: `[1]`
pub fn spectral_loss(outputs: Tensor<2>, ties: Tensor<2>) -> Tensor<1> {
    let [n, _] = outputs.dims();
    // For symmetric w the sum is 2 (sum_i d_i ||y_i||^2 - sum_ij w_ij y_i . y_j), d the sums of the rows.
    let alone = (outputs.clone().square().sum_dim(1) * ties.clone().sum_dim(1)).sum();
    let together = (outputs.clone() * ties.matmul(outputs)).sum();
    (alone - together) * (1.0 / n.max(1) as f64)
}

pub(super) fn square_tensor(values: Vec<f32>, device: &Device) -> Tensor<2> {
    let side = values.len().isqrt();
    Tensor::from_data(TensorData::new(values, [side, side]), device)
}
