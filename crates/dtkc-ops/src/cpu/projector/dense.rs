//! Projectors written out as `d x d` matrices, block by block: only blocks on and above the diagonal.

use crate::cpu::{
    isa::per_isa,
    tile::{Tile, blocks, dot, load, outer, store, with_rows},
};

/// Columns of a block at most.
const WIDTH: usize = 64;

/// A block of a symmetric matrix: `lanes` rows from `row` on, `width` columns from `column >= row` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) width: usize,
}

impl Block {
    /// Values of the block.
    pub(crate) fn len(&self, lanes: usize) -> usize {
        lanes * self.width
    }
}

/// The blocks of a `size x size` matrix; `size` is a multiple of `lanes`.
pub(crate) fn blocks_of(size: usize, lanes: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    for row in (0..size).step_by(lanes) {
        for column in (row..size).step_by(WIDTH) {
            blocks.push(Block { row, column, width: WIDTH.min(size - column) });
        }
    }
    blocks
}

/// The rows of `V` (`rows x stride`) in panels of `lanes` columns, `[panel][row][lane]`: a block then reads a few
/// contiguous pieces, whatever the size of the matrix.
pub(crate) fn to_panels(v: &[f32], stride: usize, lanes: usize, panels: &mut [f32]) {
    let rows = v.len() / stride;
    for (column, panel) in panels.chunks_exact_mut(rows * lanes).enumerate() {
        for (to, from) in panel.chunks_exact_mut(lanes).zip(v.chunks_exact(stride)) {
            to.copy_from_slice(&from[column * lanes..][..lanes]);
        }
    }
}

/// The inverse of [`to_panels`].
pub(crate) fn from_panels(panels: &[f32], stride: usize, lanes: usize, v: &mut [f32]) {
    let rows = v.len() / stride;
    for (column, panel) in panels.chunks_exact(rows * lanes).enumerate() {
        for (from, to) in panel.chunks_exact(lanes).zip(v.chunks_exact_mut(stride)) {
            to[column * lanes..][..lanes].copy_from_slice(from);
        }
    }
}

per_isa! {
    /// A block of `V^T V`, as `lanes x width`, from the panels of `V`; with `weighted`, entries that stand for two are
    /// scaled by sqrt 2, so that the inner product of two such blocks counts them twice.
    pub(crate) fn build(block: Block, panels: &[f32], rows: usize, weighted: bool, out: &mut [f32]) => build_body;
}

per_isa! {
    /// Adds what a block of a symmetric `S` gives to `V S`, both in panels: the block itself and its mirror image.
    pub(crate) fn fold(block: Block, panels: &[f32], rows: usize, s: &[f32], sums: &mut [f32]) => fold_body;
}

#[inline(always)]
fn build_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    block: Block,
    panels: &[f32],
    rows: usize,
    weighted: bool,
    out: &mut [f32],
) {
    let left = &panels[block.row * rows..][..rows * L];
    for offset in (0..block.width).step_by(L) {
        let column = block.column + offset;
        let right = (&panels[column * rows..][..rows * L], L);
        let double = weighted && column != block.row;
        for i in (0..L).step_by(4) {
            let tile = outer::<FMA, 4, L>((&left[i..], L), right, rows, [[0.0; L]; 4]);
            let tile = if double { scaled(tile) } else { tile };
            store(&tile, &mut out[i * block.width + offset..], block.width);
        }
    }
}

#[inline(always)]
fn scaled<const L: usize>(mut tile: Tile<4, L>) -> Tile<4, L> {
    for row in &mut tile {
        for value in row {
            *value *= std::f32::consts::SQRT_2;
        }
    }
    tile
}

#[inline(always)]
fn fold_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    block: Block,
    panels: &[f32],
    rows: usize,
    s: &[f32],
    sums: &mut [f32],
) {
    let mut lines = [[0.0; L]; L];
    for offset in (0..block.width).step_by(L) {
        let column = block.column + offset;
        // sums[:, column..] += V[:, row..] S[row.., column..]
        for (i, line) in lines.iter_mut().enumerate() {
            *line = *crate::cpu::chunk(&s[i * block.width + offset..]);
        }
        add_product::<FMA, P, L>(&panels[block.row * rows..], &lines, &mut sums[column * rows..], rows);
        if column == block.row {
            continue;
        }
        // sums[:, row..] += V[:, column..] S[row.., column..]^T
        for (j, line) in lines.iter_mut().enumerate() {
            for (i, value) in line.iter_mut().enumerate() {
                *value = s[i * block.width + offset + j];
            }
        }
        add_product::<FMA, P, L>(&panels[column * rows..], &lines, &mut sums[block.row * rows..], rows);
    }
}

/// `sums += panel lines` for one panel of each.
#[inline(always)]
fn add_product<const FMA: bool, const P: usize, const L: usize>(
    panel: &[f32],
    lines: &[[f32; L]],
    sums: &mut [f32],
    rows: usize,
) {
    for (i, count) in blocks(rows, P) {
        with_rows!(count, P, add_rows::<FMA, _, L>(&panel[i * L..], lines, &mut sums[i * L..]));
    }
}

#[inline(always)]
fn add_rows<const FMA: bool, const R: usize, const L: usize>(panel: &[f32], lines: &[[f32; L]], sums: &mut [f32]) {
    store(&dot::<FMA, R, L>(panel, L, lines, load(sums, L)), sums, L);
}
