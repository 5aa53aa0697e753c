//! `max-pool(relu(x * scale + shift))` of one image, its gradients, and the statistics that batch normalisation needs.

use super::{isa::per_isa, lane::Lane};

/// Sizes of one image and its pooling window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pooling {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) pool: usize,
}

impl Pooling {
    /// Values of one input image.
    pub(crate) fn input_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Values of one output image; rows and columns that do not fill a window are dropped.
    pub(crate) fn output_len(&self) -> usize {
        (self.height / self.pool) * (self.width / self.pool) * self.channels
    }

    /// First value of the window of an output pixel.
    #[inline(always)]
    fn window(&self, pixel: usize) -> usize {
        let columns = self.width / self.pool;
        ((pixel / columns) * self.width + pixel % columns) * self.pool * self.channels
    }
}

/// Factor and offset of each channel.
#[derive(Clone, Copy)]
pub(crate) struct Affine<'a> {
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
}

impl<'a> Affine<'a> {
    /// From one channel on.
    #[inline(always)]
    fn at(self, channel: usize) -> Affine<'a> {
        Affine { scale: &self.scale[channel..], shift: &self.shift[channel..] }
    }
}

/// Where the sums of [`gradients`] go, one value per channel.
pub(crate) struct Sums<'a> {
    /// Sum of the gradients that reach a pixel.
    pub(crate) plain: &'a mut [f32],
    /// Sum of the same times `x - centre`.
    pub(crate) weighted: &'a mut [f32],
    pub(crate) centre: &'a [f32],
}

per_isa! {
    /// Mean and sum of squared deviations of each channel.
    pub(crate) fn statistics(x: &[f32], mean: &mut [f32], deviation: &mut [f32]) => statistics_body;
}

per_isa! {
    /// The forward pass.
    pub(crate) fn forward(sizes: Pooling, affine: Affine<'_>, x: &[f32], y: &mut [f32]) => forward_body;
}

per_isa! {
    /// Sums over the image for the gradients of scale and shift.
    pub(crate) fn gradients(sizes: Pooling, affine: Affine<'_>, x: &[f32], dy: &[f32], sums: Sums<'_>)
        => gradients_body;
}

per_isa! {
    /// `dx = scale * g + slope * x + level` with `g` the gradient that pooling and ReLU pass on to each pixel.
    pub(crate) fn input_gradient(
        sizes: Pooling,
        affine: Affine<'_>,
        line: Affine<'_>,
        x: &[f32],
        dy: &[f32],
        dx: &mut [f32],
    ) => input_gradient_body;
}

#[inline(always)]
fn statistics_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    x: &[f32],
    mean: &mut [f32],
    deviation: &mut [f32],
) {
    let channels = mean.len();
    let scale = channels as f32 / x.len() as f32;
    let whole = channels / W * W;
    for c in (0..whole).step_by(W) {
        statistics_block::<FMA, W>(&x[c..], channels, scale, &mut mean[c..], &mut deviation[c..]);
    }
    for c in whole..channels {
        statistics_block::<FMA, 1>(&x[c..], channels, scale, &mut mean[c..], &mut deviation[c..]);
    }
}

/// Two passes over an image that is in the cache by the second: no cancellation.
#[inline(always)]
fn statistics_block<const FMA: bool, const W: usize>(
    x: &[f32],
    channels: usize,
    scale: f32,
    mean: &mut [f32],
    deviation: &mut [f32],
) {
    let mut sum = Lane::<W>::ZERO;
    for pixel in x.chunks(channels) {
        sum = sum.plus(Lane::load(pixel));
    }
    let centre = sum.times_plus::<FMA>(scale, Lane::ZERO);
    let mut squares = Lane::<W>::ZERO;
    for pixel in x.chunks(channels) {
        let difference = Lane::load(pixel).minus(centre);
        squares = difference.mul_plus::<FMA>(difference, squares);
    }
    centre.store(mean);
    squares.store(deviation);
}

#[inline(always)]
fn forward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    sizes: Pooling,
    affine: Affine<'_>,
    x: &[f32],
    y: &mut [f32],
) {
    let channels = sizes.channels;
    let whole = channels / W * W;
    for (pixel, y) in y.chunks_exact_mut(channels).enumerate() {
        let x = &x[sizes.window(pixel)..];
        for c in (0..whole).step_by(W) {
            forward_block::<FMA, W>(sizes, affine.at(c), &x[c..], &mut y[c..]);
        }
        for c in whole..channels {
            forward_block::<FMA, 1>(sizes, affine.at(c), &x[c..], &mut y[c..]);
        }
    }
}

#[inline(always)]
fn forward_block<const FMA: bool, const W: usize>(sizes: Pooling, affine: Affine<'_>, x: &[f32], y: &mut [f32]) {
    largest::<FMA, W>(sizes, affine, x).max_zero().store(y);
}

/// The largest scaled value of a window.
#[inline(always)]
fn largest<const FMA: bool, const W: usize>(sizes: Pooling, affine: Affine<'_>, x: &[f32]) -> Lane<W> {
    let (scale, shift) = (Lane::load(affine.scale), Lane::load(affine.shift));
    let mut best = Lane::load(x).mul_plus::<FMA>(scale, shift);
    for i in 0..sizes.pool {
        for j in 0..sizes.pool {
            let value = Lane::load(&x[(i * sizes.width + j) * sizes.channels..]).mul_plus::<FMA>(scale, shift);
            best = best.max(value);
        }
    }
    best
}

