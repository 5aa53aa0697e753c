//! The backward pass of a group of sequences.

use super::{BLOCK, DIRECTIONS, KEPT, Packed, ROWS, Sizes, Span, running, times};
use crate::cpu::isa::{fma, per_isa};
use crate::cpu::tile::{blocks, load, outer, store, with_rows};

/// A group of at most [`ROWS`] sequences, the longest first.
pub(crate) struct Backward<'a, 's, 'm> {
    pub(crate) sizes: Sizes,
    pub(crate) weights: &'a [Packed; DIRECTIONS],
    /// The length of every sequence.
    pub(crate) lengths: &'a [usize],
    /// The values of every sequence, `length x inputs`.
    pub(crate) x: &'a [&'s [f32]],
    /// What the forward pass kept, `length x Sizes::kept` each.
    pub(crate) kept: &'a [&'s [f32]],
    /// Gradients of all states, `length x 2 units` each; empty where only the last ones are used.
    pub(crate) d_steps: &'a [&'s [f32]],
    /// Gradients of the last states, `2 units` each; empty where all are used.
    pub(crate) d_last: &'a [&'s [f32]],
    /// Gradients of the values, overwritten; empty where nobody wants them.
    pub(crate) dx: &'a mut [&'m mut [f32]],
    /// Gradients of the weights of both directions, added to.
    pub(crate) gradient: [Gradient<'a>; DIRECTIONS],
    /// [`scratch_len`](Backward::scratch_len) values of any content.
    pub(crate) scratch: &'a mut [f32],
}

/// Gradients of the weights of one direction.
pub(crate) struct Gradient<'a> {
    /// `[inputs] x [n z r]`.
    pub(crate) input: &'a mut [f32],
    /// `[units] x [z r q]`.
    pub(crate) recurrent: &'a mut [f32],
    /// `n z r q`: the first three are those of the input's bias, the last three those of the state's.
    pub(crate) bias: &'a mut [f32],
}

impl Gradient<'_> {
    /// Values of the three parts together.
    pub(crate) fn lens(sizes: Sizes) -> [usize; 3] {
        let Sizes { inputs, units, padded, .. } = sizes;
        [inputs * 3 * padded, units * 3 * padded, 4 * padded]
    }
}

impl Backward<'_, '_, '_> {
    /// Values of scratch that a group needs.
    pub(crate) fn scratch_len(sizes: Sizes) -> usize {
        (ROWS * BLOCK * 4 + 2 * ROWS + 3) * sizes.padded + (BLOCK + 1) * sizes.padded_inputs
    }
}

