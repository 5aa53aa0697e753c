//! Centres that no item is nearest to.

use std::collections::BTreeSet;

use crate::LearnError;
use crate::kmeans::{KmeansOptions, Points, kmeans};

/// Codes of a cluster that are looked at when it is asked how well it splits.
const MOST: usize = 5000;

/// Whether one of so many clusters has no item.
pub(crate) fn has_empty_cluster(labels: &[u32], clusters: usize) -> bool {
    let used: BTreeSet<u32> = labels.iter().copied().collect();
    used.len() < clusters
}

/// Gives every cluster without an item half of another one: of the one that two centres fit better than one by most, in sums
/// of squares. Labels and centres (`[k, width]`) follow. Says whether there was any such cluster that could be given something.
pub(crate) fn refill(
    codes: Points<'_>,
    labels: &mut [u32],
    centres: &mut [f32],
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Result<bool, LearnError> {
    let k = centres.len() / codes.width.max(1);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); k];
    labels.iter().enumerate().for_each(|(item, &label)| members[label as usize].push(item));
    let mut splits: Vec<Option<Split>> = vec![None; k];
    let mut refilled = false;
    for empty in (0..k).filter(|&cluster| members[cluster].is_empty()).collect::<Vec<_>>() {
        for (cluster, split) in splits.iter_mut().enumerate() {
            if split.is_none() && members[cluster].len() > 1 {
                *split = Some(Split::of(codes, &members[cluster], seed, stop)?);
            }
        }
        let gain = |cluster: usize| splits[cluster].as_ref().map_or(0.0, |split| split.gain);
        let Some(whole) = (0..k).reduce(|best, next| if gain(next) > gain(best) { next } else { best }) else { break };
        let Some(split) = splits[whole].take().filter(|split| split.gain > 0.0) else { break };
        let (first, second) = split.centres.split_at(codes.width);
        centres[whole * codes.width..][..codes.width].copy_from_slice(first);
        centres[empty * codes.width..][..codes.width].copy_from_slice(second);
        let moves = |item: &usize| square(codes.row(*item), second) < square(codes.row(*item), first);
        let (moved, kept) = std::mem::take(&mut members[whole]).into_iter().partition(moves);
        (members[empty], members[whole]) = (moved, kept);
        members[empty].iter().for_each(|&item| labels[item] = empty as u32);
        refilled = true;
    }
    Ok(refilled)
}

/// The two halves of a cluster.
#[derive(Debug, Clone)]
struct Split {
    /// `[2, width]`.
    centres: Vec<f32>,
    /// By how much the sum of squares falls.
    gain: f64,
}

impl Split {
    fn of(codes: Points<'_>, members: &[usize], seed: u64, stop: &dyn Fn() -> bool) -> Result<Self, LearnError> {
        let step = members.len().div_ceil(MOST);
        let values: Vec<f32> = members.iter().step_by(step).flat_map(|&item| codes.row(item)).copied().collect();
        let points = Points { values: &values, width: codes.width };
        let options = KmeansOptions { clusters: 1, starts: 1, iterations: 50, tolerance: 1e-4, seed };
        let whole = kmeans(points, &options, stop)?.inertia;
        let halves = kmeans(points, &KmeansOptions { clusters: 2, starts: 3, ..options }, stop)?;
        Ok(Self { centres: halves.centres, gain: (whole - halves.inertia) * step as f64 })
    }
}

fn square(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Three heaps on a line, at 0, 10 and 100; `sizes` points in each, close together.
    fn heaps(sizes: [usize; 3]) -> Vec<f32> {
        let heap = |(middle, &size): (f32, &usize)| (0..size).map(move |i| middle + 0.1 * (i % 5) as f32);
        [0.0, 10.0, 100.0].into_iter().zip(&sizes).flat_map(heap).collect()
    }

    fn refilled(values: &[f32], labels: &mut [u32], centres: &mut [f32]) -> bool {
        refill(Points { values, width: 1 }, labels, centres, 1, &|| false).unwrap()
    }

    #[test]
    fn an_empty_cluster_takes_the_half_of_the_one_that_splits_best() {
        let values = heaps([10, 10, 10]);
        let mut labels: Vec<u32> = (0..30).map(|i| if i < 20 { 0 } else { 2 }).collect();
        let mut centres = [5.0, -7.0, 100.0];
        assert!(refilled(&values, &mut labels, &mut centres));
        assert!((0..30).all(|i| labels[i] == labels[i / 10 * 10]), "{labels:?}");
        assert_eq!(BTreeSet::from_iter(labels.iter().copied()).len(), 3);
        let mut found = centres;
        found.sort_by(f32::total_cmp);
        assert!(found.iter().zip([0.2, 10.2, 100.0]).all(|(a, b)| (a - b).abs() < 1e-3), "{centres:?}");
    }

    #[test]
    fn several_empty_clusters_are_filled_one_after_the_other() {
        let values = heaps([10, 10, 10]);
        let (mut labels, mut centres) = (vec![1; 30], [9.0, 50.0, -9.0]);
        assert!(refilled(&values, &mut labels, &mut centres));
        assert!((0..30).all(|i| labels[i] == labels[i / 10 * 10]), "{labels:?}");
    }

    #[test]
    fn nothing_changes_without_an_empty_cluster_or_anything_to_split() {
        let values = heaps([2, 2, 2]);
        let (mut labels, mut centres) = (vec![0, 0, 1, 1, 2, 2], [1.0, 2.0, 3.0]);
        assert!(!refilled(&values, &mut labels, &mut centres));
        assert_eq!(centres, [1.0, 2.0, 3.0]);
        let (mut same, mut centres) = (vec![0; 4], [1.0, 2.0]);
        assert!(!refilled(&[5.0; 4], &mut same, &mut centres));
        assert_eq!((same, centres), (vec![0; 4], [1.0, 2.0]));
    }
}
