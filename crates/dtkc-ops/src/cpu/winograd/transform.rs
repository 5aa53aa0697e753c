//! The one-dimensional transforms of Winograd's convolution on 8 points.
//!
//! Products of polynomials of degree 7 are taken at the points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity (Cook-Toom).
//! With `m = 9 - k` outputs per tile: `y = A^T [(G w) * (B^T d)]` for the 8 inputs `d`, the `k` weights `w` and the
//! `m` outputs `y`; a backward pass is the same with every matrix transposed. The points come in pairs of opposite
//! sign, so each pair shares its even and odd halves.

use super::super::{isa::unrolled, lane::Lane};

/// Points of the transform: values per axis of a tile.
pub(crate) const POINTS: usize = 8;

/// The positive one of each pair of points.
const PAIRS: [f32; 3] = [1.0, 2.0, 0.5];

/// Their powers 0 to 7.
const POWERS: [[f32; POINTS]; 3] = [
    [1.0; POINTS],
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0],
    [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125],
];

/// Product and negated sum of the squares of the two other pairs: the coefficients of
/// `(x^2 - b^2)(x^2 - c^2) = x^4 + SUMS x^2 + PRODUCTS`.
const PRODUCTS: [f32; 3] = [1.0, 0.25, 4.0];
const SUMS: [f32; 3] = [-4.25, -1.25, -5.0];

/// `(x^2 - 1)(x^2 - 4)(x^2 - 1/4) = x^6 - 5.25 x^4 + 5.25 x^2 - 1`.
const WHOLE: f32 = 5.25;

/// `B^T d`: 8 inputs at the 8 points.
#[inline(always)]
pub(crate) fn input<const FMA: bool, const W: usize>(d: [Lane<W>; POINTS]) -> [Lane<W>; POINTS] {
    let mut out = [Lane::ZERO; POINTS];
    out[0] = d[2].minus(d[4]).times_plus::<FMA>(WHOLE, d[6].minus(d[0]));
    unrolled!(PAIR in 0..3 {
        let (product, sum) = (PRODUCTS[PAIR], SUMS[PAIR]);
        let even = d[2].times_plus::<FMA>(product, d[4].times_plus::<FMA>(sum, d[6]));
        let odd = d[1].times_plus::<FMA>(product, d[3].times_plus::<FMA>(sum, d[5]));
        out[2 * PAIR + 1] = odd.times_plus::<FMA>(PAIRS[PAIR], even);
        out[2 * PAIR + 2] = odd.times_plus::<FMA>(-PAIRS[PAIR], even);
    });
    out[7] = d[3].minus(d[5]).times_plus::<FMA>(WHOLE, d[7].minus(d[1]));
    out
}

/// Sums and differences of the values at opposite points.
#[inline(always)]
fn halves<const W: usize>(v: &[Lane<W>; POINTS]) -> ([Lane<W>; 3], [Lane<W>; 3]) {
    let (mut sums, mut differences) = ([Lane::ZERO; 3], [Lane::ZERO; 3]);
    unrolled!(PAIR in 0..3 {
        sums[PAIR] = v[2 * PAIR + 1].plus(v[2 * PAIR + 2]);
        differences[PAIR] = v[2 * PAIR + 1].minus(v[2 * PAIR + 2]);
    });
    (sums, differences)
}

/// `B v`: the transpose of [`input`].
#[inline(always)]
pub(crate) fn input_transposed<const FMA: bool, const W: usize>(v: [Lane<W>; POINTS]) -> [Lane<W>; POINTS] {
    let (sums, differences) = halves(&v);
    let mut out = [Lane::ZERO; POINTS];
    out[0] = Lane::ZERO.minus(v[0]);
    out[7] = v[7];
    // Powers 2, 4, 6 meet the even halves, powers 1, 3, 5 the odd ones; `v[0]` and `v[7]` add their own polynomials.
    let mut even = [v[0].times_plus::<FMA>(WHOLE, Lane::ZERO), v[0].times_plus::<FMA>(-WHOLE, Lane::ZERO), v[0]];
    let mut odd =
        [Lane::ZERO.minus(v[7]), v[7].times_plus::<FMA>(WHOLE, Lane::ZERO), v[7].times_plus::<FMA>(-WHOLE, Lane::ZERO)];
    unrolled!(PAIR in 0..3 {
        let (product, sum, point) = (PRODUCTS[PAIR], SUMS[PAIR], PAIRS[PAIR]);
        even[0] = sums[PAIR].times_plus::<FMA>(product, even[0]);
        even[1] = sums[PAIR].times_plus::<FMA>(sum, even[1]);
        even[2] = sums[PAIR].plus(even[2]);
        odd[0] = differences[PAIR].times_plus::<FMA>(product * point, odd[0]);
        odd[1] = differences[PAIR].times_plus::<FMA>(sum * point, odd[1]);
        odd[2] = differences[PAIR].times_plus::<FMA>(point, odd[2]);
    });
    for power in 0..3 {
        out[2 * power + 1] = odd[power];
        out[2 * power + 2] = even[power];
    }
    out
}

