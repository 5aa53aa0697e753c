//! k-means of points in memory: the best of several starts.

use super::points::Points;
use super::seeding::first_centres;
use super::sums::Sums;
use crate::LearnError;
use crate::random::Random;

/// How to look for clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KmeansOptions {
    /// Number of clusters.
    pub clusters: usize,
    /// Starts, of which the one with the lowest inertia is kept; at least one is made.
    pub starts: usize,
    /// Most iterations of a start.
    pub iterations: usize,
    /// A start ends when the sum of the squared movements of its centres is at most this part of the mean variance of a
    /// value; 0 goes on until no label changes.
    pub tolerance: f64,
    /// Seed of the first centres.
    pub seed: u64,
}

/// Clusters of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Clustering {
    /// `[k, width]`. Where there are fewer different points than clusters, some centres are equal and have no points.
    pub centres: Vec<f32>,
    /// The nearest centre of every point.
    pub labels: Vec<u32>,
    /// Sum of the squared distances to the nearest centre.
    pub inertia: f64,
    /// Iterations that were made.
    pub iterations: usize,
}

/// k-means: k-means++, then Lloyd's iterations; the best of several starts by inertia. An empty cluster takes the point
/// that is farthest from its centre. The same bits for any number of threads.
///
/// `stop` is asked before every iteration.
pub fn kmeans(points: Points<'_>, options: &KmeansOptions, stop: &dyn Fn() -> bool) -> Result<Clustering, LearnError> {
    points.check(options.clusters)?;
    let (values, mean) = points.centred();
    let points = Points { values: &values, width: points.width };
    let limits = Limits { iterations: options.iterations, movement: options.tolerance * variance(points) };
    let mut best: Option<Clustering> = None;
    for start in 0..options.starts.max(1) {
        let mut random = Random::new(options.seed, b"kmeans++", start as u64);
        let first = first_centres(points, options.clusters, &mut random, stop)?;
        let centres = first.iter().flat_map(|&index| points.row(index)).copied().collect();
        let found = lloyd(points, centres, limits, stop)?;
        if best.as_ref().is_none_or(|best| found.inertia < best.inertia) {
            best = Some(found);
        }
    }
    best.map(|found| found.shifted(&mean)).ok_or(LearnError::Stopped)
}

/// Lloyd's iterations from given centres, `[k, width]`.
pub fn lloyd_from(
    points: Points<'_>,
    centres: Vec<f32>,
    iterations: usize,
    tolerance: f64,
    stop: &dyn Fn() -> bool,
) -> Result<Clustering, LearnError> {
    let given = Points { values: &centres, width: points.width };
    given.check(given.len())?;
    points.check(given.len())?;
    let (values, mean) = points.centred();
    let points = Points { values: &values, width: points.width };
    let limits = Limits { iterations, movement: tolerance * variance(points) };
    let mut centres = centres;
    for centre in centres.chunks_exact_mut(mean.len()) {
        centre.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
    }
    Ok(lloyd(points, centres, limits, stop)?.shifted(&mean))
}

/// When a start ends.
#[derive(Clone, Copy)]
struct Limits {
    iterations: usize,
    movement: f64,
}

impl Clustering {
    /// With the mean put back that was taken from the points.
    fn shifted(mut self, mean: &[f32]) -> Self {
        for centre in self.centres.chunks_exact_mut(mean.len()) {
            centre.iter_mut().zip(mean).for_each(|(value, mean)| *value += mean);
        }
        self
    }
}

/// Mean over the values of a point of their variance, for points whose mean is zero.
fn variance(points: Points<'_>) -> f64 {
    let (lanes, rest) = points.values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for chunk in lanes {
        sums.iter_mut().zip(chunk).for_each(|(sum, &value)| *sum += f64::from(value) * f64::from(value));
    }
    let sum = sums.iter().sum::<f64>() + rest.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>();
    sum / points.values.len() as f64
}

fn lloyd(
    points: Points<'_>,
    mut centres: Vec<f32>,
    limits: Limits,
    stop: &dyn Fn() -> bool,
) -> Result<Clustering, LearnError> {
    let (mut labels, mut before) = (vec![0; points.len()], vec![u32::MAX; points.len()]);
    let mut squares = vec![0.0; points.len()];
    let mut iterations = 0;
    while iterations < limits.iterations {
        if stop() {
            return Err(LearnError::Stopped);
        }
        let mut sums = Sums::of(points, &centres, &mut labels, &mut squares);
        let repaired = fill_empty(points, &mut sums, &labels, &squares);
        let moved = sums.move_centres(&mut centres);
        iterations += 1;
        // Equal labels have equal means: the centres did not move, so what was measured is still true.
        if labels == before && !repaired {
            return Ok(Clustering { centres, labels, inertia: sums.squares, iterations });
        }
        std::mem::swap(&mut labels, &mut before);
        if moved <= limits.movement {
            break;
        }
    }
    let sums = Sums::of(points, &centres, &mut labels, &mut squares);
    Ok(Clustering { centres, labels, inertia: sums.squares, iterations })
}

