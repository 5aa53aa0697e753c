//! Figures over several restarts: mean, spread, rank correlation, and intervals for differences.

use crate::student::t_quantile;

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of a sample (n - 1); `None` of fewer than two values.
pub fn sd(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((square / (values.len() as f64 - 1.0)).sqrt())
}

/// Spearman's rank correlation; equal values share the mean of their ranks. `None` where it says nothing: lists of
/// different lengths or of fewer than two values, values that are not finite, or all equal.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let usable = |values: &[f64]| values.iter().all(|value| value.is_finite());
    if a.len() != b.len() || a.len() < 2 || !usable(a) || !usable(b) {
        return None;
    }
    pearson(&ranks(a), &ranks(b))
}

fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let (x, y) = (mean(a)?, mean(b)?);
    let sum = |part: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| part(a - x, b - y)).sum::<f64>();
    let (both, first, second) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    (first > 0.0 && second > 0.0).then(|| (both / (first * second).sqrt()).clamp(-1.0, 1.0))
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut begin = 0;
    // 0 and -0 are equal, though not to `total_cmp`: they stand side by side, and that is enough.
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let shared = begin as f64 + (group.len() as f64 + 1.0) / 2.0;
        group.iter().for_each(|&at| ranks[at] = shared);
        begin += group.len();
    }
    ranks
}

/// A mean and where the true one lies with a given confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Student's interval for the mean of a sample, such as of paired differences: `level` .95 for 95 %. `None` of fewer than
/// two values, and where `level` does not lie between 0 and 1.
pub fn mean_interval(values: &[f64], level: f64) -> Option<Interval> {
    let (mean, sd) = (mean(values)?, sd(values)?);
    let n = values.len() as f64;
    let half = t_quantile(f64::midpoint(1.0, level), n - 1.0).filter(|_| level > 0.0)? * sd / n.sqrt();
    Some(Interval { mean, low: mean - half, high: mean + half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_says_nothing() {
        assert_eq!((mean(&[]), sd(&[1.0]), mean(&[2.0])), (None, None, Some(2.0)));
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[4.0, 4.0, 4.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN, 3.0], &[4.0, 5.0, 6.0]), None);
        assert_eq!(mean_interval(&[1.0], 0.95), None);
        for level in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
            assert_eq!(mean_interval(&[1.0, 2.0], level), None, "{level}");
        }
    }

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 0.0, -0.0, 3.0]), [5.0, 3.0, 5.0, 1.5, 1.5, 5.0]);
    }

    #[test]
    fn equal_differences_have_no_width() {
        let interval = mean_interval(&[0.25, 0.25, 0.25], 0.95);
        assert_eq!(interval, Some(Interval { mean: 0.25, low: 0.25, high: 0.25 }));
    }
}
