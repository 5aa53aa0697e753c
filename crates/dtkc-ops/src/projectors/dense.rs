//! Overlaps from the projectors written out: `tr(P_a P_b)` is the inner product of their entries.
//!
//! The entries are made block by block and not kept; a block of all projectors fits the second-level cache.

use super::Sizes;
use crate::{
    cpu::{
        isa::Isa,
        projector::{Block, Gram, Product, blocks_of, build, fold, gram, pack, product},
    },
    parallel::{for_each, part_len},
    scratch,
};

/// Values of `S` that are kept at a time in the backward pass.
const BATCH: usize = 1 << 24;

/// One block of every projector, `[n][block]`.
fn build_all(isa: Isa, sizes: Sizes, block: Block, v: &[f32], weighted: bool, out: &mut [f32]) {
    for (v, out) in v.chunks_exact(sizes.padded_len()).zip(out.chunks_exact_mut(block.len(isa.lanes()))) {
        build(isa, block, v, sizes.stride, weighted, out);
    }
}

/// All `tr(P_a P_b)` as `[n][n]`.
pub(super) fn overlaps(isa: Isa, sizes: Sizes, v: &[f32]) -> Vec<f32> {
    let (n, lanes) = (sizes.n, isa.lanes());
    let panels = n.div_ceil(lanes);
    let blocks = blocks_of(sizes.stride, lanes);
    let part = part_len(blocks.len());
    // Each part of the blocks has its own sums, `[panel][row][lane]`; they are added in a fixed order afterwards.
    let length = panels * n * lanes;
    let mut overlaps = vec![0.0; n * n];
    scratch::with(blocks.len().div_ceil(part) * length, |sums| {
        for_each(blocks.chunks(part).zip(sums.chunks_exact_mut(length)), |(blocks, sums)| {
            sums.fill(0.0);
            for block in blocks {
                let width = block.len(lanes);
                scratch::with((n + lanes) * width, |scratch| {
                    let (matrix, scratch) = scratch.split_at_mut(n * width);
                    build_all(isa, sizes, *block, v, true, matrix);
                    for (panel, sums) in sums.chunks_exact_mut(n * lanes).enumerate() {
                        let (first, count) = (panel * lanes, n.min((panel + 1) * lanes));
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
pub(super) fn sums(isa: Isa, sizes: Sizes, v: &[f32], others: &[f32], out: &mut [f32]) {
    let (n, lanes) = (sizes.n, isa.lanes());
    let blocks = blocks_of(sizes.stride, lanes);
    let largest = blocks.iter().map(|block| block.len(lanes)).max().unwrap_or(0);
    out.fill(0.0);
    for batch in blocks.chunks((BATCH / (n * largest)).max(1)) {
        scratch::with(batch.len() * n * largest, |weighted| {
            // A block of `S_a = sum_b C_ab P_b` for every matrix at once ...
            for_each(batch.iter().zip(weighted.chunks_exact_mut(n * largest)), |(block, out)| {
                let width = block.len(lanes);
                scratch::with(2 * n * width, |scratch| {
                    let (matrix, packed) = scratch.split_at_mut(n * width);
                    build_all(isa, sizes, *block, v, false, matrix);
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
            let jobs = v.chunks(part * sizes.padded_len()).zip(out.chunks_mut(part * sizes.padded_len()));
            for_each(jobs.enumerate(), |(index, (v, out))| {
                scratch::with(lanes * lanes, |scratch| {
                    let matrices = v.chunks_exact(sizes.padded_len()).zip(out.chunks_exact_mut(sizes.padded_len()));
                    for (a, (v, out)) in (index * part..).zip(matrices) {
                        for (block, weighted) in batch.iter().zip(weighted.chunks_exact(n * largest)) {
                            let width = block.len(lanes);
                            let weighted = &weighted[a * width..][..width];
                            fold(isa, *block, v, sizes.stride, weighted, out, &mut *scratch);
                        }
                    }
                });
            });
        });
    }
}
