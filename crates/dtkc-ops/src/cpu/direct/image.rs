//! One image, row by row.

use super::Plan;
use crate::cpu::{
    geometry::add_pixels,
    isa::{per_isa, unrolled},
    job::{Backward, Forward},
    tile::{blocks, dot, load, outer, store, with_rows},
};

per_isa! {
    /// Convolves one image.
    pub(crate) fn forward(plan: &Plan, job: Forward<'_>) => forward_body;
}

per_isa! {
    /// Gradients of one image.
    pub(crate) fn backward(plan: &Plan, job: Backward<'_>) => backward_body;
}

/// The taps of one run for a row of output pixels: pixel `j` starts at `j * stride`.
#[derive(Clone, Copy)]
struct Run<'a> {
    taps: &'a [f32],
    stride: usize,
}

/// The taps of one output row.
#[inline(always)]
fn run<'a>(plan: &Plan, x: &'a [f32], strip: &'a [f32], row: usize, run: usize) -> Run<'a> {
    let (frame, channels) = (plan.input_frame(), plan.geometry.channels_in);
    if plan.is_interleaved() {
        Run { taps: strip, stride: plan.geometry.kernel.0 * channels }
    } else {
        Run { taps: &x[(row + run) * frame.width * channels..], stride: channels }
    }
}

/// Interleaves the rows that one output row needs: `[column][row][channel]`.
#[inline(always)]
fn interleave(plan: &Plan, x: &[f32], row: usize, strip: &mut [f32]) {
    if !plan.is_interleaved() {
        return;
    }
    let (channels, rows) = (plan.geometry.channels_in, plan.geometry.kernel.0);
    let line = plan.input_frame().width * channels;
    for i in 0..rows {
        let from = &x[(row + i) * line..][..line];
        for (to, from) in strip.chunks_exact_mut(rows * channels).zip(from.chunks_exact(channels)) {
            for (to, from) in to[i * channels..].iter_mut().zip(from) {
                *to = *from;
            }
        }
    }
}

/// The image with its border; the image itself where there is none.
#[inline(always)]
fn input_canvas<'a>(plan: &Plan, x: &'a [f32], canvas: &'a mut [f32]) -> &'a [f32] {
    let (frame, geometry) = (plan.input_frame(), plan.geometry);
    if frame.is_exact(geometry.height, geometry.width, geometry.channels_in) {
        return x;
    }
    frame.place(canvas, x, None, (geometry.width, geometry.channels_in));
    canvas
}

/// What turns taps into outputs.
#[derive(Clone, Copy)]
struct Layer<'a, const L: usize> {
    weights: &'a [[f32; L]],
    bias: &'a [f32],
    relu: bool,
}

#[inline(always)]
fn forward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(plan: &Plan, job: Forward<'_>) {
    let (canvas, rest) = job.scratch.split_at_mut(plan.input_frame().len());
    let (line, rest) = rest.split_at_mut(plan.geometry.out_width * plan.channels_out);
    let strip = &mut rest[..plan.strip_len()];
    let x = input_canvas(plan, job.x, canvas);
    let layer = Layer { weights: job.weights.as_chunks::<L>().0, bias: job.bias, relu: job.relu };
    let channels = plan.geometry.channels_out;
    for (row, y) in job.y.chunks_exact_mut(plan.geometry.out_width * channels).enumerate() {
        interleave(plan, x, row, strip);
        if channels == plan.channels_out {
            forward_row::<FMA, P, L>(plan, (x, strip), row, layer, y);
            continue;
        }
        forward_row::<FMA, P, L>(plan, (x, strip), row, layer, line);
        for (y, pixel) in y.chunks_exact_mut(channels).zip(line.chunks_exact(plan.channels_out)) {
            y.copy_from_slice(&pixel[..channels]);
        }
    }
}
/// One output row in whole blocks of channels.
#[inline(always)]
fn forward_row<const FMA: bool, const P: usize, const L: usize>(
    plan: &Plan,
    (x, strip): (&[f32], &[f32]),
    row: usize,
    layer: Layer<'_, L>,
    line: &mut [f32],
) {
    let (stride, columns) = (plan.channels_out, plan.channels_out / L);
    for r in 0..plan.runs {
        let run = run(plan, x, strip, row, r);
        let weights = &layer.weights[r * plan.taps * columns..][..plan.taps * columns];
        let relu = layer.relu && r + 1 == plan.runs;
        for (block, weights) in weights.chunks_exact(plan.taps).enumerate() {
            let mut bias = [0.0; L];
            for (to, from) in bias.iter_mut().zip(&layer.bias[block * L..]) {
                *to = *from;
            }
            let bias = (r == 0).then_some(bias);
            for (j, rows) in blocks(plan.geometry.out_width, P) {
                let line = (&mut line[j * stride + block * L..], stride);
                let taps = (&run.taps[j * run.stride..], run.stride);
                with_rows!(rows, P, forward_tile::<FMA, _, L>(taps, weights, (bias, relu), line));
            }
        }
    }
}

