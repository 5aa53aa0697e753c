//! Overlaps from the projectors written out: `tr(P_a P_b)` is the inner product of their entries.
//!
//! The entries are made block by block and not kept; a block of all projectors fits the second-level cache.

use super::Sizes;
use crate::{
    buffer::Buffer,
    cpu::{
        isa::Isa,
        projector::{Block, Gram, Product, blocks_of, build, fold, from_panels, gram, pack, product, to_panels},
    },
    parallel::{for_each, part_len},
    scratch,
};

/// Values of `S` that are kept at a time in the backward pass.
pub(super) const BATCH: usize = 1 << 24;

/// The rows of all matrices in panels of columns.
pub(super) fn panels(isa: Isa, sizes: Sizes, v: &[f32]) -> Buffer {
    let mut panels = Buffer::take(v.len());
    let part = part_len(sizes.n) * sizes.padded_len();
    for_each(v.chunks(part).zip(panels.chunks_mut(part)), |(v, panels)| {
        for (v, panels) in v.chunks_exact(sizes.padded_len()).zip(panels.chunks_exact_mut(sizes.padded_len())) {
            to_panels(v, sizes.stride, isa.lanes(), panels);
        }
    });
    panels
}

/// One block of every projector, `[n][block]`.
fn build_all(isa: Isa, sizes: Sizes, block: Block, panels: &[f32], weighted: bool, out: &mut [f32]) {
    for (panels, out) in panels.chunks_exact(sizes.padded_len()).zip(out.chunks_exact_mut(block.len(isa.lanes()))) {
        build(isa, block, panels, sizes.rows, weighted, out);
    }
}

/// All `tr(P_a P_b)` as `[n][n]`.
pub(super) fn overlaps(isa: Isa, sizes: Sizes, panels: &[f32]) -> Vec<f32> {
    let (n, lanes) = (sizes.n, isa.lanes());
    let groups = n.div_ceil(lanes);
    let blocks = blocks_of(sizes.stride, lanes);
    let part = part_len(blocks.len());
    // Each part of the blocks has its own sums, `[group][row][lane]`; they are added in a fixed order afterwards.
    let length = groups * n * lanes;
    let mut overlaps = vec![0.0; n * n];
    scratch::with(blocks.len().div_ceil(part) * length, |sums| {
        for_each(blocks.chunks(part).zip(sums.chunks_exact_mut(length)), |(blocks, sums)| {
            sums.fill(0.0);
            for block in blocks {
                let width = block.len(lanes);
                scratch::with((n + lanes) * width, |scratch| {
                    let (matrix, scratch) = scratch.split_at_mut(n * width);
                    build_all(isa, sizes, *block, panels, true, matrix);
                    for (group, sums) in sums.chunks_exact_mut(n * lanes).enumerate() {
                        let (first, count) = (group * lanes, n.min((group + 1) * lanes));
                        gram(
                            isa,
                            Gram { matrix, stride: width, first, count, sums, add: true, scratch: &mut *scratch },
                        );
                    }
                });
            }
        });
        for a in 0..n {
            for b in a..n {
                let index = (b / lanes * n + a) * lanes + b % lanes;
                let overlap = sums.chunks_exact(length).map(|sums| sums[index]).sum();
                overlaps[a * n + b] = overlap;
                overlaps[b * n + a] = overlap;
            }
        }
    });
    overlaps
}

/// `V_a sum_b C_ab P_b` for every matrix.
pub(super) fn sums(isa: Isa, sizes: Sizes, panels: &[f32], others: &[f32], out: &mut [f32]) {
    let (n, lanes) = (sizes.n, isa.lanes());
    let blocks = blocks_of(sizes.stride, lanes);
    let largest = blocks.iter().map(|block| block.len(lanes)).max().unwrap_or(0);
    scratch::with(panels.len(), |totals| {
        totals.fill(0.0);
        for batch in blocks.chunks((BATCH / (n * largest)).max(1)) {
            add_batch(isa, sizes, panels, others, batch, totals);
        }
        let part = part_len(n) * sizes.padded_len();
        for_each(totals.chunks(part).zip(out.chunks_mut(part)), |(totals, out)| {
            let matrices = totals.chunks_exact(sizes.padded_len()).zip(out.chunks_exact_mut(sizes.padded_len()));
            for (totals, out) in matrices {
                from_panels(totals, sizes.stride, lanes, out);
            }
        });
    });
}

/// Adds the share of some blocks to `V_a S_a`, in panels.
fn add_batch(isa: Isa, sizes: Sizes, panels: &[f32], others: &[f32], batch: &[Block], totals: &mut [f32]) {
    let (n, lanes) = (sizes.n, isa.lanes());
    let largest = batch.iter().map(|block| block.len(lanes)).max().unwrap_or(0);
    scratch::with(batch.len() * n * largest, |weighted| {
        // A block of `S_a = sum_b C_ab P_b` for every matrix at once ...
        for_each(batch.iter().zip(weighted.chunks_exact_mut(n * largest)), |(block, out)| {
            let width = block.len(lanes);
            scratch::with(2 * n * width, |scratch| {
                let (matrix, packed) = scratch.split_at_mut(n * width);
                build_all(isa, sizes, *block, panels, false, matrix);
                for (column, packed) in packed.chunks_exact_mut(n * lanes).enumerate() {
                    pack(matrix, width, column, packed, lanes);
                }
                let out = &mut out[..n * width];
                let job = Product { a: others, a_stride: n, depth: n, b: packed, out, columns: width };
                product(isa, job);
            });
        });
        // ... and then its share of `V_a S_a`, matrix by matrix.
        let weighted = &*weighted;
        let part = part_len(n);
        let length = sizes.padded_len();
        let jobs = panels.chunks(part * length).zip(totals.chunks_mut(part * length));
        for_each(jobs.enumerate(), |(index, (panels, totals))| {
            let matrices = panels.chunks_exact(length).zip(totals.chunks_exact_mut(length));
            for (a, (panels, totals)) in (index * part..).zip(matrices) {
                for (block, weighted) in batch.iter().zip(weighted.chunks_exact(n * largest)) {
                    let width = block.len(lanes);
                    fold(isa, *block, panels, sizes.rows, &weighted[a * width..][..width], totals);
                }
            }
        });
    });
}
