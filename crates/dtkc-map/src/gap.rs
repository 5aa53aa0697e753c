//! How far two groups of points are apart, and whether one group falls into two.

use crate::random::Random;

/// Bars of a histogram.
const BARS: usize = 25;
/// Rounds of two-means; it has settled long before.
const ROUNDS: usize = 30;
/// Starts of two-means, of which the tightest counts.
const STARTS: u64 = 4;

/// Two groups along the line through their middles.
///
/// `width` is the distance of the middles over the spread of the groups along that line, `|a - b| / sqrt((sa^2 + sb^2) / 2)`.
/// One round heap of points that is cut through its middle gives 2.65, an even band 3.46, and groups with nothing between
/// them much more.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// How far the groups are apart, in spreads.
    pub width: f64,
    /// Points of the first group along the line, counted in bars of equal width.
    pub first: Vec<u32>,
    /// The same for the second.
    pub second: Vec<u32>,
}

impl Gap {
    /// Between two groups of rows of `values` `[n, width]`; `None` where a group has fewer than two points or both have one middle.
    pub fn between(values: &[f32], width: usize, first: &[u32], second: &[u32]) -> Option<Self> {
        if first.len() < 2 || second.len() < 2 {
            return None;
        }
        let (from, to) = (middle(values, width, first), middle(values, width, second));
        let line: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
        let length = line.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length.is_nan() || length <= 0.0 {
            return None;
        }
        let along = |items: &[u32]| -> Vec<f64> {
            let along = |&item: &u32| {
                let point = point(values, width, item).iter().zip(from.iter().zip(&line));
                point.map(|(&x, (from, line))| (f64::from(x) - from) * line).sum::<f64>() / length
            };
            items.iter().map(along).collect()
        };
        let (first, second) = (along(first), along(second));
        let spread = f64::midpoint(variance(&first), variance(&second)).sqrt();
        // Groups of copies have no spread at all, and nothing is further apart.
        let apart = length / spread.max(length * 1e-6);
        let (low, high) =
            first.iter().chain(&second).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
        Some(Self { width: apart, first: histogram(&first, low, high), second: histogram(&second, low, high) })
    }
}

/// A group that was cut in two.
#[derive(Debug, Clone, PartialEq)]
pub struct Halves {
    /// Rows of the larger part.
    pub first: Vec<u32>,
    /// Rows of the smaller one.
    pub second: Vec<u32>,
}

/// Cuts a group of rows of `values` in two by two-means; `None` where there are fewer than four rows or all are the same.
pub fn halves(values: &[f32], width: usize, group: &[u32], seed: u64) -> Option<Halves> {
    if group.len() < 4 {
        return None;
    }
    let runs = (0..STARTS).filter_map(|start| two_means(values, width, group, Random::at(seed, start, 0)));
    let (_, is_second) = runs.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let part = |wanted: bool| {
        group.iter().zip(&is_second).filter(move |(_, second)| **second == wanted).map(|(&item, _)| item)
    };
    let (a, b): (Vec<u32>, Vec<u32>) = (part(false).collect(), part(true).collect());
    let (first, second) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    (!second.is_empty()).then_some(Halves { first, second })
}

