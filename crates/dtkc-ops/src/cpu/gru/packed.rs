//! Weights of one direction in the order in which the loops read them.

use super::Sizes;

/// The weights of one direction as the operation has them: gates in the order `z r n`.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a> {
    /// `[3 units, inputs]`.
    pub(crate) input: &'a [f32],
    /// `[3 units, units]`.
    pub(crate) recurrent: &'a [f32],
    /// `[3 units]`.
    pub(crate) input_bias: &'a [f32],
    /// `[3 units]`.
    pub(crate) recurrent_bias: &'a [f32],
}

/// The same, packed for products from the left (forward) and from the right (backward).
pub(crate) struct Packed {
    /// `[inputs] x [n z r]`, in blocks of lanes.
    pub(crate) input: Vec<f32>,
    /// `[units] x [z r q]`, in blocks of lanes.
    pub(crate) recurrent: Vec<f32>,
    /// What the input products of `[n z r]` begin with; the state's biases of `z` and `r` are in it.
    pub(crate) input_bias: Vec<f32>,
    /// What the state's products of `[z r q]` begin with: the bias of `q`.
    pub(crate) recurrent_bias: Vec<f32>,
    /// `[n z r] x [inputs]`, in blocks of lanes; empty where nobody asks for the gradient of the input.
    pub(crate) input_back: Vec<f32>,
    /// `[z r q] x [units]`, in blocks of lanes.
    pub(crate) recurrent_back: Vec<f32>,
}

/// The gate of the operation's order `z r n` at each place of `n z r`, and of `z r q`.
const INPUT_GATES: [usize; 3] = [2, 0, 1];
const STATE_GATES: [usize; 3] = [0, 1, 2];

/// The places of the gates `z r n` in `n z r`, and in `z r q`.
pub(crate) const INPUT_PLACES: [usize; 3] = [1, 2, 0];
pub(crate) const STATE_PLACES: [usize; 3] = [0, 1, 2];

impl Packed {
    /// For the forward pass.
    pub(crate) fn forward(sizes: Sizes, lanes: usize, raw: Raw<'_>) -> Self {
        let Sizes { inputs, units, padded, .. } = sizes;
        let mut input_bias = vec![0.0; 3 * padded];
        for (place, gate) in INPUT_GATES.into_iter().enumerate() {
            for unit in 0..units {
                // The state's part of the candidate goes through the reset gate, so its bias cannot be added here.
                let state = if gate == 2 { 0.0 } else { raw.recurrent_bias[gate * units + unit] };
                input_bias[place * padded + unit] = raw.input_bias[gate * units + unit] + state;
            }
        }
        let mut recurrent_bias = vec![0.0; 3 * padded];
        recurrent_bias[2 * padded..][..units].copy_from_slice(&raw.recurrent_bias[2 * units..]);
        Self {
            input: columns(raw.input, inputs, INPUT_GATES, sizes, lanes),
            recurrent: columns(raw.recurrent, units, STATE_GATES, sizes, lanes),
            input_bias,
            recurrent_bias,
            input_back: Vec::new(),
            recurrent_back: Vec::new(),
        }
    }

    /// For the backward pass, which needs no biases; `with_input` where the gradient of the input is wanted.
    pub(crate) fn backward(sizes: Sizes, lanes: usize, raw: Raw<'_>, with_input: bool) -> Self {
        let Sizes { inputs, units, padded, padded_inputs } = sizes;
        let input_back = match with_input {
            true => rows(raw.input, (inputs, padded_inputs), INPUT_GATES, sizes, lanes),
            false => Vec::new(),
        };
        Self {
            input: Vec::new(),
            recurrent: Vec::new(),
            input_bias: Vec::new(),
            recurrent_bias: Vec::new(),
            input_back,
            recurrent_back: rows(raw.recurrent, (units, padded), STATE_GATES, sizes, lanes),
        }
    }
}

/// `[3 units, width]` as `[width] x [3 padded]`, in blocks of lanes.
fn columns(weights: &[f32], width: usize, gates: [usize; 3], sizes: Sizes, lanes: usize) -> Vec<f32> {
    let Sizes { units, padded, .. } = sizes;
    let mut packed = vec![0.0; width * 3 * padded];
    for (place, gate) in gates.into_iter().enumerate() {
        for unit in 0..units {
            let column = place * padded + unit;
            let (block, lane) = (column / lanes, column % lanes);
            for depth in 0..width {
                packed[(block * width + depth) * lanes + lane] = weights[(gate * units + unit) * width + depth];
            }
        }
    }
    packed
}

/// `[3 units, width]` as `[3 padded] x [padded width]`, in blocks of lanes.
fn rows(weights: &[f32], (width, wide): (usize, usize), gates: [usize; 3], sizes: Sizes, lanes: usize) -> Vec<f32> {
    let Sizes { units, padded, .. } = sizes;
    let depth = 3 * padded;
    let mut packed = vec![0.0; depth * wide];
    for (place, gate) in gates.into_iter().enumerate() {
        for unit in 0..units {
            let row = place * padded + unit;
            for column in 0..width {
                let (block, lane) = (column / lanes, column % lanes);
                packed[(block * depth + row) * lanes + lane] = weights[(gate * units + unit) * width + column];
            }
        }
    }
    packed
}