/// Gives every empty cluster the point that is farthest from its centre, where there is one away from its centre.
fn fill_empty(points: Points<'_>, sums: &mut Sums, labels: &[u32], squares: &[f32]) -> bool {
    let empty = sums.empty();
    if empty.is_empty() {
        return false;
    }
    let mut far: Vec<usize> = (0..squares.len()).filter(|&point| squares[point] > 0.0).collect();
    far.sort_by(|&a, &b| squares[b].total_cmp(&squares[a]).then(a.cmp(&b)));
    let mut far = far.into_iter();
    let mut filled = false;
    for cluster in empty {
        filled |= far.any(|point| sums.give(points.row(point), labels[point] as usize, cluster));
    }
    filled
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const NEVER: &dyn Fn() -> bool = &|| false;

    fn options(clusters: usize) -> KmeansOptions {
        KmeansOptions { clusters, starts: 5, iterations: 300, tolerance: 1e-4, seed: 3 }
    }

    #[test]
    fn separate_groups_are_found() {
        let values: Vec<f32> = (0..60).flat_map(|i| [(i % 3) as f32 * 10.0, (i / 3) as f32 * 0.01]).collect();
        let found = kmeans(Points { values: &values, width: 2 }, &options(3), NEVER).unwrap();
        assert!((0..60).all(|i| found.labels[i] == found.labels[i % 3]));
        // Twenty points 0.01 apart, three times: 3 * 0.01^2 * 20 (20^2 - 1) / 12.
        assert!((found.inertia - 3.0 * 1e-4 * 20.0 * 399.0 / 12.0).abs() < 1e-5, "{}", found.inertia);
    }

    #[test]
    fn an_empty_cluster_takes_the_farthest_point() {
        let values = [0.0, 1.0, 2.0, 3.0, 100.0];
        let points = Points { values: &values, width: 1 };
        // No point is nearest to the third centre.
        let found = lloyd_from(points, vec![0.0, 2.5, 1e6], 1, 0.0, NEVER).unwrap();
        assert_eq!(found.centres[2], 100.0);
        assert_eq!(found.labels[4], 2);
    }

    #[test]
    fn equal_points_leave_clusters_empty_and_end() {
        let values = [0.25; 40];
        let found = kmeans(Points { values: &values, width: 4 }, &options(3), NEVER).unwrap();
        assert_eq!((found.inertia, found.labels, found.centres), (0.0, vec![0; 10], vec![0.25; 12]));
        // Two different points for three clusters.
        let values = [1.0, 1.0, 2.0, 2.0, 1.0];
        let found = kmeans(Points { values: &values, width: 1 }, &options(3), NEVER).unwrap();
        assert_eq!(found.inertia, 0.0);
    }

    #[test]
    fn every_point_can_be_a_cluster() {
        let values = [5.0, 1.0, 9.0, 3.0];
        let found = kmeans(Points { values: &values, width: 1 }, &options(4), NEVER).unwrap();
        let mut labels = found.labels;
        labels.sort_unstable();
        assert_eq!((labels, found.inertia), (vec![0, 1, 2, 3], 0.0));
    }

    #[test]
    fn what_cannot_work_is_refused_and_a_stop_is_heard() {
        let points = Points { values: &[1.0, f32::INFINITY], width: 1 };
        assert!(kmeans(points, &options(1), NEVER).unwrap_err().to_string().contains("holds inf"));
        let points = Points { values: &[1.0, 2.0], width: 1 };
        assert!(kmeans(points, &options(3), NEVER).unwrap_err().to_string().contains("cannot fill 3"));
        assert!(lloyd_from(points, vec![f32::NAN], 5, 0.0, NEVER).unwrap_err().to_string().contains("NaN"));
        assert!(matches!(kmeans(points, &options(2), &|| true), Err(LearnError::Stopped)));
        assert!(matches!(lloyd_from(points, vec![0.0], 5, 0.0, &|| true), Err(LearnError::Stopped)));
    }

    #[test]
    fn more_starts_are_never_worse() {
        let mut random = Random::new(9, b"test....", 0);
        let values: Vec<f32> = (0..2000).map(|_| random.unit() as f32).collect();
        let points = Points { values: &values, width: 4 };
        let inertia =
            |starts, seed| kmeans(points, &KmeansOptions { starts, seed, ..options(12) }, NEVER).unwrap().inertia;
        let pairs: Vec<(f64, f64)> = (0..4).map(|seed| (inertia(8, seed), inertia(1, seed))).collect();
        assert!(pairs.iter().all(|(eight, one)| eight <= one), "{pairs:?}");
        assert!(pairs.iter().any(|(eight, one)| eight < one), "{pairs:?}");
    }
}