/// A block of output pixels: starts from the bias or from what earlier runs left.
#[inline(always)]
fn forward_tile<const FMA: bool, const R: usize, const L: usize>(
    (taps, stride): (&[f32], usize),
    weights: &[[f32; L]],
    (bias, relu): (Option<[f32; L]>, bool),
    (line, line_stride): (&mut [f32], usize),
) {
    let init = match bias {
        Some(bias) => [bias; R],
        None => load(line, line_stride),
    };
    let mut tile = dot::<FMA, R, L>(taps, stride, weights, init);
    if relu {
        unrolled!(I in 0..R {
            for value in &mut tile[I] {
                *value = if *value > 0.0 { *value } else { 0.0 };
            }
        });
    }
    store(&tile, line, line_stride);
}

/// Adds rows times a block of columns to an accumulator in memory.
#[inline(always)]
fn add_product<const FMA: bool, const R: usize, const L: usize>(
    (values, stride): (&[f32], usize),
    weights: &[[f32; L]],
    (sums, sums_stride): (&mut [f32], usize),
) {
    let tile = dot::<FMA, R, L>(values, stride, weights, load(sums, sums_stride));
    store(&tile, sums, sums_stride);
}

#[inline(always)]
fn backward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(plan: &Plan, job: Backward<'_>) {
    let geometry = plan.geometry;
    let (canvas, rest) = job.scratch.split_at_mut(plan.input_frame().len());
    let (dx_canvas, rest) = rest.split_at_mut(plan.gradient_frame().len());
    let (dy, rest) = rest.split_at_mut(plan.output_frame().len());
    let strip = &mut rest[..plan.strip_len()];
    let x = input_canvas(plan, job.x, canvas);
    plan.output_frame().place(dy, job.dy, job.y, (geometry.out_width, geometry.channels_out));
    add_pixels::<W>(dy, plan.channels_out, job.db);
    for (row, dy) in dy.chunks_exact(geometry.out_width * plan.channels_out).enumerate() {
        interleave(plan, x, row, strip);
        for r in 0..plan.runs {
            let run = run(plan, x, strip, row, r);
            let dw = &mut job.dw[r * plan.taps * plan.channels_out..][..plan.taps * plan.channels_out];
            for (block, dw) in dw.chunks_exact_mut(plan.taps * L).enumerate() {
                for (tap, rows) in blocks(plan.taps, P) {
                    let taps = (&run.taps[tap..], run.stride);
                    let gradients = (&dy[block * L..], plan.channels_out);
                    with_rows!(
                        rows,
                        P,
                        add_outer::<FMA, _, L>(taps, gradients, geometry.out_width, &mut dw[tap * L..])
                    );
                }
            }
        }
    }
    let Some(dx) = job.dx else { return };
    dx_canvas.fill(0.0);
    spread::<FMA, P, L>(plan, dy, job.weights, dx_canvas);
    plan.gradient_frame().extract(dx_canvas, (geometry.width, geometry.channels_in), dx);
}

/// Adds taps times gradients over a row of pixels to the gradient of the weights.
#[inline(always)]
fn add_outer<const FMA: bool, const R: usize, const L: usize>(
    taps: (&[f32], usize),
    gradients: (&[f32], usize),
    count: usize,
    dw: &mut [f32],
) {
    let tile = outer::<FMA, R, L>(taps, gradients, count, load(dw, L));
    store(&tile, dw, L);
}

/// Adds every output pixel's gradient, times the transposed weights, to the pixels that it came from.
#[inline(always)]
fn spread<const FMA: bool, const P: usize, const L: usize>(plan: &Plan, dy: &[f32], weights: &[f32], dx: &mut [f32]) {
    let (geometry, frame) = (plan.geometry, plan.gradient_frame());
    let (weights, _) = weights.as_chunks::<L>();
    let (depth, columns) = (geometry.channels_out, frame.channels / L);
    let row = frame.width * frame.channels;
    for i in 0..geometry.out_height {
        let dy = &dy[i * geometry.out_width * plan.channels_out..];
        for position in 0..geometry.kernel.0 * geometry.kernel.1 {
            let (a, b) = (position / geometry.kernel.1, position % geometry.kernel.1);
            let weights = &weights[position * columns * depth..][..columns * depth];
            for (block, weights) in weights.chunks_exact(depth).enumerate() {
                for (j, rows) in blocks(geometry.out_width, P) {
                    let dx = &mut dx[(i + a) * row + (j + b) * frame.channels + block * L..];
                    let dy = (&dy[j * plan.channels_out..], plan.channels_out);
                    with_rows!(rows, P, add_product::<FMA, _, L>(dy, weights, (dx, frame.channels)));
                }
            }
        }
    }
}