/// `A^T v`: the 8 points back to `M` outputs.
#[inline(always)]
pub(crate) fn output<const FMA: bool, const M: usize, const W: usize>(v: [Lane<W>; POINTS]) -> [Lane<W>; M] {
    let (sums, differences) = halves(&v);
    let mut out = [Lane::ZERO; M];
    unrolled!(POWER in 0..M {
        let halves = if POWER.is_multiple_of(2) { sums } else { differences };
        let mut total = halves[0];
        if POWER == 0 {
            total = total.plus(v[0]);
        }
        if POWER + 1 == M {
            total = total.plus(v[7]);
        }
        total = halves[1].times_plus::<FMA>(POWERS[1][POWER], total);
        out[POWER] = halves[2].times_plus::<FMA>(POWERS[2][POWER], total);
    });
    out
}

/// `A y`: the transpose of [`output`].
#[inline(always)]
pub(crate) fn output_transposed<const FMA: bool, const M: usize, const W: usize>(y: [Lane<W>; M]) -> [Lane<W>; POINTS] {
    let mut out = [Lane::ZERO; POINTS];
    out[0] = y[0];
    out[7] = y[M - 1];
    unrolled!(PAIR in 0..3 {
        let (mut even, mut odd) = (y[0], y[1].times_plus::<FMA>(PAIRS[PAIR], Lane::ZERO));
        for power in 2..M {
            let half = if power % 2 == 0 { &mut even } else { &mut odd };
            *half = y[power].times_plus::<FMA>(POWERS[PAIR][power], *half);
        }
        out[2 * PAIR + 1] = even.plus(odd);
        out[2 * PAIR + 2] = even.minus(odd);
    });
    out
}

/// `G`, row by row, for `k` weights.
pub(crate) fn weight_matrix(k: usize) -> [Vec<f64>; POINTS] {
    let points = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5];
    std::array::from_fn(|row| match points.get(row) {
        Some(&point) => {
            let others = points.iter().enumerate().filter(|(other, _)| *other != row);
            let scale: f64 = others.map(|(_, other)| point - other).product();
            (0..k).map(|power| f64::powi(point, power as i32) / scale).collect()
        }
        None => (0..k).map(|power| if power + 1 == k { 1.0 } else { 0.0 }).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes<const N: usize>(values: [f32; N]) -> [Lane<1>; N] {
        values.map(|value| Lane([value]))
    }

    fn correlate<const M: usize>(k: usize) {
        let d: [f32; POINTS] = [0.3, -1.2, 0.7, 2.0, -0.4, 1.1, 0.9, -0.6];
        let w: Vec<f64> = (0..k).map(|i| [0.5, -1.0, 0.25, 2.0, -0.75, 0.1, 0.4][i]).collect();
        let g = weight_matrix(k).map(|row| row.iter().zip(&w).map(|(a, b)| a * b).sum::<f64>() as f32);
        let v = input::<false, 1>(lanes(d));
        let y = output::<false, M, 1>(std::array::from_fn(|i| Lane([v[i].0[0] * g[i]])));
        for (i, y) in y.iter().enumerate() {
            let expected: f64 = (0..k).map(|j| f64::from(d[i + j]) * w[j]).sum();
            assert!((f64::from(y.0[0]) - expected).abs() < 1e-5, "k {k} output {i}: {} {expected}", y.0[0]);
        }
    }

    #[test]
    fn the_transforms_compute_a_correlation() {
        correlate::<6>(3);
        correlate::<4>(5);
        correlate::<2>(7);
    }

    /// `<T a, b> = <a, T' b>` for every pair of unit vectors.
    #[test]
    fn the_transposed_transforms_are_transposes() {
        let unit = |i: usize| -> [f32; POINTS] { std::array::from_fn(|j| if i == j { 1.0 } else { 0.0 }) };
        for i in 0..POINTS {
            for j in 0..POINTS {
                let forward = input::<false, 1>(lanes(unit(i)))[j].0[0];
                let backward = input_transposed::<false, 1>(lanes(unit(j)))[i].0[0];
                assert_eq!(forward, backward, "input {i} {j}");
                if j < 4 {
                    let forward = output::<false, 4, 1>(lanes(unit(i)))[j].0[0];
                    let small: [f32; 4] = std::array::from_fn(|m| if m == j { 1.0 } else { 0.0 });
                    let backward = output_transposed::<false, 4, 1>(lanes(small))[i].0[0];
                    assert_eq!(forward, backward, "output {i} {j}");
                }
                if j < 6 {
                    let forward = output::<false, 6, 1>(lanes(unit(i)))[j].0[0];
                    let small: [f32; 6] = std::array::from_fn(|m| if m == j { 1.0 } else { 0.0 });
                    let backward = output_transposed::<false, 6, 1>(lanes(small))[i].0[0];
                    assert_eq!(forward, backward, "output {i} {j}");
                }
            }
        }
    }
}
