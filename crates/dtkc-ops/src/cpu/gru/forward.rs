//! The forward pass of a group of sequences.

use super::gates::{sigmoid, tanh};
use super::{BLOCK, DIRECTIONS, KEPT, Packed, ROWS, Sizes, Span, running, times};
use crate::cpu::isa::per_isa;

/// A group of at most [`ROWS`] sequences, the longest first.
pub(crate) struct Forward<'a, 's, 'm> {
    pub(crate) sizes: Sizes,
    pub(crate) weights: &'a [Packed; DIRECTIONS],
    /// The length of every sequence.
    pub(crate) lengths: &'a [usize],
    /// The values of every sequence, `length x inputs`.
    pub(crate) x: &'a [&'s [f32]],
    /// Where all states go, `length x 2 units` each; empty where they are not wanted.
    pub(crate) steps: &'a mut [&'m mut [f32]],
    /// Where the last states go, `2 units` each; empty where they are not wanted.
    pub(crate) last: &'a mut [&'m mut [f32]],
    /// What the backward pass needs, `length x Sizes::kept` each; empty where there is none.
    pub(crate) kept: &'a mut [&'m mut [f32]],
    /// [`scratch_len`](Forward::scratch_len) values of any content.
    pub(crate) scratch: &'a mut [f32],
}

impl Forward<'_, '_, '_> {
    /// Values of scratch that a group needs.
    pub(crate) fn scratch_len(sizes: Sizes) -> usize {
        ROWS * (BLOCK * 3 + 3 + 1) * sizes.padded
    }
}

per_isa! {
    /// The states of all sequences of a group.
    pub(crate) fn forward(job: Forward<'_, '_, '_>) => forward_body;
}

/// A step of one sequence: its gates in, its state out.
struct Cell<'a> {
    /// Input products of `n z r`.
    input: &'a [f32],
    /// State products of `z r q`.
    state_part: &'a [f32],
    padded: usize,
}

#[inline(always)]
fn forward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Forward<'_, '_, '_>) {
    let Forward { sizes, weights, lengths, x, steps, last, kept, scratch } = job;
    let Sizes { inputs, units, padded, .. } = sizes;
    let (states, scratch) = scratch.split_at_mut(ROWS * padded);
    let (products, gates) = scratch.split_at_mut(ROWS * 3 * padded);
    let longest = lengths.first().copied().unwrap_or(0);
    for (direction, weights) in weights.iter().enumerate() {
        states.fill(0.0);
        for first in (0..longest).step_by(BLOCK) {
            let span = Span { direction, first };
            for (row, &length) in lengths.iter().enumerate().take(running(lengths, first)) {
                let x = &x[row][span.time(length) * inputs..];
                let out = &mut gates[(row * BLOCK + span.place(length)) * 3 * padded..];
                let out = (out, 3 * padded);
                times::<FMA, P, L>((x, inputs), (&weights.input, inputs), span.count(length), &weights.input_bias, out);
            }
            for step in first..longest.min(first + BLOCK) {
                let rows = running(lengths, step);
                let recurrent = (weights.recurrent.as_slice(), units);
                let out = (&mut *products, 3 * padded);
                times::<FMA, P, L>((states, padded), recurrent, rows, &weights.recurrent_bias, out);
                for row in 0..rows {
                    let cell = Cell {
                        input: &gates[(row * BLOCK + span.place_of(step)) * 3 * padded..][..3 * padded],
                        state_part: &products[row * 3 * padded..][..3 * padded],
                        padded,
                    };
                    let state = &mut states[row * padded..][..padded];
                    let time = span.time_of(step, lengths[row]);
                    match kept.get_mut(row) {
                        Some(kept) => {
                            let at = (time * DIRECTIONS + direction) * KEPT * padded;
                            keep::<FMA, W>(cell, state, &mut kept[at..][..KEPT * padded]);
                        }
                        None => go::<FMA, W>(cell, state),
                    }
                    if let Some(steps) = steps.get_mut(row) {
                        steps[(time * DIRECTIONS + direction) * units..][..units].copy_from_slice(&state[..units]);
                    }
                }
            }
        }
        for (row, last) in last.iter_mut().enumerate() {
            // The state of a sequence is left alone once it has ended.
            last[direction * units..][..units].copy_from_slice(&states[row * padded..][..units]);
        }
    }
}

/// `n z r q` and the new state, of `W` units from `at` on.
#[inline(always)]
fn units<const FMA: bool, const W: usize>(cell: &Cell<'_>, state: &[f32], at: usize) -> [[f32; W]; KEPT] {
    let padded = cell.padded;
    let of = |from: &[f32], gate: usize| *crate::cpu::chunk::<W>(&from[gate * padded + at..]);
    let [n_in, z_in, r_in] = [of(cell.input, 0), of(cell.input, 1), of(cell.input, 2)];
    let [z_state, r_state, q] = [of(cell.state_part, 0), of(cell.state_part, 1), of(cell.state_part, 2)];
    let before = crate::cpu::chunk::<W>(&state[at..]);
    let mut all = [[0.0; W]; KEPT];
    for l in 0..W {
        let z = sigmoid::<FMA>(z_in[l] + z_state[l]);
        let r = sigmoid::<FMA>(r_in[l] + r_state[l]);
        let n = tanh::<FMA>(crate::cpu::isa::fma::<FMA>(r, q[l], n_in[l]));
        let h = crate::cpu::isa::fma::<FMA>(z, before[l] - n, n);
        all[0][l] = n;
        all[1][l] = z;
        all[2][l] = r;
        all[3][l] = q[l];
        all[4][l] = h;
    }
    all
}

/// A step that is forgotten.
#[inline(always)]
fn go<const FMA: bool, const W: usize>(cell: Cell<'_>, state: &mut [f32]) {
    for at in (0..cell.padded).step_by(W) {
        let all = units::<FMA, W>(&cell, state, at);
        state[at..][..W].copy_from_slice(&all[KEPT - 1]);
    }
}

/// A step that is kept for the backward pass.
#[inline(always)]
fn keep<const FMA: bool, const W: usize>(cell: Cell<'_>, state: &mut [f32], kept: &mut [f32]) {
    for at in (0..cell.padded).step_by(W) {
        let all = units::<FMA, W>(&cell, state, at);
        state[at..][..W].copy_from_slice(&all[KEPT - 1]);
        for (part, values) in all.iter().enumerate() {
            kept[part * cell.padded + at..][..W].copy_from_slice(values);
        }
    }
}
