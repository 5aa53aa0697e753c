//! One matrix: Cholesky factor of its Gram matrix, orthonormal rows, and the gradient back through both. In f64,
//! because rank-deficient matrices are normal and the work is small.

use crate::cpu::isa::per_isa;

/// Ridge relative to the mean of the Gram matrix's diagonal.
pub(crate) const RIDGE: f64 = 1e-5;
/// Ridge of an all-zero matrix.
pub(crate) const RIDGE_FLOOR: f64 = 1e-6;

/// Lanes of an inner product.
const LANES: usize = 16;

/// One matrix to factor.
pub(crate) struct Factor<'a> {
    /// The matrix: `rows x columns`, or its transpose.
    pub(crate) x: &'a [f32],
    pub(crate) transposed: bool,
    pub(crate) columns: usize,
    /// `L` of `X X^T + e I = L L^T`, `rows x rows`.
    pub(crate) l: &'a mut [f64],
    /// `V = L^-1 X`, `rows x stride`, zero beyond the columns.
    pub(crate) v: &'a mut [f32],
    pub(crate) stride: usize,
    /// `rows x columns` values of any content.
    pub(crate) scratch: &'a mut [f64],
}

/// One matrix whose gradient is to be finished.
pub(crate) struct Finish<'a> {
    pub(crate) l: &'a [f64],
    pub(crate) v: &'a [f32],
    /// `V sum_b C_ab P_b` over the others, `rows x stride`.
    pub(crate) upstream: &'a [f32],
    /// `C_aa`.
    pub(crate) own: f64,
    pub(crate) stride: usize,
    pub(crate) columns: usize,
    /// The gradient in the layout of the input.
    pub(crate) dx: &'a mut [f32],
    pub(crate) transposed: bool,
    /// `2 rows x columns + 2 rows x rows` values of any content.
    pub(crate) scratch: &'a mut [f64],
}

per_isa! {
    /// Factors one matrix.
    pub(crate) fn factor(job: Factor<'_>) => factor_body;
}

per_isa! {
    /// `2 L^-T (U + C_aa V P) (I - P)`, the gradient to the matrix.
    pub(crate) fn finish(job: Finish<'_>) => finish_body;
}

#[inline(always)]
fn factor_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Factor<'_>) {
    let columns = job.columns;
    let rows = job.x.len() / columns;
    let x = &mut job.scratch[..rows * columns];
    read(job.x, job.transposed, columns, x);
    for i in 0..rows {
        for j in 0..=i {
            job.l[i * rows + j] = dot::<FMA>(&x[i * columns..][..columns], &x[j * columns..][..columns]);
        }
    }
    cholesky(job.l, rows);
    // Forward substitution, row by row.
    for i in 0..rows {
        let (done, rest) = x.split_at_mut(i * columns);
        let row = &mut rest[..columns];
        for (j, done) in done.chunks_exact(columns).enumerate() {
            add_scaled::<FMA>(row, -job.l[i * rows + j], done);
        }
        let scale = 1.0 / job.l[i * rows + i];
        let v = &mut job.v[i * job.stride..][..job.stride];
        for (v, value) in v.iter_mut().zip(row) {
            *value *= scale;
            *v = *value as f32;
        }
        v[columns..].fill(0.0);
    }
}

/// Adds the ridge and factors in place: `G + e I = L L^T` in the lower triangle.
#[inline(always)]
fn cholesky(l: &mut [f64], rows: usize) {
    let trace: f64 = (0..rows).map(|i| l[i * rows + i]).sum();
    let ridge = RIDGE * trace / rows as f64 + RIDGE_FLOOR;
    for j in 0..rows {
        for i in j..rows {
            let mut sum = l[i * rows + j];
            for k in 0..j {
                sum -= l[i * rows + k] * l[j * rows + k];
            }
            if i == j {
                // In exact arithmetic no pivot is below the ridge; rounding may put it there.
                l[j * rows + j] = (sum + ridge).max(ridge).sqrt();
            } else {
                l[i * rows + j] = sum / l[j * rows + j];
                l[j * rows + i] = 0.0;
            }
        }
    }
}

#[inline(always)]
fn finish_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Finish<'_>) {
    let (columns, stride) = (job.columns, job.stride);
    let rows = job.v.len() / stride;
    let (v, rest) = job.scratch.split_at_mut(rows * columns);
    let (u, rest) = rest.split_at_mut(rows * columns);
    let (own, rest) = rest.split_at_mut(rows * rows);
    let factors = &mut rest[..rows * rows];
    for i in 0..rows {
        widen(&job.v[i * stride..], &mut v[i * columns..][..columns]);
        widen(&job.upstream[i * stride..], &mut u[i * columns..][..columns]);
    }
    // (U + C_aa V P) (I - P) = U + (C_aa (N - N N) - U V^T) V with N = V V^T.
    for i in 0..rows {
        for j in 0..=i {
            let value = dot::<FMA>(&v[i * columns..][..columns], &v[j * columns..][..columns]);
            own[i * rows + j] = value;
            own[j * rows + i] = value;
        }
    }
    for i in 0..rows {
        for j in 0..rows {
            let square: f64 = (0..rows).map(|k| own[i * rows + k] * own[k * rows + j]).sum();
            let along = dot::<FMA>(&u[i * columns..][..columns], &v[j * columns..][..columns]);
            factors[i * rows + j] = job.own * (own[i * rows + j] - square) - along;
        }
    }
    for i in 0..rows {
        for j in 0..rows {
            let row = &mut u[i * columns..][..columns];
            add_scaled::<FMA>(row, factors[i * rows + j], &v[j * columns..][..columns]);
        }
    }
    // Back substitution with L^T, from the last row up.
    for i in (0..rows).rev() {
        let (head, done) = u.split_at_mut((i + 1) * columns);
        let row = &mut head[i * columns..];
        for (k, done) in done.chunks_exact(columns).enumerate() {
            add_scaled::<FMA>(row, -job.l[(i + 1 + k) * rows + i], done);
        }
        let scale = 1.0 / job.l[i * rows + i];
        for value in row {
            *value *= scale;
        }
    }
    write(u, job.transposed, columns, job.dx);
}

