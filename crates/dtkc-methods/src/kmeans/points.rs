//! Points in memory, and what must be true of them.

use dtkc_ops::{add_rows, for_each};

use crate::LearnError;

/// Points of one width, row-major.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Points<'a> {
    /// `[n, width]`.
    pub values: &'a [f32],
    /// Values of a point.
    pub width: usize,
}

/// Parts that points are cut into at most, and the bytes that their sums may take together. The cut depends on the
/// shape alone, and sums are taken per part and then over the parts: the same bits for any number of threads.
const PARTS: usize = 16;
const PART_BYTES: usize = 64 << 20;

/// Parts for sums of `values` values.
pub(super) fn parts(values: usize) -> usize {
    (PART_BYTES / (8 * values.max(1))).clamp(2, PARTS)
}

impl<'a> Points<'a> {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One point.
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.values[index * self.width..][..self.width]
    }

    /// Refuses what has no k clusters.
    pub(crate) fn check(&self, clusters: usize) -> Result<(), LearnError> {
        let n = self.len();
        if self.width == 0 || !self.values.len().is_multiple_of(self.width) {
            let text = format!("{} values are no whole points of {} values", self.values.len(), self.width);
            return Err(LearnError::Unsuitable(text));
        }
        check_clusters(clusters, n)?;
        match self.values.iter().position(|value| !value.is_finite()) {
            Some(place) => Err(LearnError::Diverged(format!(
                "point {} of {n} holds {}, and k-means needs numbers: training went wrong before it, so use a lower \
                 learning rate",
                place / self.width,
                self.values[place]
            ))),
            None => Ok(()),
        }
    }

    /// The mean of all points, and the points less it: products of such points are more exact.
    pub(super) fn centred(&self) -> (Vec<f32>, Vec<f32>) {
        let mean = self.mean();
        let mut values = vec![0.0; self.values.len()];
        let rows = self.part_rows(self.width);
        let work = values.chunks_mut(rows * self.width).zip(self.values.chunks(rows * self.width));
        for_each(work, |(to, from)| {
            for (to, from) in to.chunks_exact_mut(mean.len()).zip(from.chunks_exact(mean.len())) {
                to.iter_mut().zip(from.iter().zip(&mean)).for_each(|(to, (from, mean))| *to = from - mean);
            }
        });
        (values, mean)
    }

    fn mean(&self) -> Vec<f32> {
        let rows = self.part_rows(self.width);
        let mut sums = vec![vec![0.0; self.width]; self.len().div_ceil(rows)];
        let work = sums.iter_mut().zip(self.values.chunks(rows * self.width));
        let labels = vec![0; rows];
        for_each(work, |(sums, values)| add_rows(values, self.width, &labels, sums));
        let n = self.len() as f64;
        (0..self.width).map(|j| (sums.iter().map(|part| part[j]).sum::<f64>() / n) as f32).collect()
    }

    /// Points per part where each part has sums of `values` values.
    pub(super) fn part_rows(&self, values: usize) -> usize {
        self.len().div_ceil(parts(values)).max(1)
    }
}

/// Refuses more clusters than there are things to put into them, and none.
pub(crate) fn check_clusters(clusters: usize, n: usize) -> Result<(), LearnError> {
    match clusters {
        0 => Err(LearnError::Unsuitable("0 clusters hold nothing: ask for at least 1".into())),
        k if k > n => Err(LearnError::Unsuitable(format!(
            "{n} items cannot fill {k} clusters: ask for fewer clusters (--clusters) or give more images"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_clusters_is_refused_in_a_sentence() {
        let values = [0.0, 1.0, f32::NAN, 2.0];
        let refusal = |width, k| Points { values: &values, width }.check(k).unwrap_err().to_string();
        assert!(refusal(2, 2).starts_with("point 1 of 2 holds NaN"), "{}", refusal(2, 2));
        assert!(refusal(2, 3).starts_with("2 items cannot fill 3 clusters"), "{}", refusal(2, 3));
        assert!(refusal(3, 1).contains("no whole points"));
        assert!(refusal(0, 1).contains("no whole points"));
        assert!(refusal(2, 0).contains("at least 1"));
    }

    #[test]
    fn the_mean_is_taken_away() {
        let values: Vec<f32> = (0..300).map(|i| (i % 3) as f32 + 1000.0 * (i / 3) as f32).collect();
        let (centred, mean) = Points { values: &values, width: 3 }.centred();
        assert_eq!(mean, [49_500.0, 49_501.0, 49_502.0]);
        assert_eq!(&centred[..3], [-49_500.0; 3]);
    }
}
