//! [`crate::gru`] composed from burn's own operations.

use burn::backend::{Backend, TensorData, TensorMetadata, tensor::FloatTensor};
use burn::tensor::{Shape, Slice};

use crate::{GruStates, Lengths};

/// See [`crate::gru`]. Operands: values, input weights, state weights, input biases, state biases.
pub(crate) fn gru<B: Backend>(operands: [FloatTensor<B>; 5], lengths: &Lengths, states: GruStates) -> FloatTensor<B> {
    let [x, input, recurrent, input_bias, recurrent_bias] = operands;
    let both = [0, 1].map(|direction| {
        let weights = [matrix::<B>(input.clone(), direction), matrix::<B>(recurrent.clone(), direction)];
        let biases = [row::<B>(input_bias.clone(), direction), row::<B>(recurrent_bias.clone(), direction)];
        one_direction::<B>(x.clone(), weights, biases, lengths, direction)
    });
    let steps = both.map(|(all, order)| B::float_select(all.clone(), 0, places::<B>(&order, &all)));
    let steps = match states {
        GruStates::All => steps,
        GruStates::Last => {
            let ends = |direction: usize| -> Vec<usize> {
                let end = |sequence| {
                    let range = lengths.range(sequence);
                    if direction == 0 { range.end - 1 } else { range.start }
                };
                (0..lengths.len()).map(end).collect()
            };
            let mut direction = 0;
            steps.map(|all| {
                let ends = places::<B>(&ends(direction), &all);
                direction += 1;
                B::float_select(all, 0, ends)
            })
        }
    };
    B::float_cat(steps.to_vec(), 1)
}

/// The states of one direction in the order in which they were computed, and where each step of the batch is in it.
fn one_direction<B: Backend>(
    x: FloatTensor<B>,
    [input, recurrent]: [FloatTensor<B>; 2],
    [input_bias, recurrent_bias]: [FloatTensor<B>; 2],
    lengths: &Lengths,
    direction: usize,
) -> (FloatTensor<B>, Vec<usize>) {
    let units = recurrent.shape()[1];
    let (device, dtype) = (x.device(), x.dtype());
    let inputs = B::float_add(B::float_matmul(x, B::float_swap_dims(input, 0, 1)), input_bias);
    let recurrent = B::float_swap_dims(recurrent, 0, 1);
    let sequences = lengths.longest_first();
    let longest = sequences.first().map_or(0, |&first| lengths.range(first).len());
    let mut state = B::float_zeros(Shape::new([lengths.len(), units]), &device, dtype.into());
    let (mut all, mut places_of, mut done) = (Vec::with_capacity(longest), vec![0; lengths.steps()], 0);
    for step in 0..longest {
        let mut rows = Vec::new();
        for range in sequences.iter().map(|&sequence| lengths.range(sequence)).take_while(|range| range.len() > step) {
            let row = if direction == 0 { range.start + step } else { range.end - 1 - step };
            places_of[row] = done;
            done += 1;
            rows.push(row);
        }
        let before = part::<B>(&state, 0..rows.len(), 0..units);
        let from_input = B::float_select(inputs.clone(), 0, places::<B>(&rows, &inputs));
        let from_state = B::float_add(B::float_matmul(before.clone(), recurrent.clone()), recurrent_bias.clone());
        let gate =
            |gates: &FloatTensor<B>, place: usize| part::<B>(gates, 0..rows.len(), place * units..(place + 1) * units);
        let z = B::sigmoid(B::float_add(gate(&from_input, 0), gate(&from_state, 0)));
        let r = B::sigmoid(B::float_add(gate(&from_input, 1), gate(&from_state, 1)));
        let n = B::float_tanh(B::float_add(gate(&from_input, 2), B::float_mul(r, gate(&from_state, 2))));
        state = B::float_add(n.clone(), B::float_mul(z, B::float_sub(before, n)));
        all.push(state.clone());
    }
    (B::float_cat(all, 0), places_of)
}

/// One direction's matrix of `[2, rows, columns]`.
fn matrix<B: Backend>(both: FloatTensor<B>, direction: usize) -> FloatTensor<B> {
    let shape = both.shape();
    let one = B::float_slice(both, &[Slice::from(direction..direction + 1), Slice::full(), Slice::full()]);
    B::float_reshape(one, Shape::new([shape[1], shape[2]]))
}

/// One direction's row of `[2, columns]`, as `[1, columns]`.
fn row<B: Backend>(both: FloatTensor<B>, direction: usize) -> FloatTensor<B> {
    B::float_slice(both, &[Slice::from(direction..direction + 1), Slice::full()])
}

/// Rows and columns of a matrix.
fn part<B: Backend>(
    x: &FloatTensor<B>,
    rows: core::ops::Range<usize>,
    columns: core::ops::Range<usize>,
) -> FloatTensor<B> {
    B::float_slice(x.clone(), &[Slice::from(rows), Slice::from(columns)])
}

/// Places as a tensor on the device of `like`.
fn places<B: Backend>(places: &[usize], like: &FloatTensor<B>) -> burn::backend::tensor::IntTensor<B> {
    let values: Vec<i32> = places.iter().map(|&place| place as i32).collect();
    B::int_from_data(TensorData::new(values, [places.len()]), &like.device())
}
