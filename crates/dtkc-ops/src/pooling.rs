//! Batch normalisation, scaling, ReLU and pooling over a batch.

use crate::{
    cpu::{
        isa::Isa,
        pool::{self, Affine, Pooling, Sums},
    },
    parallel::{for_each, part_len},
    scratch,
};

/// Mean and biased variance of each channel over a batch.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    pub(crate) mean: Vec<f32>,
    pub(crate) variance: Vec<f32>,
}

/// `x * scale + shift`, one pair per channel.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
}

/// Sums over the batch of the gradients that reach a pixel, plain and times `x - centre`.
pub(crate) struct Totals {
    pub(crate) plain: Vec<f64>,
    pub(crate) weighted: Vec<f64>,
}

impl Line {
    fn affine(&self) -> Affine<'_> {
        Affine { scale: &self.scale, shift: &self.shift }
    }

    /// Batch normalisation as one factor and one offset per channel.
    pub(crate) fn normalising(statistics: &Statistics, gamma: &[f32], beta: &[f32], epsilon: f64) -> Line {
        let scale: Vec<f32> =
            gamma.iter().zip(inverse_deviation(statistics, epsilon)).map(|(g, i)| (f64::from(*g) * i) as f32).collect();
        let shift = beta.iter().zip(&scale).zip(&statistics.mean).map(|((b, s), m)| b - s * m).collect();
        Line { scale, shift }
    }
}

/// `1 / sqrt(variance + epsilon)`.
pub(crate) fn inverse_deviation(statistics: &Statistics, epsilon: f64) -> impl Iterator<Item = f64> + '_ {
    statistics.variance.iter().map(move |variance| 1.0 / (f64::from(*variance) + epsilon).sqrt())
}

/// Statistics of a batch: per image in f32, combined in f64.
pub(crate) fn statistics(isa: Isa, sizes: Pooling, x: &[f32]) -> Statistics {
    let (length, channels) = (sizes.input_len(), sizes.channels);
    let n = x.len() / length;
    scratch::with(n * 2 * channels, |each| {
        let part = part_len(n);
        for_each(x.chunks(part * length).zip(each.chunks_mut(part * 2 * channels)), |(x, each)| {
            for (x, each) in x.chunks_exact(length).zip(each.chunks_exact_mut(2 * channels)) {
                let (mean, deviation) = each.split_at_mut(channels);
                pool::statistics(isa, x, mean, deviation);
            }
        });
        let pixels = (sizes.height * sizes.width) as f64;
        let column = |index: usize| each.iter().skip(index).step_by(2 * channels).map(|value| f64::from(*value));
        let (mut mean, mut variance) = (Vec::with_capacity(channels), Vec::with_capacity(channels));
        for c in 0..channels {
            let centre = column(c).sum::<f64>() / n as f64;
            let between: f64 = column(c).map(|value| (value - centre) * (value - centre)).sum::<f64>() * pixels;
            let within: f64 = column(channels + c).sum();
            mean.push(centre as f32);
            variance.push(((between + within) / (pixels * n as f64)) as f32);
        }
        Statistics { mean, variance }
    })
}

/// `max-pool(relu(x * scale + shift))` of every image.
pub(crate) fn forward(isa: Isa, sizes: Pooling, line: &Line, x: &[f32], y: &mut [f32]) {
    let (input, output) = (sizes.input_len(), sizes.output_len());
    let part = part_len(x.len() / input);
    for_each(x.chunks(part * input).zip(y.chunks_mut(part * output)), |(x, y)| {
        for (x, y) in x.chunks_exact(input).zip(y.chunks_exact_mut(output)) {
            pool::forward(isa, sizes, line.affine(), x, y);
        }
    });
}

/// Sums for the gradients of scale and shift: per image in f32, added in f64.
pub(crate) fn totals(isa: Isa, sizes: Pooling, line: &Line, centre: &[f32], x: &[f32], dy: &[f32]) -> Totals {
    let (input, output, channels) = (sizes.input_len(), sizes.output_len(), sizes.channels);
    let n = x.len() / input;
    let part = part_len(n);
    scratch::with(n * 2 * channels, |each| {
        let jobs = x.chunks(part * input).zip(dy.chunks(part * output)).zip(each.chunks_mut(part * 2 * channels));
        for_each(jobs, |((x, dy), each)| {
            let images = x.chunks_exact(input).zip(dy.chunks_exact(output)).zip(each.chunks_exact_mut(2 * channels));
            for ((x, dy), each) in images {
                let (plain, weighted) = each.split_at_mut(channels);
                pool::gradients(isa, sizes, line.affine(), x, dy, Sums { plain, weighted, centre });
            }
        });
        let sum = |index: usize| each.iter().skip(index).step_by(2 * channels).map(|value| f64::from(*value)).sum();
        Totals { plain: (0..channels).map(sum).collect(), weighted: (channels..2 * channels).map(sum).collect() }
    })
}

/// `dx = scale * g + slope * x + level` with `g` the gradient that pooling and ReLU pass on to each pixel.
pub(crate) fn input_gradient(
    isa: Isa,
    sizes: Pooling,
    (line, slope): (&Line, &Line),
    (x, dy): (&[f32], &[f32]),
    dx: &mut [f32],
) {
    let (input, output) = (sizes.input_len(), sizes.output_len());
    let part = part_len(x.len() / input);
    let jobs = x.chunks(part * input).zip(dy.chunks(part * output)).zip(dx.chunks_mut(part * input));
    for_each(jobs, |((x, dy), dx)| {
        let images = x.chunks_exact(input).zip(dy.chunks_exact(output)).zip(dx.chunks_exact_mut(input));
        for ((x, dy), dx) in images {
            pool::input_gradient(isa, sizes, line.affine(), slope.affine(), x, dy, dx);
        }
    });
}
