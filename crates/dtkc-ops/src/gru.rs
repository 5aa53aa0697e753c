//! Gated recurrent units over a batch: sequences in groups of similar length, shared between threads.

use crate::{
    Lengths,
    buffer::Buffer,
    cpu::{
        gru::{self, Backward, Forward, Gradient, Packed, ROWS, Raw, Sizes},
        isa::Isa,
    },
    parallel::{for_each, sum_parts},
    scratch,
};

/// Which states a layer gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GruStates {
    /// Those of all steps.
    All,
    /// The last one of each direction.
    Last,
}

/// The weights of both directions, one after the other in every part.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    /// `[2, 3 units, inputs]`.
    pub(crate) input: &'a [f32],
    /// `[2, 3 units, units]`.
    pub(crate) recurrent: &'a [f32],
    /// `[2, 3 units]`.
    pub(crate) input_bias: &'a [f32],
    /// `[2, 3 units]`.
    pub(crate) recurrent_bias: &'a [f32],
}

/// Gradients in the shapes of [`Weights`].
pub(crate) struct Gradients {
    pub(crate) input: Vec<f32>,
    pub(crate) recurrent: Vec<f32>,
    pub(crate) input_bias: Vec<f32>,
    pub(crate) recurrent_bias: Vec<f32>,
}

/// A layer over the sequences of one batch.
pub(crate) struct Gru {
    isa: Isa,
    sizes: Sizes,
    lengths: Lengths,
    /// Sequences in groups, the longest first.
    groups: Vec<Group>,
    states: GruStates,
}

/// Sequences that are worked on together.
struct Group {
    sequences: Vec<usize>,
    lengths: Vec<usize>,
}

/// What the forward pass kept for the backward pass.
#[derive(Debug)]
pub(crate) struct Kept(Buffer);

impl Gru {
    pub(crate) fn new(isa: Isa, inputs: usize, units: usize, lengths: Lengths, states: GruStates) -> Self {
        let sizes = Sizes { inputs, units, padded: isa.padded(units), padded_inputs: isa.padded(inputs) };
        let group = |sequences: &[usize]| Group {
            sequences: sequences.to_vec(),
            lengths: sequences.iter().map(|&sequence| lengths.range(sequence).len()).collect(),
        };
        let groups = lengths.longest_first().chunks(ROWS).map(group).collect();
        Self { isa, sizes, groups, lengths, states }
    }

    /// Rows and columns of the result.
    pub(crate) fn shape(&self) -> [usize; 2] {
        let rows = match self.states {
            GruStates::All => self.lengths.steps(),
            GruStates::Last => self.lengths.len(),
        };
        [rows, 2 * self.sizes.units]
    }

    /// The states of all sequences of `x` into `y`; with `keep`, what the backward pass needs.
    pub(crate) fn forward(&self, x: &[f32], weights: Weights<'_>, y: &mut [f32], keep: bool) -> Option<Kept> {
        let packed = [0, 1].map(|d| Packed::forward(self.sizes, self.isa.lanes(), self.raw(weights, d)));
        let len = self.lengths.steps() * self.sizes.kept();
        let mut kept = keep.then(|| Buffer::take_long(len));
        let width = 2 * self.sizes.units;
        let (mut steps, mut last) = match self.states {
            GruStates::All => (self.split(y, width), Vec::new()),
            GruStates::Last => (Vec::new(), self.rows(y, width)),
        };
        let mut kept_parts = match &mut kept {
            Some(kept) => self.split(&mut kept[..len], self.sizes.kept()),
            None => Vec::new(),
        };
        let jobs = self
            .groups
            .iter()
            .map(|group| (group, [group.take(&mut steps), group.take(&mut last), group.take(&mut kept_parts)]));
        let jobs: Vec<_> = jobs.collect();
        for_each(jobs.into_iter(), |(group, [mut steps, mut last, mut kept])| {
            let x = self.parts(group, x, self.sizes.inputs);
            scratch::with(Forward::scratch_len(self.sizes), |scratch| {
                let (sizes, weights, lengths) = (self.sizes, &packed, group.lengths.as_slice());
                let (steps, last, kept) = (&mut steps, &mut last, &mut kept);
                gru::forward(self.isa, Forward { sizes, weights, lengths, x: &x, steps, last, kept, scratch });
            });
        });
        kept.map(Kept)
    }

    /// Gradients of the weights and, on request, of the values.
    pub(crate) fn backward(
        &self,
        (x, kept): (&[f32], &Kept),
        weights: Weights<'_>,
        dy: &[f32],
        dx: Option<&mut [f32]>,
    ) -> Gradients {
        let with_input = dx.is_some();
        let packed = [0, 1].map(|d| Packed::backward(self.sizes, self.isa.lanes(), self.raw(weights, d), with_input));
        let mut dx = dx.map_or_else(Vec::new, |dx| self.split(dx, self.sizes.inputs));
        // Each group sums its own gradients; the sums are added in a fixed order afterwards.
        let lens = Gradient::lens(self.sizes);
        let one: usize = lens.iter().sum();
        scratch::with(self.groups.len().max(1) * 2 * one, |sums| {
            sums.fill(0.0);
            let jobs = self.groups.iter().zip(sums.chunks_exact_mut(2 * one));
            let jobs: Vec<_> = jobs.map(|(group, sums)| (group, sums, group.take(&mut dx))).collect();
            for_each(jobs.into_iter(), |(group, sums, mut dx)| {
                self.group_backward(group, (x, kept), (&packed, dy), (sums, &mut dx))
            });
            self.collect(sum_parts(sums, 2 * one), lens)
        })
    }

