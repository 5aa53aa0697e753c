//! What one look at points adds up to: the sums, from which centres move.

use dtkc_ops::{Centres, add_rows, block_rows, for_each};

use super::points::Points;

/// Sums over the points of each cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sums {
    pub(crate) width: usize,
    /// `[k, width]`.
    pub(crate) sums: Vec<f64>,
    /// Points in each cluster.
    pub(crate) counts: Vec<u64>,
    /// Squared distances to the nearest centre, over all points.
    pub(crate) squares: f64,
}

impl Sums {
    pub(crate) fn new(clusters: usize, width: usize) -> Self {
        Self { width, sums: vec![0.0; clusters * width], counts: vec![0; clusters], squares: 0.0 }
    }

    /// Finds the nearest centre of every point and adds them up, shared between threads.
    pub(crate) fn of(points: Points<'_>, centres: &[f32], labels: &mut [u32], squares: &mut [f32]) -> Self {
        let width = points.width;
        let empty = Self::new(centres.len() / width, width);
        let rows = points.part_rows(centres.len());
        let centres = Centres::new(centres, width);
        let mut parts = vec![empty; points.len().div_ceil(rows).max(1)];
        let work = parts.iter_mut().zip(points.values.chunks(rows * width));
        let work = work.zip(labels.chunks_mut(rows).zip(squares.chunks_mut(rows)));
        for_each(work, |((sums, values), (labels, squares))| sums.take(values, &centres, labels, squares));
        Self::total(parts)
    }

    fn take(&mut self, values: &[f32], centres: &Centres, labels: &mut [u32], squares: &mut [f32]) {
        let rows = block_rows(self.width);
        let blocks = values.chunks(rows * self.width).zip(labels.chunks_mut(rows).zip(squares.chunks_mut(rows)));
        for (values, (labels, squares)) in blocks {
            self.take_block(values, centres, labels, squares);
        }
    }

    /// The same for points that are in the cache together, on this thread.
    pub(super) fn take_block(&mut self, values: &[f32], centres: &Centres, labels: &mut [u32], squares: &mut [f32]) {
        centres.nearest(values, labels, squares);
        add_rows(values, self.width, labels, &mut self.sums);
        labels.iter().for_each(|&label| self.counts[label as usize] += 1);
        self.squares += squares.iter().map(|&square| f64::from(square)).sum::<f64>();
    }

    /// Number of points.
    pub(crate) fn points(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of parts, in their order.
    pub(super) fn total(mut parts: Vec<Self>) -> Self {
        let rest = parts.split_off(1);
        let mut all = parts.remove(0);
        rest.iter().for_each(|part| all.add(part));
        all
    }

    /// Adds the sums of other points.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(a, b)| *a += b);
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.squares += other.squares;
    }

    /// Clusters without a point.
    pub(crate) fn empty(&self) -> Vec<usize> {
        (0..self.counts.len()).filter(|&cluster| self.counts[cluster] == 0).collect()
    }

    /// Gives a point of cluster `from` to `to`. The last point of a cluster stays: taking it would only move the hole.
    pub(crate) fn give(&mut self, point: &[f32], from: usize, to: usize) -> bool {
        if self.counts[from] < 2 {
            return false;
        }
        self.counts[from] -= 1;
        self.counts[to] += 1;
        for (j, &value) in point.iter().enumerate() {
            self.sums[from * self.width + j] -= f64::from(value);
            self.sums[to * self.width + j] += f64::from(value);
        }
        true
    }

    /// Moves every centre to the mean of its points and returns the sum of the squared movements. The centre of a
    /// cluster without points stays where it is.
    pub(crate) fn move_centres(&self, centres: &mut [f32]) -> f64 {
        let mut moved = 0.0;
        for ((centre, sums), &count) in
            centres.chunks_exact_mut(self.width).zip(self.sums.chunks_exact(self.width)).zip(&self.counts)
        {
            if count == 0 {
                continue;
            }
            for (value, sum) in centre.iter_mut().zip(sums) {
                let mean = (sum / count as f64) as f32;
                moved += f64::from(mean - *value).powi(2);
                *value = mean;
            }
        }
        moved
    }
}
