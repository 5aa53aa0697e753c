//! Sizes of clusters.

/// The part of images in each of the clusters 0 to k - 1; negative (not assigned) and larger ids are left out.
///
/// The shares sum to 1, or are all 0 when no image is assigned.
pub fn shares(clusters: &[i64], k: usize) -> Vec<f64> {
    let mut counts = vec![0u64; k];
    for &cluster in clusters {
        if let Some(count) = usize::try_from(cluster).ok().and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.into_iter().map(|count| count as f64 / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unassigned_images_do_not_count() {
        assert_eq!(shares(&[0, 0, 2, -1, 9, 2], 4), [0.5, 0.0, 0.5, 0.0]);
        assert_eq!(shares(&[], 2), [0.0, 0.0]);
        assert!(shares(&[1], 0).is_empty());
    }
}
