//! What makes the spread within clusters equal in all directions.

use dtkc_onnx::Weights;

use super::Seen;

/// Wider embeddings get a factor for each value in place of a matrix, which would be larger than the network.
const WIDEST: usize = 512;
/// The covariance is drawn so far towards that of a ball: directions in which a sample has no spread would count without end.
const SHRINK: f64 = 0.01;
/// The variance that every direction has at least, as a part of that of all items: less than a hundredth of the spread
/// of everything is no difference worth telling, and 32-bit distances would not tell it either.
const LEAST: f64 = 1e-4;

/// A map of embeddings.
pub(super) struct Scaling {
    /// What they are multiplied with from the right: a matrix, or a factor for each value.
    pub matrix: Weights,
    /// What is added then.
    pub shift: Vec<f32>,
}

impl Scaling {
    /// By the spread of some of the items around the means of their clusters.
    pub fn of(seen: &Seen, items: &[usize]) -> Self {
        let width = seen.width;
        let (mean, total) = mean_and_variance(seen, items);
        let centres = centres(seen, items);
        let apart = |item: usize| {
            let centre = &centres[seen.clusters[item]];
            seen.row(item).iter().zip(centre).map(|(value, middle)| f64::from(*value) - middle).collect::<Vec<f64>>()
        };
        let count = items.len() as f64;
        let mut variances = vec![0.0; width];
        for &item in items {
            variances.iter_mut().zip(apart(item)).for_each(|(sum, value)| *sum += value * value / count);
        }
        let within = variances.iter().sum::<f64>() / width as f64;
        let least = match SHRINK * within + LEAST * total {
            least if least > 0.0 => least,
            // Embeddings that are all the same.
            _ => 1.0,
        };
        let matrix = if width > WIDEST {
            let factor = |variance: &f64| 1.0 / ((1.0 - SHRINK) * variance + least).sqrt();
            Weights::new([width], variances.iter().map(|variance| factor(variance) as f32).collect::<Vec<_>>())
        } else {
            let mut covariance = vec![0.0; width * width];
            for &item in items {
                let apart = apart(item);
                for (row, &value) in covariance.chunks_exact_mut(width).zip(&apart) {
                    let factor = (1.0 - SHRINK) * value / count;
                    row.iter_mut().zip(&apart).for_each(|(sum, other)| *sum += factor * other);
                }
            }
            (0..width).for_each(|at| covariance[at * width + at] += least);
            Weights::new([width, width], whitening(covariance, width))
        };
        let shift = mapped(&matrix, &mean.iter().map(|value| *value as f32).collect::<Vec<_>>());
        Self { matrix, shift: shift.into_iter().map(|value| -value as f32).collect() }
    }

    /// Some of the items, scaled, one after the other.
    pub fn apply(&self, seen: &Seen, items: &[usize]) -> Vec<f32> {
        let row = |&item: &usize| {
            let sums = mapped(&self.matrix, seen.row(item)).into_iter().zip(&self.shift);
            sums.map(|(sum, shift)| (sum + f64::from(*shift)) as f32).collect::<Vec<f32>>()
        };
        items.iter().flat_map(row).collect()
    }
}

/// A vector after the matrix, or the factors.
fn mapped(matrix: &Weights, vector: &[f32]) -> Vec<f64> {
    let width = vector.len();
    if matrix.shape.len() == 1 {
        return vector.iter().zip(&matrix.data).map(|(value, factor)| f64::from(*value) * f64::from(*factor)).collect();
    }
    let mut out = vec![0.0; width];
    for (value, row) in vector.iter().zip(matrix.data.chunks_exact(width)) {
        let value = f64::from(*value);
        out.iter_mut().zip(row).for_each(|(sum, factor)| *sum += value * f64::from(*factor));
    }
    out
}

fn mean_and_variance(seen: &Seen, items: &[usize]) -> (Vec<f64>, f64) {
    let mut mean = vec![0.0; seen.width];
    for &item in items {
        mean.iter_mut().zip(seen.row(item)).for_each(|(sum, value)| *sum += f64::from(*value) / items.len() as f64);
    }
    let square = |item: &usize| {
        let apart = seen.row(*item).iter().zip(&mean).map(|(value, middle)| (f64::from(*value) - middle).powi(2));
        apart.sum::<f64>()
    };
    let total = items.iter().map(square).sum::<f64>() / (items.len() * seen.width) as f64;
    (mean, total)
}

/// The means of clusters, by number; zeros where one has no items.
fn centres(seen: &Seen, items: &[usize]) -> Vec<Vec<f64>> {
    let clusters = seen.clusters.iter().max().map_or(0, |highest| highest + 1);
    let mut centres = vec![vec![0.0; seen.width]; clusters];
    let mut counts = vec![0usize; clusters];
    for &item in items {
        let cluster = seen.clusters[item];
        counts[cluster] += 1;
        centres[cluster].iter_mut().zip(seen.row(item)).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    for (centre, count) in centres.iter_mut().zip(counts) {
        centre.iter_mut().for_each(|sum| *sum /= count.max(1) as f64);
    }
    centres
}

/// `M` with `M M^T` the inverse of a positive definite matrix `C = L L^T`: the transpose of the inverse of `L`. Then the length
/// of `x M` is that by which `C` measures.
pub(super) fn whitening(mut c: Vec<f64>, n: usize) -> Vec<f32> {
    // L, in the lower half of C.
    for row in 0..n {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|k| c[row * n + k] * c[column * n + k]).sum();
            let rest = c[row * n + column] - dot;
            c[row * n + column] =
                if row == column { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / c[column * n + column] };
        }
    }
    // Row by row, L times its inverse is 1; what is kept is the transpose.
    let mut inverse = vec![0.0; n * n];
    for column in 0..n {
        for row in column..n {
            let dot: f64 = (column..row).map(|k| c[row * n + k] * inverse[column * n + k]).sum();
            let one = if row == column { 1.0 } else { 0.0 };
            inverse[column * n + row] = (one - dot) / c[row * n + row];
        }
    }
    inverse.into_iter().map(|value| value as f32).collect()
}
