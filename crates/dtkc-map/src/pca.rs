//! Principal component analysis by power iteration on the covariance matrix.

/// Products that the covariance matrix may take; of more rows an even sample is enough.
const PRODUCTS: usize = 2_000_000_000;
/// Fewest rows of that sample.
const FEWEST: usize = 1000;
/// Rounds for one axis. Axes of nearly the same variance need more to be told apart, but then either will do.
const ROUNDS: usize = 300;

/// The directions in which points vary most.
#[derive(Debug, Clone, PartialEq)]
pub struct Pca {
    /// Values of a point.
    pub width: usize,
    /// The middle of the points.
    pub mean: Vec<f64>,
    /// One unit vector per axis, `[axes, width]`, by falling variance; the entry of largest size is positive.
    pub axes: Vec<f64>,
    /// The variance along each axis (of a sample: n - 1).
    pub variances: Vec<f64>,
    /// The variance in all directions together.
    pub total: f64,
}

impl Pca {
    /// The first `count` axes of points `[n, width]`, fewer where there are no more directions. Values that are not finite count as 0.
    pub fn of(values: &[f32], width: usize, count: usize) -> Self {
        let width = width.max(1);
        let n = values.len() / width;
        let wanted = (PRODUCTS / (width * width)).max(FEWEST).min(n);
        let rows: Vec<&[f32]> = (0..wanted).map(|i| row(values, width, i * n / wanted)).collect();
        let mean = mean(&rows, width);
        let mut covariance = covariance(&rows, &mean);
        let total = (0..width).map(|i| covariance[i * width + i]).sum();
        let mut found = Self { width, mean, axes: Vec::new(), variances: Vec::new(), total };
        while found.variances.len() < count.min(width) {
            let (axis, variance) = strongest(&covariance, width);
            if variance <= found.total * 1e-12 {
                break;
            }
            for i in 0..width {
                (0..width).for_each(|j| covariance[i * width + j] -= variance * axis[i] * axis[j]);
            }
            found.axes.extend(axis);
            found.variances.push(variance);
        }
        found
    }

    /// Number of axes.
    pub fn len(&self) -> usize {
        self.variances.len()
    }

    /// Whether all points are the same.
    pub fn is_empty(&self) -> bool {
        self.variances.is_empty()
    }

    /// Part of the variance that an axis has.
    pub fn share(&self, axis: usize) -> f64 {
        self.variances.get(axis).map_or(0.0, |variance| variance / self.total.max(f64::MIN_POSITIVE))
    }

    /// Where points `[n, width]` lie along the axes, `[n, axes]`.
    pub fn project(&self, values: &[f32]) -> Vec<f32> {
        let mut places = Vec::with_capacity(values.len() / self.width * self.len());
        for point in values.chunks_exact(self.width) {
            for axis in self.axes.chunks_exact(self.width) {
                let along = point.iter().zip(&self.mean).zip(axis);
                places.push(along.map(|((&x, mean), a)| (finite(x) - mean) * a).sum::<f64>() as f32);
            }
        }
        places
    }
}

fn row(values: &[f32], width: usize, at: usize) -> &[f32] {
    &values[at * width..][..width]
}

fn finite(value: f32) -> f64 {
    if value.is_finite() { f64::from(value) } else { 0.0 }
}

fn mean(rows: &[&[f32]], width: usize) -> Vec<f64> {
    let mut mean = vec![0.0; width];
    for row in rows {
        mean.iter_mut().zip(*row).for_each(|(sum, &x)| *sum += finite(x));
    }
    mean.iter_mut().for_each(|sum| *sum /= rows.len().max(1) as f64);
    mean
}

fn covariance(rows: &[&[f32]], mean: &[f64]) -> Vec<f64> {
    let width = mean.len();
    let mut sums = vec![0.0; width * width];
    let mut centred = vec![0.0; width];
    for row in rows {
        centred.iter_mut().zip(row.iter().zip(mean)).for_each(|(to, (&x, mean))| *to = finite(x) - mean);
        for i in 0..width {
            let own = centred[i];
            let line = &mut sums[i * width..][..=i];
            line.iter_mut().zip(&centred).for_each(|(sum, other)| *sum += own * other);
        }
    }
    let by = (rows.len().max(2) - 1) as f64;
    for i in 0..width {
        for j in 0..=i {
            let value = sums[i * width + j] / by;
            sums[i * width + j] = value;
            sums[j * width + i] = value;
        }
    }
    sums
}

/// The eigenvector of the largest eigenvalue, and that.
fn strongest(matrix: &[f64], width: usize) -> (Vec<f64>, f64) {
    // The column of largest variance is never at right angles to all that is left.
    let largest = (0..width).max_by(|&a, &b| matrix[a * width + a].total_cmp(&matrix[b * width + b])).unwrap_or(0);
    let mut axis = matrix[largest * width..][..width].to_vec();
    let mut value = scale(&mut axis);
    for _ in 0..ROUNDS {
        let mut next: Vec<f64> = matrix.chunks_exact(width).map(|line| dot(line, &axis)).collect();
        value = scale(&mut next);
        let change: f64 = next.iter().zip(&axis).map(|(a, b)| (a - b).powi(2)).sum();
        axis = next;
        if change < 1e-24 {
            break;
        }
    }
    if axis.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).is_some_and(|most| most < 0.0) {
        axis.iter_mut().for_each(|a| *a = -*a);
    }
    (axis, value)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gives a vector the length 1 and tells which it had.
fn scale(vector: &mut [f64]) -> f64 {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_do_not_vary_have_no_axes() {
        let same = Pca::of(&[3.0; 20], 4, 2);
        assert!(same.is_empty() && same.total == 0.0 && same.project(&[3.0; 4]).is_empty());
        assert_eq!(same.share(0), 0.0);
        assert!(Pca::of(&[], 4, 2).is_empty());
    }

    #[test]
    fn a_line_has_one_axis_and_what_is_not_finite_does_no_harm() {
        let mut line: Vec<f32> = (0..50).flat_map(|i| [i as f32 * 3.0, i as f32 * 4.0]).collect();
        let found = Pca::of(&line, 2, 2);
        assert_eq!(found.len(), 1);
        assert!((found.axes[0] - 0.6).abs() < 1e-9 && (found.axes[1] - 0.8).abs() < 1e-9, "{found:?}");
        assert!((found.share(0) - 1.0).abs() < 1e-9);
        line[7] = f32::NAN;
        assert!(Pca::of(&line, 2, 2).project(&line).iter().all(|x| x.is_finite()));
    }
}
