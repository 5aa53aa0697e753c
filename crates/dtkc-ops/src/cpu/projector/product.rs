//! A plain matrix product with the right operand packed once.

use crate::cpu::{
    isa::per_isa,
    tile::{blocks, dot, load, store, with_rows},
};

/// `out = a b`, for some rows of `a`.
pub(crate) struct Product<'a> {
    /// `rows x a_stride`, of which `depth` columns count.
    pub(crate) a: &'a [f32],
    pub(crate) a_stride: usize,
    pub(crate) depth: usize,
    /// From [`pack`].
    pub(crate) b: &'a [f32],
    /// `rows x columns`, overwritten.
    pub(crate) out: &'a mut [f32],
    /// A multiple of the lanes.
    pub(crate) columns: usize,
}

per_isa! {
    /// Multiplies.
    pub(crate) fn product(job: Product<'_>) => product_body;
}

/// Rows of `b` that are taken together: a block that stays in the first-level cache.
const DEPTH: usize = 256;

/// One block of `lanes` columns of `b` (`depth x stride`) as `depth x lanes`.
pub(crate) fn pack(b: &[f32], stride: usize, block: usize, packed: &mut [f32], lanes: usize) {
    for (packed, row) in packed.chunks_exact_mut(lanes).zip(b.chunks_exact(stride)) {
        packed.copy_from_slice(&row[block * lanes..][..lanes]);
    }
}

#[inline(always)]
fn product_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Product<'_>) {
    let rows = job.out.len() / job.columns;
    let (b, _) = job.b.as_chunks::<L>();
    job.out.fill(0.0);
    for (start, depth) in blocks(job.depth, DEPTH) {
        for (block, b) in b.chunks_exact(job.depth).enumerate() {
            let b = &b[start..][..depth];
            for (i, count) in blocks(rows, P) {
                let a = &job.a[i * job.a_stride + start..];
                let out = &mut job.out[i * job.columns + block * L..];
                with_rows!(count, P, product_rows::<FMA, _, L>((a, job.a_stride), b, (out, job.columns)));
            }
        }
    }
}

#[inline(always)]
fn product_rows<const FMA: bool, const R: usize, const L: usize>(
    (a, a_stride): (&[f32], usize),
    b: &[[f32; L]],
    (out, columns): (&mut [f32], usize),
) {
    let tile = dot::<FMA, R, L>(a, a_stride, b, load(out, columns));
    store(&tile, out, columns);
}
