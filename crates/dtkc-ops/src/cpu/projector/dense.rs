//! Projectors written out as `d x d` matrices, block by block: only blocks on and above the diagonal.

use crate::cpu::{
    isa::per_isa,
    tile::{Tile, dot, load, outer, store},
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

per_isa! {
    /// A block of `V^T V`, as `lanes x width`; with `weighted`, entries that stand for two are scaled by sqrt 2, so
    /// that the inner product of two such blocks counts them twice.
    pub(crate) fn build(block: Block, v: &[f32], stride: usize, weighted: bool, out: &mut [f32]) => build_body;
}

per_isa! {
    /// Adds what a block of a symmetric `S` gives to `V S`: the block itself and its mirror image.
    pub(crate) fn fold(block: Block, v: &[f32], stride: usize, s: &[f32], sums: &mut [f32], scratch: &mut [f32])
        => fold_body;
}

#[inline(always)]
fn build_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    block: Block,
    v: &[f32],
    stride: usize,
    weighted: bool,
    out: &mut [f32],
) {
    let rows = v.len() / stride;
    for offset in (0..block.width).step_by(L) {
        let columns = (&v[block.column + offset..], stride);
        let double = weighted && block.column + offset != block.row;
        for i in (0..L).step_by(4) {
            let tile = outer::<FMA, 4, L>((&v[block.row + i..], stride), columns, rows, [[0.0; L]; 4]);
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
    v: &[f32],
    stride: usize,
    s: &[f32],
    sums: &mut [f32],
    scratch: &mut [f32],
) {
    let rows = v.len() / stride;
    let (lines, _) = scratch.as_chunks_mut::<L>();
    for offset in (0..block.width).step_by(L) {
        let column = block.column + offset;
        // sums[:, column..] += V[:, row..] S[row.., column..]
        let lines = &mut lines[..L];
        for (i, line) in lines.iter_mut().enumerate() {
            *line = *crate::cpu::chunk(&s[i * block.width + offset..]);
        }
        add_products::<FMA, L>(&v[block.row..], lines, &mut sums[column..], stride, rows);
        if column == block.row {
            continue;
        }
        // sums[:, row..] += V[:, column..] S[row.., column..]^T
        for (j, line) in lines.iter_mut().enumerate() {
            for (i, value) in line.iter_mut().enumerate() {
                *value = s[i * block.width + offset + j];
            }
        }
        add_products::<FMA, L>(&v[column..], lines, &mut sums[block.row..], stride, rows);
    }
}

/// `sums += v lines` for matrices that share a stride.
#[inline(always)]
fn add_products<const FMA: bool, const L: usize>(
    v: &[f32],
    lines: &[[f32; L]],
    sums: &mut [f32],
    stride: usize,
    rows: usize,
) {
    let mut i = 0;
    while i + 4 <= rows {
        let tile: Tile<4, L> = load(&sums[i * stride..], stride);
        store(&dot::<FMA, 4, L>(&v[i * stride..], stride, lines, tile), &mut sums[i * stride..], stride);
        i += 4;
    }
    while i < rows {
        let tile: Tile<1, L> = load(&sums[i * stride..], stride);
        store(&dot::<FMA, 1, L>(&v[i * stride..], stride, lines, tile), &mut sums[i * stride..], stride);
        i += 1;
    }
}
