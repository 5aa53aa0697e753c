//! A convolution over a batch: which algorithm, and the images shared between threads.

use crate::{
    cpu::{
        direct,
        geometry::Geometry,
        isa::Isa,
        job::{Backward, Forward},
        winograd,
    },
    parallel::{for_each, part_len, sum_parts},
    scratch,
};

/// A convolution of a batch of images.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convolution {
    geometry: Geometry,
    plan: Plan,
}

/// The algorithm of a convolution.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Winograd(winograd::Plan),
    Direct(direct::Plan),
}

/// What the backward pass of a convolution starts from.
pub(crate) struct Upstream<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) weight: &'a [f32],
    /// The forward result where it went through ReLU.
    pub(crate) y: Option<&'a [f32]>,
    pub(crate) dy: &'a [f32],
}

/// Gradients of a convolution.
pub(crate) struct Gradients {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl Convolution {
    /// Chooses the algorithm by its number of multiplications.
    pub(crate) fn new(isa: Isa, geometry: Geometry) -> Convolution {
        let plan = match winograd::Plan::new(isa, geometry) {
            Some(plan) => Plan::Winograd(plan),
            None => Plan::Direct(direct::Plan::new(isa, geometry)),
        };
        Convolution { geometry, plan }
    }

    /// The plain sum over taps, to compare with.
    #[cfg(test)]
    pub(crate) fn direct(isa: Isa, geometry: Geometry) -> Convolution {
        Convolution { geometry, plan: Plan::Direct(direct::Plan::new(isa, geometry)) }
    }

    /// Convolves all images of `x` into `y`.
    pub(crate) fn forward(&self, x: &[f32], weight: &[f32], bias: &[f32], relu: bool, y: &mut [f32]) {
        let (input, output) = (self.geometry.input_len(), self.geometry.output_len());
        let part = part_len(x.len() / input);
        let weights = match &self.plan {
            Plan::Winograd(plan) => winograd::pack(plan, weight),
            Plan::Direct(plan) => direct::pack(plan, weight),
        };
        let weights = weights.as_slice();
        for_each(x.chunks(part * input).zip(y.chunks_mut(part * output)), |(x, y)| {
            scratch::with(self.scratch_len(), |scratch| {
                let images = x.chunks(self.batch() * input).zip(y.chunks_mut(self.batch() * output));
                for (x, y) in images {
                    let job = Forward { x, weights, bias, relu, y, scratch: &mut *scratch };
                    match &self.plan {
                        Plan::Winograd(plan) => winograd::forward(plan.isa, plan, job),
                        Plan::Direct(plan) => direct::forward(plan.isa, plan, job),
                    }
                }
            });
        });
    }

    /// Gradients of the weights and the bias and, on request, of the input.
    pub(crate) fn backward(&self, upstream: &Upstream<'_>, dx: Option<&mut [f32]>) -> Gradients {
        let (input, output) = (self.geometry.input_len(), self.geometry.output_len());
        let part = part_len(upstream.x.len() / input);
        let parts = upstream.x.len().div_ceil(part * input);
        let weights = match (&self.plan, dx.is_some()) {
            (_, false) => Vec::new(),
            (Plan::Winograd(plan), true) => winograd::pack_transposed(plan, upstream.weight),
            (Plan::Direct(plan), true) => direct::pack_transposed(plan, upstream.weight),
        };
        let weights = weights.as_slice();
        // Each part of the batch sums its own gradients; the sums are added in a fixed order afterwards.
        let (length, channels) = (self.weight_len(), self.geometry.channels_out);
        scratch::with(parts * (length + channels), |sums| {
            let dx_parts = split_or_none(dx, part * input, parts);
            let jobs = sums.chunks_exact_mut(length + channels).zip(dx_parts).enumerate();
            for_each(jobs, |(index, (sums, mut dx))| {
                sums.fill(0.0);
                let (dw, db) = sums.split_at_mut(length);
                let first = index * part;
                let last = (first + part).min(upstream.x.len() / input);
                scratch::with(self.scratch_len(), |scratch| {
                    for start in (first..last).step_by(self.batch()) {
                        let end = (start + self.batch()).min(last);
                        let outputs = start * output..end * output;
                        let x = &upstream.x[start * input..end * input];
                        let y = upstream.y.map(|y| &y[outputs.clone()]);
                        let dy = &upstream.dy[outputs];
                        let dx = dx.as_deref_mut().map(|dx| &mut dx[(start - first) * input..(end - first) * input]);
                        let (dw, db, scratch) = (&mut *dw, &mut *db, &mut *scratch);
                        let job = Backward { x, y, dy, weights, dw, db, dx, scratch };
                        match &self.plan {
                            Plan::Winograd(plan) => winograd::backward(plan.isa, plan, job),
                            Plan::Direct(plan) => direct::backward(plan.isa, plan, job),
                        }
                    }
                });
            });
            let total = sum_parts(sums, length + channels);
            let weight = match &self.plan {
                Plan::Winograd(plan) => winograd::gradient(plan, &total[..length]),
                Plan::Direct(plan) => direct::gradient(plan, &total[..length]),
            };
            Gradients { weight, bias: total[length..].to_vec() }
        })
    }

    /// Images that one call takes.
    fn batch(&self) -> usize {
        match &self.plan {
            Plan::Winograd(plan) => plan.batch(),
            Plan::Direct(_) => 1,
        }
    }

