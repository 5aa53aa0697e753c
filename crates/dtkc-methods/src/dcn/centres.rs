//! Centres that follow the items given to them, one at a time.

use dtkc_core::{NamedArray, StateError, Values};

use crate::arrays;

/// Items that a centre is thought to stand for when it is new: it then moves slowly from the start.
const FIRST_COUNT: u64 = 100;

/// Centres and how many items each stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Centres {
    /// `[k, width]`.
    pub values: Vec<f32>,
    width: usize,
    counts: Vec<u64>,
}

impl Centres {
    /// New centres, `[k, width]`.
    pub fn new(values: Vec<f32>, width: usize) -> Self {
        let counts = vec![FIRST_COUNT; values.len() / width.max(1)];
        Self { values, width, counts }
    }

    /// Values of a centre.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The centre of a cluster.
    pub fn of(&self, cluster: usize) -> &[f32] {
        &self.values[cluster * self.width..][..self.width]
    }

    /// Gives a code to its nearest centre, which moves towards it by `(z - c) / count`; says which it is.
    pub fn take(&mut self, code: &[f32]) -> usize {
        let nearest = self.nearest(code);
        self.counts[nearest] += 1;
        let share = 1.0 / self.counts[nearest] as f32;
        let centre = &mut self.values[nearest * self.width..][..self.width];
        centre.iter_mut().zip(code).for_each(|(c, z)| *c += share * (z - *c));
        nearest
    }

    /// The nearest centre, of equally near ones the first.
    pub fn nearest(&self, code: &[f32]) -> usize {
        let square = |centre: &[f32]| centre.iter().zip(code).map(|(c, z)| (c - z) * (c - z)).sum::<f32>();
        let squares = self.values.chunks_exact(self.width).map(square).enumerate();
        squares.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(cluster, _)| cluster)
    }

    pub(super) fn save(&self) -> [NamedArray; 2] {
        [
            NamedArray::list("centres.counts", Values::U64(self.counts.clone())),
            NamedArray::list("centres.values", Values::F32(self.values.clone())),
        ]
    }

    pub(super) fn restore(&self, arrays: &[NamedArray]) -> Result<Self, StateError> {
        let counts = arrays::u64s(arrays, "centres.counts", Some(self.counts.len()))?;
        let values = arrays::f32s(arrays, "centres.values", Some(self.values.len()))?;
        Ok(Self { values, width: self.width, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_centre_moves_by_one_over_its_count() {
        let mut centres = Centres::new(vec![0.0, 0.0, 10.0, 0.0], 2);
        assert_eq!(centres.take(&[8.0, 2.02]), 1);
        // By hand: the 101st item moves the centre by 1 / 101 of the way.
        assert!((centres.of(1)[0] - (10.0 - 2.0 / 101.0)).abs() < 1e-6 && (centres.of(1)[1] - 0.02).abs() < 1e-6);
        assert_eq!(centres.of(0), [0.0, 0.0]);
        assert_eq!(centres.nearest(&[5.0, 0.0]), 1);
        let back = Centres::new(vec![0.0; 4], 2).restore(&centres.save());
        assert_eq!(back, Ok(centres));
    }
}
