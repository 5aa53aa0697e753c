//! One matrix: Cholesky factor of its Gram matrix, orthonormal rows, and the gradient back through both.
//!
//! Factors and triangular solves are in f64, because rank-deficient matrices are normal; what is only multiplied is
//! in f32.

use super::double::{gram, substitute};
use crate::cpu::{
    isa::per_isa,
    tile::{blocks, dot_strided, load, store, with_rows},
};

/// Ridge relative to the mean of the Gram matrix's diagonal.
pub(crate) const RIDGE: f64 = 1e-5;
/// Ridge of an all-zero matrix.
pub(crate) const RIDGE_FLOOR: f64 = 1e-6;

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
    /// `rows x (columns + 1)` values of any content.
    pub(crate) scratch: &'a mut [f64],
}

/// One matrix whose gradient is to be finished.
pub(crate) struct Finish<'a> {
    pub(crate) l: &'a [f64],
    pub(crate) v: &'a [f32],
    /// `V sum_b C_ab P_b` over the others, `rows x stride`; overwritten.
    pub(crate) upstream: &'a mut [f32],
    /// `C_aa`.
    pub(crate) own: f64,
    pub(crate) stride: usize,
    pub(crate) columns: usize,
    /// The gradient in the layout of the input.
    pub(crate) dx: &'a mut [f32],
    pub(crate) transposed: bool,
    /// `rows x columns + rows x rows` values of any content.
    pub(crate) double: &'a mut [f64],
    /// `(stride + 3 rows) x padded rows` values of any content.
    pub(crate) single: &'a mut [f32],
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
    let (x, column) = job.scratch.split_at_mut(rows * columns);
    read(job.x, job.transposed, columns, x);
    gram::<FMA>(x, columns, job.l);
    cholesky::<FMA>(job.l, rows, column);
    // Forward substitution, row by row.
    for i in 0..rows {
        let (done, rest) = x.split_at_mut(i * columns);
        let row = &mut rest[..columns];
        substitute::<FMA>(row, &job.l[i * rows..][..i], done);
        let scale = 1.0 / job.l[i * rows + i];
        let v = &mut job.v[i * job.stride..][..job.stride];
        for (v, value) in v.iter_mut().zip(row) {
            *value *= scale;
            *v = *value as f32;
        }
        v[columns..].fill(0.0);
    }
}

/// Adds the ridge and factors in place: `G + e I = L L^T`, the upper triangle zero.
///
/// Column by column; `column` is scratch for one of them, so that the updates run along contiguous rows.
#[inline(always)]
fn cholesky<const FMA: bool>(l: &mut [f64], rows: usize, column: &mut [f64]) {
    let mut trace = 0.0;
    for i in 0..rows {
        trace += l[i * rows + i];
    }
    let ridge = RIDGE * trace / rows as f64 + RIDGE_FLOOR;
    for j in 0..rows {
        // In exact arithmetic no pivot is below the ridge; rounding may put it there.
        let root = (l[j * rows + j] + ridge).max(ridge).sqrt();
        let scale = 1.0 / root;
        l[j * rows + j] = root;
        l[j * rows + j + 1..(j + 1) * rows].fill(0.0);
        for i in j + 1..rows {
            column[i] = l[i * rows + j] * scale;
            l[i * rows + j] = column[i];
        }
        for i in j + 1..rows {
            substitute::<FMA>(&mut l[i * rows + j + 1..][..i - j], &[column[i]], &column[j + 1..=i]);
        }
    }
}

#[inline(always)]
fn finish_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Finish<'_>) {
    let (columns, stride) = (job.columns, job.stride);
    let rows = job.v.len() / stride;
    let padded = rows.next_multiple_of(L);
    let (transposed, rest) = job.single.split_at_mut(stride * padded);
    let (own, rest) = rest.split_at_mut(rows * padded);
    let (factors, rest) = rest.split_at_mut(rows * padded);
    let squares = &mut rest[..rows * padded];
    for (j, column) in transposed.chunks_exact_mut(padded).enumerate() {
        for (i, value) in column.iter_mut().enumerate() {
            *value = if i < rows { job.v[i * stride + j] } else { 0.0 };
        }
    }
    // (U + C_aa V P) (I - P) = U + (C_aa (N - N N) - U V^T) V with N = V V^T.
    multiply::<FMA, P, L>((job.v, stride), (transposed, padded), stride, false, (own, padded));
    multiply::<FMA, P, L>((own, padded), (own, padded), rows, false, (squares, padded));
    multiply::<FMA, P, L>((job.upstream, stride), (transposed, padded), stride, false, (factors, padded));
    let scale = job.own as f32;
    for ((factor, own), square) in factors.iter_mut().zip(&*own).zip(&*squares) {
        *factor = scale * (own - square) - *factor;
    }
    multiply::<FMA, P, L>((factors, padded), (job.v, stride), rows, true, (job.upstream, stride));
    // Back substitution with L^T, from the last row up.
    let (u, rest) = job.double.split_at_mut(rows * columns);
    let upper = &mut rest[..rows * rows];
    for i in 0..rows {
        for (value, from) in u[i * columns..][..columns].iter_mut().zip(&job.upstream[i * stride..]) {
            *value = f64::from(*from);
        }
        for k in 0..rows {
            upper[i * rows + k] = job.l[k * rows + i];
        }
    }
    for i in (0..rows).rev() {
        let (head, done) = u.split_at_mut((i + 1) * columns);
        let row = &mut head[i * columns..];
        substitute::<FMA>(row, &upper[i * rows + i + 1..][..rows - i - 1], done);
        let scale = 1.0 / upper[i * rows + i];
        for value in row {
            *value *= scale;
        }
    }
    write(u, job.transposed, columns, job.dx);
}

/// `out (+)= a b` for matrices with whole blocks of columns.
#[inline(always)]
fn multiply<const FMA: bool, const P: usize, const L: usize>(
    (a, a_stride): (&[f32], usize),
    (b, b_stride): (&[f32], usize),
    depth: usize,
    add: bool,
    (out, out_stride): (&mut [f32], usize),
) {
    for column in (0..out_stride).step_by(L) {
        for (i, rows) in blocks(out.len() / out_stride, P) {
            let a = (&a[i * a_stride..], a_stride);
            let out = (&mut out[i * out_stride + column..], out_stride);
            with_rows!(rows, P, multiply_rows::<FMA, _, L>(a, (&b[column..], b_stride), depth, add, out));
        }
    }
}

#[inline(always)]
fn multiply_rows<const FMA: bool, const R: usize, const L: usize>(
    a: (&[f32], usize),
    b: (&[f32], usize),
    depth: usize,
    add: bool,
    (out, out_stride): (&mut [f32], usize),
) {
    let init = if add { load(out, out_stride) } else { [[0.0; L]; R] };
    store(&dot_strided::<FMA, R, L>(a, b, depth, init), out, out_stride);
}

/// The matrix in f64, transposed where it came so.
#[inline(always)]
fn read(x: &[f32], transposed: bool, columns: usize, out: &mut [f64]) {
    if !transposed {
        for (out, value) in out.iter_mut().zip(x) {
            *out = f64::from(*value);
        }
        return;
    }
    let rows = x.len() / columns;
    for (j, column) in x.chunks_exact(rows).enumerate() {
        for (i, value) in column.iter().enumerate() {
            out[i * columns + j] = f64::from(*value);
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
    for (j, column) in out.chunks_exact_mut(rows).enumerate() {
        for (i, value) in column.iter_mut().enumerate() {
            *value = (2.0 * values[i * columns + j]) as f32;
        }
    }
}
