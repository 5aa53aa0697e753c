//! Inner products of the rows of a matrix with a few of its rows.

use crate::cpu::{
    isa::per_isa,
    tile::{blocks, dot, load, store, with_rows},
};

/// Rows of a matrix times some `L` of them.
pub(crate) struct Gram<'a> {
    /// `rows x stride`.
    pub(crate) matrix: &'a [f32],
    pub(crate) stride: usize,
    /// The first of the `L` rows; those beyond the matrix count as zero.
    pub(crate) first: usize,
    /// How many rows to multiply with them.
    pub(crate) count: usize,
    /// `count x L` sums.
    pub(crate) sums: &'a mut [f32],
    /// Whether to add to what the sums hold, or to overwrite it.
    pub(crate) add: bool,
    /// `stride x L` values of any content.
    pub(crate) scratch: &'a mut [f32],
}

per_isa! {
    /// `sums[i][l] = <row i, row first + l>`.
    pub(crate) fn gram(job: Gram<'_>) => gram_body;
}

/// Columns that are taken together: a block of the transposed rows that stays in the first-level cache.
const DEPTH: usize = 320;

#[inline(always)]
fn gram_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Gram<'_>) {
    let (matrix, stride) = (job.matrix, job.stride);
    let (panel, _) = job.scratch.as_chunks_mut::<L>();
    let panel = &mut panel[..stride];
    panel.fill([0.0; L]);
    for l in 0..L.min(matrix.len() / stride - job.first) {
        for (column, value) in panel.iter_mut().zip(&matrix[(job.first + l) * stride..][..stride]) {
            column[l] = *value;
        }
    }
    for (column, depth) in blocks(stride, DEPTH) {
        let panel = &panel[column..][..depth];
        for (i, rows) in blocks(job.count, P) {
            let values = (&matrix[i * stride + column..], stride);
            let add = job.add || column > 0;
            with_rows!(rows, P, gram_rows::<FMA, _, L>(values, panel, add, &mut job.sums[i * L..]));
        }
    }
}

#[inline(always)]
fn gram_rows<const FMA: bool, const R: usize, const L: usize>(
    (values, stride): (&[f32], usize),
    panel: &[[f32; L]],
    add: bool,
    sums: &mut [f32],
) {
    let init = if add { load(sums, L) } else { [[0.0; L]; R] };
    let tile = dot::<FMA, R, L>(values, stride, panel, init);
    store(&tile, sums, L);
}
