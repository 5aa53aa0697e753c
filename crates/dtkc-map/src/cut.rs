//! Where a group of points is cut in two.

use crate::gap::{halves, middle, point};

/// Two-means begins with draws from it: the same points are always cut at the same place.
const SEED: u64 = 0;
/// The variance along the direction is at least this part of the squared distance of the halves' middles.
const LEAST: f64 = 1e-4;

/// A plane between the two halves of a group: `z = direction . x + offset` is above 0 in the smaller one.
///
/// How sure a point is of its side, `1 / (1 + exp(-z))`, is what it would be if both were heaps of one width: the slope is the distance
/// of the middles over the variance along their line.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// What a point is multiplied with.
    pub direction: Vec<f32>,
    /// What is added then.
    pub offset: f32,
    /// Part of the group that is in the smaller half.
    pub share: f64,
}

impl Cut {
    /// Between the halves (two-means) of a group of rows of `values` `[n, width]`; `None` where there are fewer than four rows or all
    /// are the same.
    pub fn through(values: &[f32], width: usize, group: &[u32]) -> Option<Self> {
        let halves = halves(values, width, group, SEED)?;
        let (first, second) = (middle(values, width, &halves.first), middle(values, width, &halves.second));
        let line: Vec<f64> = second.iter().zip(&first).map(|(b, a)| b - a).collect();
        let square: f64 = line.iter().map(|value| value * value).sum();
        let along = |point: &[f64]| point.iter().zip(&line).map(|(value, part)| value * part).sum::<f64>();
        let spread = |part: &[u32], middle: &[f64]| {
            let middle = along(middle);
            let apart = part.iter().map(|&item| {
                let at = point(values, width, item).iter().zip(&line).map(|(&x, part)| f64::from(x) * part);
                (at.sum::<f64>() - middle).powi(2)
            });
            apart.sum::<f64>()
        };
        // Along the line itself, which is as long as the middles are apart.
        let sums = spread(&halves.first, &first) + spread(&halves.second, &second);
        let variance = (sums / group.len() as f64 / square).max(LEAST * square);
        let between = f64::midpoint(along(&first), along(&second));
        Some(Self {
            direction: line.iter().map(|part| (part / variance) as f32).collect(),
            offset: (-between / variance) as f32,
            share: halves.second.len() as f64 / group.len() as f64,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_cut_between_its_heaps() {
        // Six points around (0, 5) and four around (10, 5), each with a variance of .25 along the line; others far away.
        let heap = |x: f32, count: usize| (0..count).flat_map(move |i| [x + if i % 2 == 0 { 0.5 } else { -0.5 }, 5.0]);
        let values: Vec<f32> = heap(0.0, 6).chain(heap(10.0, 4)).chain(heap(100.0, 2)).collect();
        let cut = Cut::through(&values, 2, &(0..10).collect::<Vec<_>>()).unwrap();
        // By hand: z = (x - 5) 10 / .25.
        assert!((cut.direction[0] - 40.0).abs() < 1e-3 && cut.direction[1].abs() < 1e-3, "{cut:?}");
        assert!((cut.offset + 200.0).abs() < 1e-2, "{cut:?}");
        assert!((cut.share - 0.4).abs() < 1e-9, "{cut:?}");
    }

    #[test]
    fn too_few_points_and_copies_are_not_cut() {
        assert_eq!(Cut::through(&[1.0; 9], 1, &(0..9).collect::<Vec<_>>()), None);
        assert_eq!(Cut::through(&[1.0, 2.0, 3.0], 1, &[0, 1, 2]), None);
        // Two places, each taken twice: no spread, and still a plane of numbers.
        let cut = Cut::through(&[1.0, 1.0, 5.0, 5.0], 1, &[0, 1, 2, 3]).unwrap();
        assert!(cut.direction[0].is_finite() && cut.offset.is_finite(), "{cut:?}");
    }
}
