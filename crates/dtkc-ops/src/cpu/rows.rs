//! Rows of numbers, one by one: their distance from a row of another list, their sums by label.

use super::isa::{fma, per_isa};

/// Lanes of a distance: several vectors of any instruction set, so that additions need not wait for each other.
const LANES: usize = 32;

/// Points and the row that each is measured against.
pub(crate) struct Distances<'a> {
    /// `points x width`.
    pub(crate) points: &'a [f32],
    pub(crate) width: usize,
    /// `rows x width`.
    pub(crate) rows: &'a [f32],
    /// Which row, for every point.
    pub(crate) labels: &'a [u32],
    /// Square of the distance, for every point.
    pub(crate) squares: &'a mut [f32],
}

/// Points that are added to the sums of their labels.
pub(crate) struct Additions<'a> {
    /// `points x width`.
    pub(crate) points: &'a [f32],
    pub(crate) width: usize,
    pub(crate) labels: &'a [u32],
    /// `labels x width`.
    pub(crate) sums: &'a mut [f64],
}

per_isa! {
    /// Squares of distances.
    pub(crate) fn distances(job: Distances<'_>) => distances_body;
}

per_isa! {
    /// Adds points to sums, in their order.
    pub(crate) fn add(job: Additions<'_>) => add_body;
}

#[inline(always)]
fn distances_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Distances<'_>) {
    let width = job.width;
    let points = job.points.chunks_exact(width).zip(job.labels);
    for ((point, &label), square) in points.zip(job.squares.iter_mut()) {
        let row = &job.rows[label as usize * width..][..width];
        let ((a, a_rest), (b, b_rest)) = (point.as_chunks::<LANES>(), row.as_chunks::<LANES>());
        let mut sums = [0f32; LANES];
        for (a, b) in a.iter().zip(b) {
            for l in 0..LANES {
                let difference = a[l] - b[l];
                sums[l] = fma::<FMA>(difference, difference, sums[l]);
            }
        }
        let rest = a_rest.iter().zip(b_rest).map(|(a, b)| f64::from(a - b) * f64::from(a - b)).sum::<f64>();
        *square = (sums.iter().map(|&sum| f64::from(sum)).sum::<f64>() + rest) as f32;
    }
}

#[inline(always)]
fn add_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Additions<'_>) {
    for (point, &label) in job.points.chunks_exact(job.width).zip(job.labels) {
        let sums = &mut job.sums[label as usize * job.width..][..job.width];
        for (sum, value) in sums.iter_mut().zip(point) {
            *sum += f64::from(*value);
        }
    }
}