    fn group_backward(
        &self,
        group: &Group,
        (x, kept): (&[f32], &Kept),
        (weights, dy): (&[Packed; 2], &[f32]),
        (sums, dx): (&mut [f32], &mut [&mut [f32]]),
    ) {
        let width = 2 * self.sizes.units;
        let (x, kept) = (self.parts(group, x, self.sizes.inputs), self.parts(group, &kept.0, self.sizes.kept()));
        let (d_steps, d_last) = match self.states {
            GruStates::All => (self.parts(group, dy, width), Vec::new()),
            GruStates::Last => (Vec::new(), group.sequences.iter().map(|&s| &dy[s * width..][..width]).collect()),
        };
        let [input, recurrent, _] = Gradient::lens(self.sizes);
        let (first, second) = sums.split_at_mut(sums.len() / 2);
        let gradient = [first, second].map(|sums| {
            let (in_part, rest) = sums.split_at_mut(input);
            let (recurrent, bias) = rest.split_at_mut(recurrent);
            Gradient { input: in_part, recurrent, bias }
        });
        scratch::with(Backward::scratch_len(self.sizes), |scratch| {
            let (sizes, lengths) = (self.sizes, group.lengths.as_slice());
            let (x, kept, d_steps, d_last) = (x.as_slice(), kept.as_slice(), d_steps.as_slice(), d_last.as_slice());
            let job = Backward { sizes, weights, lengths, x, kept, d_steps, d_last, dx, gradient, scratch };
            gru::backward(self.isa, job);
        });
    }

    /// Sums of both directions in the order and the shapes of the weights.
    fn collect(&self, sums: &[f32], [input, recurrent, _]: [usize; 3]) -> Gradients {
        let Sizes { inputs, units, .. } = self.sizes;
        let mut all = Gradients { input: vec![], recurrent: vec![], input_bias: vec![], recurrent_bias: vec![] };
        for sums in sums.chunks_exact(sums.len() / 2) {
            let (input, rest) = sums.split_at(input);
            let (recurrent, bias) = rest.split_at(recurrent);
            self.rows_of(input, inputs, gru::INPUT_PLACES, &mut all.input);
            self.rows_of(recurrent, units, gru::STATE_PLACES, &mut all.recurrent);
            self.rows_of(&bias[..3 * self.sizes.padded], 1, gru::INPUT_PLACES, &mut all.input_bias);
            self.rows_of(&bias[self.sizes.padded..], 1, gru::STATE_PLACES, &mut all.recurrent_bias);
        }
        all
    }

    /// `[width] x [3 padded]` as `[3 units, width]` in the operation's order of gates, which are at these places.
    fn rows_of(&self, sums: &[f32], width: usize, places: [usize; 3], to: &mut Vec<f32>) {
        let Sizes { units, padded, .. } = self.sizes;
        for place in places {
            for unit in 0..units {
                to.extend((0..width).map(|column| sums[column * 3 * padded + place * padded + unit]));
            }
        }
    }

    fn raw<'a>(&self, weights: Weights<'a>, direction: usize) -> Raw<'a> {
        let half = |all: &'a [f32]| &all[direction * (all.len() / 2)..][..all.len() / 2];
        Raw {
            input: half(weights.input),
            recurrent: half(weights.recurrent),
            input_bias: half(weights.input_bias),
            recurrent_bias: half(weights.recurrent_bias),
        }
    }

    /// The parts of the sequences of a group, of `width` values a step.
    fn parts<'a>(&self, group: &Group, all: &'a [f32], width: usize) -> Vec<&'a [f32]> {
        let part = |&sequence: &usize| {
            let range = self.lengths.range(sequence);
            &all[range.start * width..range.end * width]
        };
        group.sequences.iter().map(part).collect()
    }

    /// The parts of all sequences.
    fn split<'a>(&self, mut all: &'a mut [f32], width: usize) -> Vec<&'a mut [f32]> {
        let part = |length: usize| all.split_off_mut(..length * width).unwrap_or_default();
        self.lengths.iter().map(part).collect()
    }

    /// One row for every sequence.
    fn rows<'a>(&self, all: &'a mut [f32], width: usize) -> Vec<&'a mut [f32]> {
        all.chunks_exact_mut(width).collect()
    }
}

impl Group {
    /// The parts of its sequences out of those of all; none where there are none.
    fn take<'a>(&self, parts: &mut [&'a mut [f32]]) -> Vec<&'a mut [f32]> {
        let has_parts = !parts.is_empty();
        let taken = |&sequence: &usize| has_parts.then(|| std::mem::take(&mut parts[sequence]));
        self.sequences.iter().filter_map(taken).collect()
    }
}
