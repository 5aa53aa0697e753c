//! A few images through the three stages: tiles to the transform domain, 64 small matrix products, tiles back.

use super::{
    Plan, TILE,
    transform::{POINTS, input, input_transposed, output, output_transposed},
};
use crate::cpu::{
    geometry::add_pixels,
    isa::{per_isa, unrolled},
    job::{Backward, Forward},
    lane::Lane,
    tile::{blocks, dot, load, outer, store, with_rows},
};

per_isa! {
    /// Convolves at most [`Plan::batch`] images.
    pub(crate) fn forward(plan: &Plan, job: Forward<'_>) => forward_body;
}

per_isa! {
    /// Gradients of at most [`Plan::batch`] images.
    pub(crate) fn backward(plan: &Plan, job: Backward<'_>) => backward_body;
}

/// A group of tiles in the transform domain: `[point][tile][channel]`.
#[derive(Clone, Copy)]
struct Group {
    first: usize,
    count: usize,
    /// Tiles from one point to the next.
    stride: usize,
}

/// The image of a tile and the canvas pixel where it starts.
#[inline(always)]
fn corner(plan: &Plan, tile: usize) -> (usize, usize, usize) {
    let (image, tile) = (tile / plan.tiles_per_image(), tile % plan.tiles_per_image());
    (image, tile / plan.tiles.1 * plan.m, tile % plan.tiles.1 * plan.m)
}

/// The tiles of some images in groups whose transforms fit the cache.
#[inline(always)]
fn groups(plan: &Plan, images: usize) -> impl Iterator<Item = Group> {
    let stride = plan.group();
    blocks(images * plan.tiles_per_image(), super::GROUP).map(move |(first, count)| Group { first, count, stride })
}

#[inline(always)]
fn forward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(plan: &Plan, job: Forward<'_>) {
    let images = job.x.len() / plan.geometry.input_len();
    let (canvas, rest) = job.scratch.split_at_mut(images * plan.input_frame().len());
    let (values, rest) = rest.split_at_mut(plan.values_len());
    let products = &mut rest[..plan.products_len()];
    let x = input_canvas(plan, job.x, canvas);
    let layer = (job.bias, job.relu);
    for group in groups(plan, images) {
        values_of::<FMA, W>(plan, x, group, values);
        multiply::<FMA, P, L>(
            group,
            (values, plan.channels_in),
            (job.weights, plan.geometry.channels_in),
            (products, plan.channels_out),
        );
        match plan.m {
            6 => output_tiles::<FMA, W, 6>(plan, group, products, layer, job.y),
            4 => output_tiles::<FMA, W, 4>(plan, group, products, layer, job.y),
            _ => output_tiles::<FMA, W, 2>(plan, group, products, layer, job.y),
        }
    }
}

/// The images on their canvases; the images themselves where they fit exactly.
#[inline(always)]
fn input_canvas<'a>(plan: &Plan, x: &'a [f32], canvas: &'a mut [f32]) -> &'a [f32] {
    let (frame, geometry) = (plan.input_frame(), plan.geometry);
    if frame.is_exact(geometry.height, geometry.width, geometry.channels_in) {
        return x;
    }
    for (x, canvas) in x.chunks_exact(geometry.input_len()).zip(canvas.chunks_exact_mut(frame.len())) {
        frame.place(canvas, x, None, (geometry.width, geometry.channels_in));
    }
    canvas
}

/// `N` vectors at a stride.
#[inline(always)]
fn column<const N: usize, const W: usize>(from: &[f32], stride: usize) -> [Lane<W>; N] {
    let mut column = [Lane::ZERO; N];
    unrolled!(I in 0..N {
        column[I] = Lane::load(&from[I * stride..]);
    });
    column
}

/// `B^T d B` of every tile of the group.
#[inline(always)]
fn values_of<const FMA: bool, const W: usize>(plan: &Plan, x: &[f32], group: Group, values: &mut [f32]) {
    let (frame, channels) = (plan.input_frame(), plan.channels_in);
    let row = frame.width * channels;
    let mut half = [[Lane::<W>::ZERO; POINTS]; POINTS];
    for t in 0..group.count {
        let (image, top, left) = corner(plan, group.first + t);
        let start = image * frame.len() + top * row + left * channels;
        let from = &x[start..][..(POINTS - 1) * row + POINTS * channels];
        let to = &mut values[t * channels..];
        for c in (0..channels).step_by(W) {
            for j in 0..POINTS {
                let column = input::<FMA, W>(column(&from[j * channels + c..], row));
                unrolled!(I in 0..POINTS {
                    half[I][j] = column[I];
                });
            }
            for i in 0..POINTS {
                let row = input::<FMA, W>(half[i]);
                unrolled!(J in 0..POINTS {
                    row[J].store(&mut to[(i * POINTS + J) * group.stride * channels + c..]);
                });
            }
        }
    }
}

/// At every point the `count x depth` matrix of the group times the `depth x channels` weights.
#[inline(always)]
fn multiply<const FMA: bool, const P: usize, const L: usize>(
    group: Group,
    (values, values_stride): (&[f32], usize),
    (weights, depth): (&[f32], usize),
    (products, products_stride): (&mut [f32], usize),
) {
    let (weights, _) = weights.as_chunks::<L>();
    let columns = products_stride / L;
    for point in 0..TILE {
        let values = &values[point * group.stride * values_stride..][..group.stride * values_stride];
        let products = &mut products[point * group.stride * products_stride..][..group.stride * products_stride];
        let weights = &weights[point * columns * depth..][..columns * depth];
        for (block, weights) in weights.chunks_exact(depth).enumerate() {
            for (t, rows) in blocks(group.count, P) {
                with_rows!(
                    rows,
                    P,
                    multiply_rows::<FMA, _, L>(
                        (&values[t * values_stride..], values_stride),
                        weights,
                        (&mut products[t * products_stride + block * L..], products_stride),
                    )
                );
            }
        }
    }
}

#[inline(always)]
fn multiply_rows<const FMA: bool, const R: usize, const L: usize>(
    (values, values_stride): (&[f32], usize),
    weights: &[[f32; L]],
    (products, products_stride): (&mut [f32], usize),
) {
    let tile = dot::<FMA, R, L>(values, values_stride, weights, [[0.0; L]; R]);
    store(&tile, products, products_stride);
}

/// `A^T v A` of every tile of the group.
#[inline(always)]
fn output_tiles<const FMA: bool, const W: usize, const M: usize>(
    plan: &Plan,
    group: Group,
    products: &[f32],
    layer: (&[f32], bool),
    y: &mut [f32],
) {
    for t in 0..group.count {
        output_tile::<FMA, W, M>(plan, (group, t), products, layer, y);
    }
}

/// `A^T v A` of one tile plus bias, written to the part of it that lies inside the image.
#[inline(always)]
fn output_tile<const FMA: bool, const W: usize, const M: usize>(
    plan: &Plan,
    (group, t): (Group, usize),
    products: &[f32],
    (bias, relu): (&[f32], bool),
    y: &mut [f32],
) {
    let (geometry, padded) = (plan.geometry, plan.channels_out);
    let channels = geometry.channels_out;
    let (image, top, left) = corner(plan, group.first + t);
    let y = &mut y[image * geometry.output_len()..][..geometry.output_len()];
    let from = &products[t * padded..];
    let columns = M.min(geometry.out_width - left);
    let mut half = [[Lane::<W>::ZERO; POINTS]; M];
    for c in (0..channels).step_by(W) {
        let lanes = W.min(channels - c);
        for j in 0..POINTS {
            let column = column(&from[j * group.stride * padded + c..], POINTS * group.stride * padded);
            let column = output::<FMA, M, W>(column);
            unrolled!(I in 0..M {
                half[I][j] = column[I];
            });
        }
        let mut shift = [0.0; W];
        shift[..lanes].copy_from_slice(&bias[c..][..lanes]);
        for (i, half) in half.into_iter().enumerate().take(geometry.out_height - top) {
            let row = &mut y[((top + i) * geometry.out_width + left) * channels..][..columns * channels];
            for (value, pixel) in output::<FMA, M, W>(half).into_iter().zip(row.chunks_exact_mut(channels)) {
                let mut value = value.plus(Lane(shift));
                if relu {
                    value = value.max_zero();
                }
                if lanes == W {
                    value.store(&mut pixel[c..]);
                } else {
                    pixel[c..][..lanes].copy_from_slice(&value.0[..lanes]);
                }
            }
        }
    }
}

#[inline(always)]
fn backward_body<const FMA: bool, const P: usize, const L: usize, const W: usize>(plan: &Plan, job: Backward<'_>) {
    let (frame, geometry) = (plan.input_frame(), plan.geometry);
    let images = job.x.len() / geometry.input_len();
    let (canvas, rest) = job.scratch.split_at_mut(images * frame.len());
    let (dx_canvas, rest) = rest.split_at_mut(images * frame.len());
    let (dy_canvas, rest) = rest.split_at_mut(images * plan.output_frame().len());
    let (values, rest) = rest.split_at_mut(plan.values_len());
    let products = &mut rest[..plan.products_len()];
    let x = input_canvas(plan, job.x, canvas);
    masked_gradient::<W>(plan, job.dy, job.y, dy_canvas, job.db);
    dx_canvas.fill(0.0);
    for group in groups(plan, images) {
        values_of::<FMA, W>(plan, x, group, values);
        match plan.m {
            6 => spread_tiles::<FMA, W, 6>(plan, group, dy_canvas, products),
            4 => spread_tiles::<FMA, W, 4>(plan, group, dy_canvas, products),
            _ => spread_tiles::<FMA, W, 2>(plan, group, dy_canvas, products),
        }
        accumulate::<FMA, P, L>(plan, group, values, products, job.dw);
        if job.dx.is_some() {
            multiply::<FMA, P, L>(
                group,
                (products, plan.channels_out),
                (job.weights, geometry.channels_out),
                (values, plan.channels_in),
            );
            for t in 0..group.count {
                gather_tile::<FMA, W>(plan, group, t, values, dx_canvas);
            }
        }
    }
    if let Some(dx) = job.dx {
        for (dx, canvas) in dx.chunks_exact_mut(geometry.input_len()).zip(dx_canvas.chunks_exact(frame.len())) {
            frame.extract(canvas, (geometry.width, geometry.channels_in), dx);
        }
    }
}

/// The upstream gradients on their canvases, zero where ReLU was; their sum is the gradient of the bias.
#[inline(always)]
fn masked_gradient<const W: usize>(plan: &Plan, dy: &[f32], y: Option<&[f32]>, canvas: &mut [f32], db: &mut [f32]) {
    let (frame, geometry) = (plan.output_frame(), plan.geometry);
    for (image, canvas) in canvas.chunks_exact_mut(frame.len()).enumerate() {
        let start = image * geometry.output_len();
        let (dy, y) = (&dy[start..][..geometry.output_len()], y.map(|y| &y[start..]));
        frame.place(canvas, dy, y, (geometry.out_width, geometry.channels_out));
        add_pixels::<W>(canvas, frame.channels, db);
    }
}

/// `A dy A^T` of every tile of the group.
#[inline(always)]
fn spread_tiles<const FMA: bool, const W: usize, const M: usize>(
    plan: &Plan,
    group: Group,
    dy: &[f32],
    products: &mut [f32],
) {
    let (frame, channels) = (plan.output_frame(), plan.channels_out);
    let row = frame.width * channels;
    let mut half = [[Lane::<W>::ZERO; M]; POINTS];
    for t in 0..group.count {
        let (image, top, left) = corner(plan, group.first + t);
        let from = &dy[image * frame.len() + top * row + left * channels..];
        let to = &mut products[t * channels..];
        for c in (0..channels).step_by(W) {
            for j in 0..M {
                let column = column(&from[j * channels + c..], row);
                let column = output_transposed::<FMA, M, W>(column);
                unrolled!(I in 0..POINTS {
                    half[I][j] = column[I];
                });
            }
            for (i, half) in half.into_iter().enumerate() {
                let row = output_transposed::<FMA, M, W>(half);
                unrolled!(J in 0..POINTS {
                    row[J].store(&mut to[(i * POINTS + J) * group.stride * channels + c..]);
                });
            }
        }
    }
}

/// At every point the values, transposed, times the gradients: the gradient of the transformed weights.
#[inline(always)]
fn accumulate<const FMA: bool, const P: usize, const L: usize>(
    plan: &Plan,
    group: Group,
    values: &[f32],
    products: &[f32],
    dw: &mut [f32],
) {
    let (cin, cout) = (plan.channels_in, plan.channels_out);
    for point in 0..TILE {
        let values = &values[point * group.stride * cin..][..group.stride * cin];
        let products = &products[point * group.stride * cout..][..group.stride * cout];
        let dw = &mut dw[point * cin * cout..][..cin * cout];
        for column in (0..cout).step_by(L) {
            for (c, rows) in blocks(plan.geometry.channels_in, P) {
                with_rows!(
                    rows,
                    P,
                    accumulate_rows::<FMA, _, L>(
                        (&values[c..], cin),
                        (&products[column..], cout),
                        group.count,
                        &mut dw[c * cout + column..],
                    )
                );
            }
        }
    }
}

#[inline(always)]
fn accumulate_rows<const FMA: bool, const R: usize, const L: usize>(
    values: (&[f32], usize),
    products: (&[f32], usize),
    count: usize,
    dw: &mut [f32],
) {
    let tile = outer::<FMA, R, L>(values, products, count, load(dw, products.1));
    store(&tile, dw, products.1);
}

/// `B v B^T` of one tile, added to the canvas: neighbouring tiles overlap.
#[inline(always)]
fn gather_tile<const FMA: bool, const W: usize>(
    plan: &Plan,
    group: Group,
    t: usize,
    values: &[f32],
    canvas: &mut [f32],
) {
    let (frame, channels) = (plan.input_frame(), plan.channels_in);
    let row = frame.width * channels;
    let (image, top, left) = corner(plan, group.first + t);
    let start = image * frame.len() + top * row + left * channels;
    let from = &values[t * channels..];
    let to = &mut canvas[start..][..(POINTS - 1) * row + POINTS * channels];
    let mut half = [[Lane::<W>::ZERO; POINTS]; POINTS];
    for c in (0..channels).step_by(W) {
        for j in 0..POINTS {
            let column = column(&from[j * group.stride * channels + c..], POINTS * group.stride * channels);
            let column = input_transposed::<FMA, W>(column);
            unrolled!(I in 0..POINTS {
                half[I][j] = column[I];
            });
        }
        for i in 0..POINTS {
            let line = input_transposed::<FMA, W>(half[i]);
            unrolled!(J in 0..POINTS {
                let pixel = &mut to[i * row + J * channels + c..][..W];
                line[J].plus(Lane::load(pixel)).store(pixel);
            });
        }
    }
}