    fn scratch_len(&self) -> usize {
        match &self.plan {
            Plan::Winograd(plan) => plan.scratch_len(),
            Plan::Direct(plan) => plan.scratch_len(),
        }
    }

    fn weight_len(&self) -> usize {
        match &self.plan {
            Plan::Winograd(plan) => plan.weight_len(),
            Plan::Direct(plan) => plan.weight_len(),
        }
    }
}

/// The chunks of a slice, or `None` as often.
fn split_or_none(
    slice: Option<&mut [f32]>,
    length: usize,
    parts: usize,
) -> impl Iterator<Item = Option<&mut [f32]>> + Send {
    let (chunks, missing) = match slice {
        Some(slice) => (slice.chunks_mut(length), 0),
        None => ([].chunks_mut(length), parts),
    };
    chunks.map(Some).chain((0..missing).map(|_| None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(next).collect()
    }

    /// Every product of the convolution: `visit(input, weight, output)`.
    fn products(g: &Geometry, mut visit: impl FnMut(usize, usize, usize)) {
        for (i, j) in (0..g.out_height).flat_map(|i| (0..g.out_width).map(move |j| (i, j))) {
            for (a, b) in (0..g.kernel.0).flat_map(|a| (0..g.kernel.1).map(move |b| (a, b))) {
                let (Some(y), Some(x)) = ((i + a).checked_sub(g.before.0), (j + b).checked_sub(g.before.1)) else {
                    continue;
                };
                if y >= g.height || x >= g.width {
                    continue;
                }
                for (c, o) in (0..g.channels_in).flat_map(|c| (0..g.channels_out).map(move |o| (c, o))) {
                    let input = (y * g.width + x) * g.channels_in + c;
                    let weight = ((a * g.kernel.1 + b) * g.channels_in + c) * g.channels_out + o;
                    visit(input, weight, (i * g.out_width + j) * g.channels_out + o);
                }
            }
        }
    }

    fn close(actual: &[f32], expected: &[f64], what: &str) {
        let scale = expected.iter().fold(1e-3f64, |scale, value| scale.max(value.abs()));
        for (a, e) in actual.iter().zip(expected) {
            assert!((f64::from(*a) - e).abs() < 2e-5 * scale, "{what}: {a}, expected {e}");
        }
    }

    /// All values and gradients of one image against sums in f64.
    fn check(convolution: Convolution, what: &str) {
        let g = convolution.geometry;
        let (x, weight, bias) = (noise(g.input_len(), 1), noise(g.weight_len(), 2), noise(g.channels_out, 3));
        let dy = noise(g.output_len(), 4);
        let mut expected: Vec<f64> = (0..g.output_len()).map(|i| f64::from(bias[i % g.channels_out])).collect();
        let (mut expected_dx, mut expected_dw) = (vec![0.0; x.len()], vec![0.0; weight.len()]);
        products(&g, |i, w, o| {
            expected[o] += f64::from(x[i]) * f64::from(weight[w]);
            expected_dx[i] += f64::from(dy[o]) * f64::from(weight[w]);
            expected_dw[w] += f64::from(dy[o]) * f64::from(x[i]);
        });
        let mut y = vec![f32::NAN; g.output_len()];
        convolution.forward(&x, &weight, &bias, false, &mut y);
        let mut dx = vec![f32::NAN; x.len()];
        let upstream = Upstream { x: &x, weight: &weight, y: None, dy: &dy };
        let gradients = convolution.backward(&upstream, Some(&mut dx));
        close(&y, &expected, &format!("{what}: y"));
        close(&dx, &expected_dx, &format!("{what}: dx"));
        close(&gradients.weight, &expected_dw, &format!("{what}: dw"));
    }

    #[test]
    fn every_instruction_set_and_algorithm_agrees_with_sums_in_f64() {
        for isa in Isa::available() {
            for (kernel, size, cin, cout) in [
                (5, (24, 24), 32, 32),
                (3, (8, 8), 16, 40),
                (7, (14, 14), 33, 32),
                (5, (13, 9), 1, 5),
                (2, (6, 7), 3, 17),
            ] {
                for before in [0, (kernel - 1) / 2] {
                    let grown = if before > 0 { kernel - 1 } else { 0 };
                    let geometry = Geometry {
                        height: size.0,
                        width: size.1,
                        channels_in: cin,
                        channels_out: cout,
                        kernel: (kernel, kernel),
                        before: (before, before),
                        out_height: size.0 + grown + 1 - kernel,
                        out_width: size.1 + grown + 1 - kernel,
                    };
                    let what = format!("{isa:?} {geometry:?}");
                    check(Convolution::new(isa, geometry), &what);
                    check(Convolution::direct(isa, geometry), &format!("direct, {what}"));
                }
            }
        }
    }

    #[test]
    fn the_layers_of_the_paper_use_tiles() {
        for (size, kernel) in [(24, 5), (10, 3), (8, 3), (60, 5)] {
            let out = size + 1 - kernel;
            let geometry = Geometry {
                height: size,
                width: size,
                channels_in: 32,
                channels_out: 32,
                kernel: (kernel, kernel),
                before: (0, 0),
                out_height: out,
                out_width: out,
            };
            let convolution = Convolution::new(Isa::detect(), geometry);
            assert!(matches!(convolution.plan, Plan::Winograd(_)), "{size} {kernel}");
        }
    }
}