/// The matrix in f64, transposed where it came so.
#[inline(always)]
fn read(x: &[f32], transposed: bool, columns: usize, out: &mut [f64]) {
    if !transposed {
        return widen(x, out);
    }
    let rows = x.len() / columns;
    for (i, out) in out.chunks_exact_mut(columns).enumerate() {
        for (out, value) in out.iter_mut().zip(x[i..].iter().step_by(rows)) {
            *out = f64::from(*value);
        }
    }
}

/// Twice the values in f32, transposed back where they came so.
#[inline(always)]
fn write(values: &[f64], transposed: bool, columns: usize, out: &mut [f32]) {
    if !transposed {
        for (out, value) in out.iter_mut().zip(values) {
            *out = (2.0 * value) as f32;
        }
        return;
    }
    let rows = values.len() / columns;
    for (j, out) in out.chunks_exact_mut(rows).enumerate() {
        for (out, value) in out.iter_mut().zip(values[j..].iter().step_by(columns)) {
            *out = (2.0 * value) as f32;
        }
    }
}

#[inline(always)]
fn widen(from: &[f32], to: &mut [f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f64::from(*from);
    }
}

#[inline(always)]
fn multiply_add<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Inner product with a fixed order of summation.
#[inline(always)]
fn dot<const FMA: bool>(a: &[f64], b: &[f64]) -> f64 {
    let ((a_lanes, a_rest), (b_lanes, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for l in 0..LANES {
            sums[l] = multiply_add::<FMA>(a[l], b[l], sums[l]);
        }
    }
    let mut total = 0.0;
    for sum in sums {
        total += sum;
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        total = multiply_add::<FMA>(*a, *b, total);
    }
    total
}

/// `row += factor * other`.
#[inline(always)]
fn add_scaled<const FMA: bool>(row: &mut [f64], factor: f64, other: &[f64]) {
    for (value, other) in row.iter_mut().zip(other) {
        *value = multiply_add::<FMA>(factor, *other, *value);
    }
}
