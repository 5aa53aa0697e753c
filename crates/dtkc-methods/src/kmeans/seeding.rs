//! First centres: k-means++ that tries several candidates for each and keeps the best, as scikit-learn does.

use dtkc_ops::{Panel, block_rows, for_each};

use super::points::Points;
use crate::LearnError;
use crate::random::Random;

/// Indices of the points that are the first centres. Where there are fewer different points than centres, some are
/// chosen more than once.
///
/// Every further centre is drawn with a probability in proportion to the squared distance from the nearest centre so
/// far; of `2 + ln k` candidates the one stays that leaves the smallest sum of such distances.
pub(super) fn first_centres(
    points: Points<'_>,
    clusters: usize,
    random: &mut Random,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<usize>, LearnError> {
    let trials = 2 + (clusters as f64).ln() as usize;
    let mut seeding = Seeding::new(points);
    let mut chosen = vec![random.below(points.len())];
    seeding.accept(&chosen, 0);
    while chosen.len() < clusters {
        if stop() {
            return Err(LearnError::Stopped);
        }
        let candidates: Vec<usize> = (0..trials).map(|_| seeding.draw(random.unit())).collect();
        let best = seeding.try_out(&candidates);
        chosen.push(candidates[best]);
    }
    Ok(chosen)
}

struct Seeding<'a> {
    points: Points<'a>,
    /// Squared length of every point.
    lengths: Vec<f32>,
    /// Squared distance of every point to the nearest centre.
    nearest: Vec<f32>,
    /// Sums of `nearest` up to every point.
    totals: Vec<f64>,
    /// What `nearest` would be with each candidate, one after the other for every point.
    tried: Vec<f32>,
}

impl<'a> Seeding<'a> {
    fn new(points: Points<'a>) -> Self {
        let length = |row: &[f32]| row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() as f32;
        let mut lengths = vec![0.0; points.len()];
        let rows = points.part_rows(points.width);
        let work = lengths.chunks_mut(rows).zip(points.values.chunks(rows * points.width));
        for_each(work, |(lengths, values)| {
            lengths.iter_mut().zip(values.chunks_exact(points.width)).for_each(|(to, row)| *to = length(row));
        });
        let nearest = vec![f32::INFINITY; points.len()];
        Self { points, lengths, nearest, totals: Vec::new(), tried: Vec::new() }
    }

    /// The point at this part of the sum of all distances.
    fn draw(&self, part: f64) -> usize {
        let target = part * self.totals.last().copied().unwrap_or(0.0);
        self.totals.partition_point(|&total| total <= target).min(self.points.len() - 1)
    }

    /// Keeps the best of the candidates and says which.
    fn try_out(&mut self, candidates: &[usize]) -> usize {
        self.measure(candidates);
        let mut sums = vec![0.0; candidates.len()];
        for row in self.tried.chunks_exact(candidates.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, &square)| *sum += f64::from(square));
        }
        let best = (0..sums.len()).min_by(|&a, &b| sums[a].total_cmp(&sums[b])).unwrap_or(0);
        self.keep(candidates.len(), best);
        best
    }

    /// Takes a candidate without a choice.
    fn accept(&mut self, candidates: &[usize], which: usize) {
        self.measure(candidates);
        self.keep(candidates.len(), which);
    }

    /// The distance of every point to the nearest centre, if each candidate were one.
    fn measure(&mut self, candidates: &[usize]) {
        let (points, width, count) = (self.points, self.points.width, candidates.len());
        let rows: Vec<f32> = candidates.iter().flat_map(|&candidate| points.row(candidate)).copied().collect();
        let panel = Panel::new(&rows, width);
        let lengths: Vec<f32> = candidates.iter().map(|&candidate| self.lengths[candidate]).collect();
        self.tried.resize(points.len() * count, 0.0);
        let part = block_rows(width);
        let known = self.lengths.chunks(part).zip(self.nearest.chunks(part));
        let work = self.tried.chunks_mut(part * count).zip(points.values.chunks(part * width).zip(known));
        for_each(work, |(tried, (values, (own, nearest)))| {
            let mut products = vec![0.0; own.len() * panel.columns()];
            panel.products(values, &mut products);
            let rows = tried.chunks_exact_mut(count).zip(products.chunks_exact(panel.columns()));
            for ((tried, products), (own, nearest)) in rows.zip(own.iter().zip(nearest)) {
                for ((to, product), length) in tried.iter_mut().zip(products).zip(&lengths) {
                    *to = (own + length - 2.0 * product).max(0.0).min(*nearest);
                }
            }
        });
        // A candidate is at no distance from itself, whatever rounding says: it must not be drawn again.
        for (which, &candidate) in candidates.iter().enumerate() {
            self.tried[candidate * count + which] = 0.0;
        }
    }

    fn keep(&mut self, candidates: usize, which: usize) {
        let mut total = 0.0;
        self.totals.clear();
        for (nearest, row) in self.nearest.iter_mut().zip(self.tried.chunks_exact(candidates)) {
            *nearest = row[which];
            total += f64::from(*nearest);
            self.totals.push(total);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn chosen(values: &[f32], width: usize, k: usize, seed: u64) -> Vec<usize> {
        let mut random = Random::new(seed, b"test....", 0);
        first_centres(Points { values, width }, k, &mut random, &|| false).unwrap()
    }

    #[test]
    fn groups_far_apart_get_one_centre_each() {
        // Four groups of five points.
        let values: Vec<f32> = (0..20).flat_map(|i| [(i / 5) as f32 * 100.0, (i % 5) as f32 * 0.1]).collect();
        for seed in 0..20 {
            let mut groups: Vec<usize> = chosen(&values, 2, 4, seed).iter().map(|i| i / 5).collect();
            groups.sort_unstable();
            assert_eq!(groups, [0, 1, 2, 3], "seed {seed}");
        }
    }

    #[test]
    fn no_point_is_chosen_twice_while_there_are_others() {
        let values: Vec<f32> = (0..12).map(|i| i as f32 - 6.0).collect();
        for seed in 0..20 {
            let mut all = chosen(&values, 1, 12, seed);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 12, "{all:?}");
        }
    }

    #[test]
    fn equal_points_end_too() {
        assert_eq!(chosen(&[3.0; 8], 2, 3, 1).len(), 3);
    }

    #[test]
    fn a_stop_is_heard() {
        let mut random = Random::new(1, b"test....", 0);
        let points = Points { values: &[1.0, 2.0, 3.0], width: 1 };
        assert!(matches!(first_centres(points, 2, &mut random, &|| true), Err(LearnError::Stopped)));
    }
}