/// The sum of squares within the two parts, and who is in the second.
fn two_means(values: &[f32], width: usize, group: &[u32], mut random: Random) -> Option<(f64, Vec<bool>)> {
    let as_centre = |item: u32| point(values, width, item).iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let start = as_centre(group[random.below(group.len())]);
    // The second centre is drawn by the square of the distance, as in k-means++.
    let squares: Vec<f64> = group.iter().map(|&item| square(point(values, width, item), &start)).collect();
    let mut left = f64::from(random.unit()) * squares.iter().sum::<f64>();
    let far = squares.iter().position(|square| {
        left -= square;
        left < 0.0
    })?;
    let mut centres = [start, as_centre(group[far])];
    let (mut is_second, mut total) = (vec![false; group.len()], f64::INFINITY);
    for _ in 0..ROUNDS {
        let mut sum = 0.0;
        for (&item, second) in group.iter().zip(&mut is_second) {
            let own = point(values, width, item);
            let (a, b) = (square(own, &centres[0]), square(own, &centres[1]));
            (*second, sum) = (b < a, sum + a.min(b));
        }
        if sum >= total {
            break;
        }
        total = sum;
        for (part, centre) in centres.iter_mut().enumerate() {
            let items: Vec<u32> = group
                .iter()
                .zip(&is_second)
                .filter(|(_, second)| **second == (part == 1))
                .map(|(&item, _)| item)
                .collect();
            if !items.is_empty() {
                *centre = middle(values, width, &items);
            }
        }
    }
    Some((total, is_second))
}

pub(crate) fn point(values: &[f32], width: usize, item: u32) -> &[f32] {
    &values[item as usize * width..][..width]
}

fn square(point: &[f32], centre: &[f64]) -> f64 {
    point.iter().zip(centre).map(|(&x, c)| (f64::from(x) - c).powi(2)).sum()
}

pub(crate) fn middle(values: &[f32], width: usize, items: &[u32]) -> Vec<f64> {
    let mut sum = vec![0.0; width];
    for &item in items {
        sum.iter_mut().zip(point(values, width, item)).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    sum.iter_mut().for_each(|sum| *sum /= items.len().max(1) as f64);
    sum
}

/// The variance of a sample (n - 1).
fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

fn histogram(values: &[f64], low: f64, high: f64) -> Vec<u32> {
    let mut bars = vec![0; BARS];
    for value in values {
        let at = (value - low) / (high - low).max(f64::MIN_POSITIVE) * BARS as f64;
        bars[(at as usize).min(BARS - 1)] += 1;
    }
    bars
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Two heaps in the plane, the second `apart` to the right.
    fn heaps(apart: f32) -> Vec<f32> {
        let mut random = Random::at(3, 0, 0);
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f32>() - 6.0;
        (0..400).flat_map(|i| [normal() + if i % 2 == 1 { apart } else { 0.0 }, normal()]).collect()
    }

    #[test]
    fn two_heaps_are_found_and_one_is_no_wider_than_a_cut_heap() {
        let all: Vec<u32> = (0..400).collect();
        let width = |apart: f32| {
            let values = heaps(apart);
            let parts = halves(&values, 2, &all, 1).unwrap();
            assert_eq!(parts.first.len() + parts.second.len(), 400);
            (Gap::between(&values, 2, &parts.first, &parts.second).unwrap().width, parts)
        };
        let (one, _) = width(0.0);
        assert!((2.2..3.2).contains(&one), "{one}: a normal heap that is cut in two has 2.65");
        let (two, parts) = width(9.0);
        assert!(two > 7.0, "{two}");
        assert!(parts.first.iter().all(|item| item % 2 == parts.first[0] % 2), "each heap is a half");
    }

    #[test]
    fn what_cannot_be_cut_is_left_whole() {
        assert_eq!(halves(&[1.0; 40], 2, &(0..20).collect::<Vec<_>>(), 1), None);
        assert_eq!(halves(&[1.0, 2.0, 3.0], 1, &[0, 1, 2], 1), None);
        assert_eq!(Gap::between(&[1.0, 1.0, 1.0, 1.0], 1, &[0, 1], &[2, 3]), None);
        assert_eq!(Gap::between(&[1.0, 2.0, 3.0], 1, &[0], &[1, 2]), None);
        // Copies: nothing is further apart, and it is a number.
        let copies = Gap::between(&[1.0, 1.0, 5.0, 5.0], 1, &[0, 1], &[2, 3]).unwrap();
        assert!(copies.width.is_finite() && copies.width > 1e5);
        assert_eq!((copies.first[0], copies.second[BARS - 1]), (2, 2));
    }
}
