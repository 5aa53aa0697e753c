//! Overlaps from the rows of all matrices stacked: `tr(P_a P_b)` is the sum of the squares of the block `V_a V_b^T`.
//!
//! The inner products are kept for the backward pass in panels of `lanes` columns, `[panel][row][lane]`; they are
//! symmetric, so a panel holds the rows up to its own matrices only.

use super::Sizes;
use crate::{
    buffer::Buffer,
    cpu::{
        isa::Isa,
        projector::{Gram, Product, gram, pack, product},
    },
    parallel::{for_each, part_len},
    scratch,
};

/// Rows that a panel holds: up to the last matrix that it has a column of.
fn held(sizes: Sizes, panel: usize, lanes: usize) -> usize {
    let last = ((panel + 1) * lanes - 1).min(sizes.n * sizes.rows - 1);
    (last / sizes.rows + 1) * sizes.rows
}

/// All `tr(P_a P_b)` as `[n][n]`, and the panels.
pub(super) fn overlaps(isa: Isa, sizes: Sizes, v: &[f32]) -> (Vec<f32>, Buffer) {
    let (n, lanes, stacked) = (sizes.n, isa.lanes(), sizes.n * sizes.rows);
    let panels = stacked.div_ceil(lanes);
    let mut products = Buffer::take(panels * stacked * lanes);
    let mut squares = vec![0.0; panels * n * lanes];
    let jobs = products.chunks_exact_mut(stacked * lanes).zip(squares.chunks_exact_mut(n * lanes)).enumerate();
    // The last panels hold most rows: starting with them keeps the threads busy to the end.
    for_each(jobs.rev(), |(panel, (products, squares))| {
        let count = held(sizes, panel, lanes);
        let sums = &mut products[..count * lanes];
        scratch::with(sizes.stride * lanes, |scratch| {
            let (stride, first) = (sizes.stride, panel * lanes);
            gram(isa, Gram { matrix: v, stride, first, count, sums: &mut *sums, add: false, scratch });
        });
        for (squares, rows) in squares.chunks_exact_mut(lanes).zip(sums.chunks_exact(sizes.rows * lanes)) {
            for row in rows.chunks_exact(lanes) {
                for (square, value) in squares.iter_mut().zip(row) {
                    *square += value * value;
                }
            }
        }
    });
    let mut overlaps = vec![0.0; n * n];
    for a in 0..n {
        for b in a..n {
            let columns = b * sizes.rows..(b + 1) * sizes.rows;
            let overlap = columns.map(|column| squares[(column / lanes * n + a) * lanes + column % lanes]).sum();
            overlaps[a * n + b] = overlap;
            overlaps[b * n + a] = overlap;
        }
    }
    (overlaps, products)
}

/// `V_a sum_b C_ab P_b` for every matrix: row `i` of it is `sum_k C_ab(k) <v_i, v_k> v_k` over all stacked rows.
pub(super) fn sums(isa: Isa, sizes: Sizes, (v, products): (&[f32], &[f32]), others: &[f32], out: &mut [f32]) {
    let (lanes, stacked) = (isa.lanes(), sizes.n * sizes.rows);
    let part = part_len(sizes.n);
    scratch::with(stacked * sizes.stride, |packed| {
        for_each(packed.chunks_exact_mut(stacked * lanes).enumerate(), |(block, packed)| {
            pack(v, sizes.stride, block, packed, lanes);
        });
        let packed = &*packed;
        for_each(out.chunks_mut(part * sizes.padded_len()).enumerate(), |(index, out)| {
            let images = out.len() / sizes.padded_len();
            scratch::with((images * sizes.rows + 1) * stacked, |scratch| {
                let (factors, rest) = scratch.split_at_mut(stacked);
                for (image, weights) in rest.chunks_exact_mut(sizes.rows * stacked).enumerate() {
                    let a = index * part + image;
                    let row = &others[a * sizes.n..][..sizes.n];
                    for (factors, factor) in factors.chunks_exact_mut(sizes.rows).zip(row) {
                        factors.fill(*factor);
                    }
                    weigh(sizes, a, products, factors, lanes, weights);
                }
                let a = &rest[..images * sizes.rows * stacked];
                let job = Product { a, a_stride: stacked, depth: stacked, b: packed, out, columns: sizes.stride };
                product(isa, job);
            });
        });
    });
}

/// The inner products of the rows of matrix `a` with all stacked rows, each times the factor of the latter.
fn weigh(sizes: Sizes, a: usize, products: &[f32], factors: &[f32], lanes: usize, out: &mut [f32]) {
    let (rows, stacked) = (sizes.rows, sizes.n * sizes.rows);
    let first = a * rows / lanes;
    // From the panels of its own columns on, its rows are held.
    for (panel, values) in products.chunks_exact(stacked * lanes).enumerate().skip(first) {
        let columns = panel * lanes..((panel + 1) * lanes).min(stacked);
        for (row, values) in values.chunks_exact(lanes).skip(a * rows).take(rows).enumerate() {
            let out = &mut out[row * stacked..][columns.clone()];
            for ((out, value), factor) in out.iter_mut().zip(values).zip(&factors[columns.clone()]) {
                *out = value * factor;
            }
        }
    }
    // Before them, the other triangle: its columns.
    for row in 0..rows {
        let (panel, lane) = ((a * rows + row) / lanes, (a * rows + row) % lanes);
        let values = &products[panel * stacked * lanes..];
        let out = &mut out[row * stacked..][..first * lanes];
        for ((out, value), factor) in out.iter_mut().zip(values.chunks_exact(lanes)).zip(factors) {
            *out = value[lane] * factor;
        }
    }
}