#[inline(always)]
fn gradients_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    sizes: Pooling,
    affine: Affine<'_>,
    x: &[f32],
    dy: &[f32],
    sums: Sums<'_>,
) {
    let channels = sizes.channels;
    let whole = channels / W * W;
    sums.plain.fill(0.0);
    sums.weighted.fill(0.0);
    for (pixel, dy) in dy.chunks_exact(channels).enumerate() {
        let x = &x[sizes.window(pixel)..];
        for c in (0..whole).step_by(W) {
            let sums =
                Sums { plain: &mut sums.plain[c..], weighted: &mut sums.weighted[c..], centre: &sums.centre[c..] };
            gradients_block::<FMA, W>(sizes, affine.at(c), &x[c..], &dy[c..], sums);
        }
        for c in whole..channels {
            let sums =
                Sums { plain: &mut sums.plain[c..], weighted: &mut sums.weighted[c..], centre: &sums.centre[c..] };
            gradients_block::<FMA, 1>(sizes, affine.at(c), &x[c..], &dy[c..], sums);
        }
    }
}

#[inline(always)]
fn gradients_block<const FMA: bool, const W: usize>(
    sizes: Pooling,
    affine: Affine<'_>,
    x: &[f32],
    dy: &[f32],
    sums: Sums<'_>,
) {
    let (scale, shift) = (Lane::load(affine.scale), Lane::load(affine.shift));
    let best = largest::<FMA, W>(sizes, affine, x);
    let gradient = Lane::<W>::load(dy).where_positive(best);
    // The value that won the window: the first of the largest.
    let mut winner = Lane::<W>::load(x);
    let mut open = best.minus(winner.mul_plus::<FMA>(scale, shift));
    for i in 0..sizes.pool {
        for j in 0..sizes.pool {
            let value = Lane::load(&x[(i * sizes.width + j) * sizes.channels..]);
            let behind = best.minus(value.mul_plus::<FMA>(scale, shift));
            // Strictly closer to the best: only the first of equal ones is taken.
            for l in 0..W {
                if behind.0[l] < open.0[l] {
                    winner.0[l] = value.0[l];
                    open.0[l] = behind.0[l];
                }
            }
        }
    }
    let centred = winner.minus(Lane::load(sums.centre));
    Lane::load(sums.plain).plus(gradient).store(sums.plain);
    centred.mul_plus::<FMA>(gradient, Lane::load(sums.weighted)).store(sums.weighted);
}

#[inline(always)]
fn input_gradient_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(
    sizes: Pooling,
    affine: Affine<'_>,
    line: Affine<'_>,
    x: &[f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    let channels = sizes.channels;
    let whole = channels / W * W;
    if sizes.output_len() * sizes.pool * sizes.pool != sizes.input_len() {
        // The pixels that no window covers; the others are written again below.
        for (dx, x) in dx.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
            for (c, (dx, x)) in dx.iter_mut().zip(x).enumerate() {
                *dx = x * line.scale[c] + line.shift[c];
            }
        }
    }
    for (pixel, dy) in dy.chunks_exact(channels).enumerate() {
        let start = sizes.window(pixel);
        let (x, dx) = (&x[start..], &mut dx[start..]);
        for c in (0..whole).step_by(W) {
            let affines = (affine.at(c), line.at(c));
            input_gradient_block::<FMA, W>(sizes, affines, &x[c..], &dy[c..], &mut dx[c..]);
        }
        for c in whole..channels {
            let affines = (affine.at(c), line.at(c));
            input_gradient_block::<FMA, 1>(sizes, affines, &x[c..], &dy[c..], &mut dx[c..]);
        }
    }
}

#[inline(always)]
fn input_gradient_block<const FMA: bool, const W: usize>(
    sizes: Pooling,
    (affine, line): (Affine<'_>, Affine<'_>),
    x: &[f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    let (scale, shift) = (Lane::load(affine.scale), Lane::load(affine.shift));
    let (slope, level) = (Lane::load(line.scale), Lane::load(line.shift));
    let best = largest::<FMA, W>(sizes, affine, x);
    // What is left to hand out: the first of the largest takes it all.
    let mut gradient = Lane::<W>::load(dy).where_positive(best).mul_plus::<FMA>(scale, Lane::ZERO);
    for i in 0..sizes.pool {
        for j in 0..sizes.pool {
            let offset = (i * sizes.width + j) * sizes.channels;
            let value = Lane::<W>::load(&x[offset..]);
            let scaled = value.mul_plus::<FMA>(scale, shift);
            let mut taken = Lane::ZERO;
            for l in 0..W {
                if scaled.0[l] == best.0[l] {
                    taken.0[l] = gradient.0[l];
                    gradient.0[l] = 0.0;
                }
            }
            value.mul_plus::<FMA>(slope, level).plus(taken).store(&mut dx[offset..]);
        }
    }
}
