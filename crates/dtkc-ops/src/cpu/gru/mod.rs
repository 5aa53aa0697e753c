//! Gated recurrent units over a few sequences, both directions.
//!
//! Sequences lie step after step in their own slices, so that nothing is padded. Those of a group are sorted, the longest
//! first: at any step the ones that still run are the first ones, and their states are rows of one small matrix. Steps are
//! taken in blocks: the input products of a block are one matrix product per sequence, as are the gradients of the weights.
//!
//! Inside, the gates of a step lie side by side as `n z r q`: candidate, update, reset, and what the state gives to the
//! candidate. The input has a part in the first three, the state in the last three. Each takes `padded` values, the units
//! filled up to whole blocks of lanes with weights of zero, whose state stays zero.

mod backward;
mod forward;
mod gates;
mod packed;

pub(crate) use backward::{Backward, Gradient, backward};
pub(crate) use forward::{Forward, forward};
pub(crate) use packed::{INPUT_PLACES, Packed, Raw, STATE_PLACES};

use super::tile::{Tile, blocks, dot, store, with_rows};

/// Sequences that are worked on together: two register tiles of rows for every instruction set.
pub(crate) const ROWS: usize = 12;

/// Steps that are taken together: what they need stays in the second-level cache.
pub(crate) const BLOCK: usize = 32;

/// Values that are kept of a step and a direction for the backward pass: `n z r q` and the state, padded units each.
pub(crate) const KEPT: usize = 5;

/// Directions: forward in time, backward in time.
pub(crate) const DIRECTIONS: usize = 2;

/// Sizes of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Values of a step.
    pub(crate) inputs: usize,
    /// Units of a direction.
    pub(crate) units: usize,
    /// Units in whole blocks of lanes.
    pub(crate) padded: usize,
    /// Inputs in whole blocks of lanes.
    pub(crate) padded_inputs: usize,
}

impl Sizes {
    /// Values that are kept of a step for the backward pass.
    pub(crate) fn kept(&self) -> usize {
        DIRECTIONS * KEPT * self.padded
    }
}

/// A block of steps of one direction: steps are counted in the order in which the direction takes them.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// 0 forward in time, 1 backward.
    direction: usize,
    /// The first step of the block.
    first: usize,
}

impl Span {
    /// Steps of a sequence that are in the block.
    #[inline(always)]
    fn count(self, length: usize) -> usize {
        length.saturating_sub(self.first).min(BLOCK)
    }

    /// Where in time those steps begin.
    #[inline(always)]
    fn time(self, length: usize) -> usize {
        if self.direction == 0 { self.first } else { length - self.first - self.count(length) }
    }

    /// The place of the first of them, in time, in a block of [`BLOCK`] places; the same step has the same place for every
    /// sequence.
    #[inline(always)]
    fn place(self, length: usize) -> usize {
        if self.direction == 0 { 0 } else { BLOCK - self.count(length) }
    }

    /// The place of a step.
    #[inline(always)]
    fn place_of(self, step: usize) -> usize {
        if self.direction == 0 { step - self.first } else { BLOCK - 1 - (step - self.first) }
    }

    /// When in time a step of a sequence is.
    #[inline(always)]
    fn time_of(self, step: usize, length: usize) -> usize {
        if self.direction == 0 { step } else { length - 1 - step }
    }

    /// When in time the step before it in the direction's order is; `None` for the first one.
    #[inline(always)]
    fn before(self, step: usize, length: usize) -> Option<usize> {
        if step == 0 { None } else { Some(self.time_of(step - 1, length)) }
    }
}

/// Sequences that still run at a step: the lengths fall.
#[inline(always)]
fn running(lengths: &[usize], step: usize) -> usize {
    lengths.iter().take_while(|length| **length > step).count()
}

/// Rows of a matrix and how far they are apart.
type Strided<'a> = (&'a [f32], usize);

/// `out = init + a b`: `rows` rows of `a`, of which `depth` values count; `b` is packed in blocks of `L` columns; `init` is
/// a row that every row begins with.
#[inline(always)]
fn times<const FMA: bool, const P: usize, const L: usize>(
    (a, a_stride): Strided<'_>,
    (b, depth): (&[f32], usize),
    rows: usize,
    init: &[f32],
    (out, out_stride): (&mut [f32], usize),
) {
    let (panels, _) = b.as_chunks::<L>();
    for (block, panel) in panels.chunks_exact(depth.max(1)).enumerate() {
        let init = super::chunk::<L>(&init[block * L..]);
        for (i, count) in blocks(rows, P) {
            let out = &mut out[i * out_stride + block * L..];
            with_rows!(count, P, tile_of::<FMA, _, L>((&a[i * a_stride..], a_stride), panel, init, (out, out_stride)));
        }
    }
}

#[inline(always)]
fn tile_of<const FMA: bool, const R: usize, const L: usize>(
    (a, a_stride): Strided<'_>,
    panel: &[[f32; L]],
    init: &[f32; L],
    (out, out_stride): (&mut [f32], usize),
) {
    let tile: Tile<R, L> = dot::<FMA, R, L>(a, a_stride, panel, [*init; R]);
    store(&tile, out, out_stride);
}
