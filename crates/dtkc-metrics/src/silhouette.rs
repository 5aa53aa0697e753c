//! How well an embedding separates its clusters, without labels.

use crate::MetricError;
use ndarray::ArrayView2;
use std::collections::BTreeMap;

/// Mean silhouette coefficient with the Euclidean distance, between -1 and 1.
///
/// For an image, a is its mean distance to the others of its cluster and b the smallest mean distance to another
/// cluster: `s = (b - a) / max(a, b)`, 0 for an image alone in its cluster. The cost is quadratic: above
/// `max_samples` images a random sample of that size, drawn with `seed`, is used; below, the value is exact. Images
/// without a cluster (negative) are left out.
pub fn silhouette(
    embedding: &ArrayView2<'_, f32>,
    clusters: &[i64],
    max_samples: usize,
    seed: u64,
) -> Result<f64, MetricError> {
    if embedding.nrows() != clusters.len() {
        return Err(MetricError::Length { truth: embedding.nrows(), clusters: clusters.len() });
    }
    let assigned: Vec<usize> = (0..clusters.len()).filter(|&i| clusters[i] >= 0).collect();
    let rows = sample(assigned, max_samples, seed);
    if let Some(&bad) = rows.iter().find(|&&i| embedding.row(i).iter().any(|v| !v.is_finite())) {
        return Err(MetricError::NotFinite(bad));
    }
    let (groups, sizes) = group(&rows, clusters);
    let (n, k) = (rows.len(), sizes.len());
    if k < 2 || k >= n {
        return Err(MetricError::Clusters { clusters: k, images: n, most: n.saturating_sub(1) });
    }
    let points: Vec<Vec<f64>> =
        rows.iter().map(|&i| embedding.row(i).iter().map(|&v| f64::from(v)).collect()).collect();
    let sums = distance_sums(&points, &groups, k);
    let total: f64 = (0..n).map(|i| coefficient(&sums[i * k..(i + 1) * k], groups[i], &sizes)).sum();
    Ok(total / n as f64)
}

/// At most `most` of the rows, by a partial Fisher-Yates shuffle.
fn sample(mut rows: Vec<usize>, most: usize, seed: u64) -> Vec<usize> {
    if rows.len() <= most {
        return rows;
    }
    let mut state = seed;
    for i in 0..most {
        let left = (rows.len() - i) as u64;
        // The bias of a 64-bit remainder is far below anything that a sample can show.
        rows.swap(i, i + (next(&mut state) % left) as usize);
    }
    rows.truncate(most);
    rows.sort_unstable();
    rows
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Group of every row, and the size of every group.
fn group(rows: &[usize], clusters: &[i64]) -> (Vec<usize>, Vec<usize>) {
    let mut ids: BTreeMap<i64, usize> = rows.iter().map(|&i| (clusters[i], 0)).collect();
    ids.values_mut().enumerate().for_each(|(at, id)| *id = at);
    let groups: Vec<usize> = rows.iter().map(|&i| ids[&clusters[i]]).collect();
    let mut sizes = vec![0; ids.len()];
    groups.iter().for_each(|&g| sizes[g] += 1);
    (groups, sizes)
}

/// For every point the sum of its distances to each group: `[n, k]`, row-major.
fn distance_sums(points: &[Vec<f64>], groups: &[usize], k: usize) -> Vec<f64> {
    let mut sums = vec![0.0; points.len() * k];
    for (i, a) in points.iter().enumerate() {
        for (j, b) in points.iter().enumerate().skip(i + 1) {
            let distance = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
            sums[i * k + groups[j]] += distance;
            sums[j * k + groups[i]] += distance;
        }
    }
    sums
}

fn coefficient(sums: &[f64], own: usize, sizes: &[usize]) -> f64 {
    if sizes[own] == 1 {
        return 0.0;
    }
    let within = sums[own] / (sizes[own] - 1) as f64;
    let others = sums.iter().zip(sizes).enumerate().filter(|(g, _)| *g != own);
    let between = others.map(|(_, (sum, size))| sum / *size as f64).fold(f64::INFINITY, f64::min);
    let larger = within.max(between);
    if larger > 0.0 { (between - within) / larger } else { 0.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn by_hand() {
        // 0 and 1 together, 10 and 12 together: s = 1 - 1/11, 1 - 1/10, 1 - 2/9.5, 1 - 2/11.5.
        let points = array![[0.0f32], [1.0], [10.0], [12.0]];
        let expected = (4.0 - 1.0 / 11.0 - 1.0 / 10.0 - 2.0 / 9.5 - 2.0 / 11.5) / 4.0;
        let value = silhouette(&points.view(), &[4, 4, 9, 9], 100, 0).unwrap();
        assert!((value - expected).abs() < 1e-12, "{value} {expected}");
    }

    #[test]
    fn a_sample_is_repeatable_and_near_the_exact_value() {
        let points = Array2::from_shape_fn((3000, 2), |(i, j)| {
            (i % 3) as f32 * 4.0 + ((i * 7919 + j * 104_729) % 1000) as f32 / 500.0
        });
        let clusters: Vec<i64> = (0..3000).map(|i| i % 3).collect();
        let run = |most, seed| silhouette(&points.view(), &clusters, most, seed).unwrap();
        assert_eq!(run(500, 1), run(500, 1));
        assert_ne!(run(500, 1), run(500, 2));
        assert!((run(500, 1) - run(usize::MAX, 0)).abs() < 0.02);
    }

    #[test]
    fn bad_input_is_refused() {
        let points = array![[0.0f32], [1.0], [f32::NAN]];
        let of = |clusters: &[i64]| silhouette(&points.view(), clusters, 10, 0).unwrap_err();
        assert_eq!(of(&[0, 1]), MetricError::Length { truth: 3, clusters: 2 });
        assert_eq!(of(&[0, 1, 1]), MetricError::NotFinite(2));
        assert_eq!(of(&[0, 0, -1]), MetricError::Clusters { clusters: 1, images: 2, most: 1 });
        assert_eq!(of(&[-1, -1, -1]), MetricError::Clusters { clusters: 0, images: 0, most: 0 });
    }

    #[test]
    fn equal_points_give_zero() {
        let points = Array2::<f32>::zeros((4, 3));
        assert_eq!(silhouette(&points.view(), &[0, 0, 1, 1], 10, 0).unwrap(), 0.0);
    }
}