per_isa! {
    /// Gradients of weights and values of a group.
    pub(crate) fn backward(job: Backward<'_, '_, '_>) => backward_body;
}

#[inline(always)]
fn backward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(job: Backward<'_, '_, '_>) {
    let Backward { sizes, weights, lengths, x, kept, d_steps, d_last, dx, gradient, scratch } = job;
    let Sizes { inputs, units, padded, padded_inputs } = sizes;
    let wide = 4 * padded;
    let (slopes, scratch) = scratch.split_at_mut(ROWS * BLOCK * wide);
    let (d_states, scratch) = scratch.split_at_mut(ROWS * padded);
    let (products, scratch) = scratch.split_at_mut(ROWS * padded);
    let (zeros, d_inputs) = scratch.split_at_mut(3 * padded + padded_inputs);
    zeros.fill(0.0);
    let zeros = &*zeros;
    let longest = lengths.first().copied().unwrap_or(0);
    for (direction, (weights, gradient)) in weights.iter().zip(gradient).enumerate() {
        d_states.fill(0.0);
        for (row, d_last) in d_last.iter().enumerate() {
            d_states[row * padded..][..units].copy_from_slice(&d_last[direction * units..][..units]);
        }
        for first in (0..longest).step_by(BLOCK).rev() {
            let span = Span { direction, first };
            for step in (first..longest.min(first + BLOCK)).rev() {
                let rows = running(lengths, step);
                let place = span.place_of(step);
                for row in 0..rows {
                    let length = lengths[row];
                    let time = span.time_of(step, length);
                    let d_state = &mut d_states[row * padded..][..padded];
                    if let Some(d_steps) = d_steps.get(row) {
                        let from = &d_steps[(time * DIRECTIONS + direction) * units..][..units];
                        for (sum, value) in d_state.iter_mut().zip(from) {
                            *sum += value;
                        }
                    }
                    let at = |time: usize| &kept[row][(time * DIRECTIONS + direction) * KEPT * padded..];
                    let before = match span.before(step, length) {
                        Some(time) => &at(time)[(KEPT - 1) * padded..],
                        None => zeros,
                    };
                    let slopes = &mut slopes[(row * BLOCK + place) * wide..][..wide];
                    cell::<FMA, W>(&at(time)[..KEPT * padded], before, d_state, slopes);
                }
                let slopes = (&slopes[place * wide + padded..], BLOCK * wide);
                let back = (weights.recurrent_back.as_slice(), 3 * padded);
                times::<FMA, P, L>(slopes, back, rows, zeros, (&mut *products, padded));
                for (sum, value) in d_states[..rows * padded].iter_mut().zip(&*products) {
                    *sum += value;
                }
            }
            for (row, &length) in lengths.iter().enumerate().take(running(lengths, first)) {
                let (count, time) = (span.count(length), span.time(length));
                let slopes = &slopes[(row * BLOCK + span.place(length)) * wide..][..count * wide];
                let x = &x[row][time * inputs..];
                let out = (&mut *gradient.input, 3 * padded);
                add_outer::<FMA, P, L>((x, inputs), inputs, (slopes, wide), count, out);
                // The first step of a direction has no state before it.
                let skipped = usize::from(first == 0);
                if count > skipped {
                    let (from, slopes_from) =
                        if direction == 0 { (time + skipped - 1, skipped) } else { (time + 1, 0) };
                    let states = &kept[row][((from * DIRECTIONS + direction) * KEPT + KEPT - 1) * padded..];
                    let (states, later) =
                        ((states, DIRECTIONS * KEPT * padded), &slopes[slopes_from * wide + padded..]);
                    let out = (&mut *gradient.recurrent, 3 * padded);
                    add_outer::<FMA, P, L>(states, units, (later, wide), count - skipped, out);
                }
                add_rows::<W>(slopes, wide, gradient.bias);
                if let Some(dx) = dx.get_mut(row) {
                    let back = (weights.input_back.as_slice(), 3 * padded);
                    times::<FMA, P, L>((slopes, wide), back, count, zeros, (&mut *d_inputs, padded_inputs));
                    let dx = dx[time * inputs..][..count * inputs].chunks_exact_mut(inputs.max(1));
                    for (dx, found) in dx.zip(d_inputs.chunks_exact(padded_inputs)) {
                        write_or_add(dx, found, direction == 0);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn write_or_add(to: &mut [f32], from: &[f32], is_first: bool) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = if is_first { *from } else { *to + *from };
    }
}

/// Slopes of the gates of a step, and what of the state's gradient goes on to the state before.
#[inline(always)]
fn cell<const FMA: bool, const W: usize>(kept: &[f32], before: &[f32], d_state: &mut [f32], slopes: &mut [f32]) {
    let padded = d_state.len();
    let of = |from: &[f32], gate: usize, at: usize| *crate::cpu::chunk::<W>(&from[gate * padded + at..]);
    for at in (0..padded).step_by(W) {
        let [n, z, r, q] = [of(kept, 0, at), of(kept, 1, at), of(kept, 2, at), of(kept, 3, at)];
        let (before, d) = (of(before, 0, at), of(d_state, 0, at));
        let mut out = [[0.0; W]; 4];
        let mut on = [0.0; W];
        for l in 0..W {
            let d_n = d[l] * (1.0 - z[l]) * fma::<FMA>(-n[l], n[l], 1.0);
            out[0][l] = d_n;
            out[1][l] = d[l] * (before[l] - n[l]) * z[l] * (1.0 - z[l]);
            out[2][l] = d_n * q[l] * r[l] * (1.0 - r[l]);
            out[3][l] = d_n * r[l];
            on[l] = d[l] * z[l];
        }
        for (gate, values) in out.iter().enumerate() {
            slopes[gate * padded + at..][..W].copy_from_slice(values);
        }
        d_state[at..][..W].copy_from_slice(&on);
    }
}

/// Adds `sum_j a_j^T b_j` over `count` rows to `out`: `width` columns of `a` by all columns of `out`.
#[inline(always)]
fn add_outer<const FMA: bool, const P: usize, const L: usize>(
    (a, a_stride): (&[f32], usize),
    width: usize,
    (b, b_stride): (&[f32], usize),
    count: usize,
    (out, columns): (&mut [f32], usize),
) {
    for column in (0..columns).step_by(L) {
        for (i, rows) in blocks(width, P) {
            let out = &mut out[i * columns + column..];
            let (a, b) = ((&a[i..], a_stride), (&b[column..], b_stride));
            with_rows!(rows, P, outer_rows::<FMA, _, L>(a, b, count, (out, columns)));
        }
    }
}

#[inline(always)]
fn outer_rows<const FMA: bool, const R: usize, const L: usize>(
    a: (&[f32], usize),
    b: (&[f32], usize),
    count: usize,
    (out, columns): (&mut [f32], usize),
) {
    let tile = outer::<FMA, R, L>(a, b, count, load(out, columns));
    store(&tile, out, columns);
}

/// Adds the rows of a matrix to `sums`.
#[inline(always)]
fn add_rows<const W: usize>(rows: &[f32], wide: usize, sums: &mut [f32]) {
    for at in (0..wide).step_by(W) {
        let mut sum = *crate::cpu::chunk::<W>(&sums[at..]);
        for row in rows.chunks_exact(wide) {
            let row = crate::cpu::chunk::<W>(&row[at..]);
            for l in 0..W {
                sum[l] += row[l];
            }
        }
        sums[at..][..W].copy_from_slice(&sum);
    }
}
