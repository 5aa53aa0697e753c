//! Row operations in f64, each with a fixed order of summation.

/// Lanes of an inner product.
const LANES: usize = 8;

#[inline(always)]
fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Inner product.
#[inline(always)]
fn dot<const FMA: bool>(a: &[f64], b: &[f64]) -> f64 {
    dots::<FMA, 1, 1>([a], [b])[0][0]
}

/// Inner products of `R` with `S` rows of one length.
#[inline(always)]
fn dots<const FMA: bool, const R: usize, const S: usize>(a: [&[f64]; R], b: [&[f64]; S]) -> [[f64; S]; R] {
    let length = a[0].len();
    let whole = length / LANES;
    let mut a_lanes: [&[[f64; LANES]]; R] = [&[]; R];
    for (lanes, row) in a_lanes.iter_mut().zip(&a) {
        *lanes = &row.as_chunks::<LANES>().0[..whole];
    }
    let mut b_lanes: [&[[f64; LANES]]; S] = [&[]; S];
    for (lanes, row) in b_lanes.iter_mut().zip(&b) {
        *lanes = &row.as_chunks::<LANES>().0[..whole];
    }
    let mut sums = [[[0.0; LANES]; S]; R];
    for k in 0..whole {
        for i in 0..R {
            let a = a_lanes[i][k];
            for j in 0..S {
                let b = b_lanes[j][k];
                for l in 0..LANES {
                    sums[i][j][l] = multiply_add::<FMA>(a[l], b[l], sums[i][j][l]);
                }
            }
        }
    }
    let mut totals = [[0.0; S]; R];
    for i in 0..R {
        for j in 0..S {
            let mut total = halved(sums[i][j]);
            for (a, b) in a[i][whole * LANES..].iter().zip(&b[j][whole * LANES..]) {
                total = multiply_add::<FMA>(*a, *b, total);
            }
            totals[i][j] = total;
        }
    }
    totals
}

/// Sum of the lanes by halving: in sequence, the compiler would put the lanes of different sums together instead.
#[inline(always)]
fn halved(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] += lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Lower triangle of `X X^T`, and some more in steps of three columns.
#[inline(always)]
pub(super) fn gram<const FMA: bool>(x: &[f64], columns: usize, out: &mut [f64]) {
    let rows = x.len() / columns;
    let row = |i: usize| &x[i * columns..][..columns];
    for i in 0..rows {
        let mut j = 0;
        while j <= i {
            if j + 3 <= rows {
                out[i * rows + j..][..3]
                    .copy_from_slice(&dots::<FMA, 1, 3>([row(i)], [row(j), row(j + 1), row(j + 2)])[0]);
                j += 3;
            } else {
                out[i * rows + j] = dot::<FMA>(row(i), row(j));
                j += 1;
            }
        }
    }
}

/// `row -= sum_j factors[j] * others[j]`.
#[inline(always)]
pub(super) fn substitute<const FMA: bool>(row: &mut [f64], factors: &[f64], others: &[f64]) {
    let columns = row.len();
    let (fours, rest) = factors.as_chunks::<4>();
    for (others, factors) in others.chunks_exact(4 * columns).zip(fours) {
        let (a, b) = others.split_at(2 * columns);
        let ((a, b), (c, d)) = (a.split_at(columns), b.split_at(columns));
        for ((((value, a), b), c), d) in row.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let sum = multiply_add::<FMA>(-factors[0], *a, *value);
            let sum = multiply_add::<FMA>(-factors[1], *b, sum);
            let sum = multiply_add::<FMA>(-factors[2], *c, sum);
            *value = multiply_add::<FMA>(-factors[3], *d, sum);
        }
    }
    for (other, factor) in others.chunks_exact(columns).skip(4 * fours.len()).zip(rest) {
        for (value, other) in row.iter_mut().zip(other) {
            *value = multiply_add::<FMA>(-factor, *other, *value);
        }
    }
}
