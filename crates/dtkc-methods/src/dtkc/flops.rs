//! Arithmetic of a training step.

use dtkc_core::{RecurrentConfig, ValidModel};
use dtkc_item::{ItemShape, TapShape};

/// Multiplications and additions of one step over `batch` rows, by the plain formulas: forward, gradient to the
/// weights and gradient to the input of every convolution and dense layer (the images need no gradient), and for the
/// `compared` rows that companion objectives see (0 without them) the products of the tensor kernel with their gradients. Symmetry that an implementation may use to
/// save work is not deducted, nor is work that it does beyond this.
pub(super) fn step_flops(model: &ValidModel, batch: usize, compared: usize) -> f64 {
    let config = model.config();
    let (n, mut total) = (batch as f64, 0.0);
    let seen = model.seen();
    let (mut channels, mut is_first) = (seen.channels, true);
    let mut side = (seen.height, seen.width);
    for (block, shape) in config.network.blocks.iter().zip(model.block_shapes()) {
        for _ in 0..block.convs {
            if config.network.padding == dtkc_core::Padding::Valid {
                side = (side.0 + 1 - block.kernel, side.1 + 1 - block.kernel);
            }
            let area = (side.0 * side.1 * block.kernel * block.kernel) as f64;
            let forward = 2.0 * n * area * (channels * block.filters) as f64;
            total += forward * if is_first { 2.0 } else { 3.0 };
            (channels, is_first) = (block.filters, false);
        }
        side = (shape.height, shape.width);
        if compared > 0 {
            let dims = [shape.height, shape.width, shape.channels];
            total += dims
                .iter()
                .map(|&rows| mode_flops(compared as f64, rows, dims.iter().product::<usize>() / rows))
                .sum::<f64>();
        }
    }
    total + dense_flops(model, batch)
}

/// The same where items are features: what is trained, and the kernels on what lies inside the network that described them,
/// which need no gradients.
pub(super) fn feature_flops(model: &ValidModel, rows: usize, compared: usize) -> f64 {
    let ItemShape::Features(shape) = model.config().input else { return dense_flops(model, rows) };
    let n = compared as f64;
    let kernel = |tap: TapShape| match tap {
        TapShape::Vector(size) => 2.0 * n * n * size as f64,
        TapShape::Maps { channels, height, width } => {
            let sides = [channels, height, width];
            sides.iter().map(|&side| mode_flops(n, side, tap.len() / side) / 2.0).sum()
        }
    };
    dense_flops(model, rows) + shape.taps.iter().map(kernel).sum::<f64>()
}

/// The part of the hidden layer and what is behind it.
fn dense_flops(model: &ValidModel, rows: usize) -> f64 {
    let (n, config) = (rows as f64, model.config());
    let (features, hidden, k) = (model.features(), config.network.hidden, config.clusters);
    3.0 * 2.0 * n * (features * hidden + hidden * k) as f64 + 3.0 * 2.0 * n * n * hidden as f64
}

/// The same for `rows` sequences of `steps` steps in all: products of inputs and states with the weights of every layer,
/// twice that for gradients of weights and inputs, and the products of the kernels.
pub(super) fn sequence_flops(model: &ValidModel, rows: usize, steps: f64, compared: usize) -> f64 {
    let config = model.config();
    let RecurrentConfig { layers, units } = config.network.recurrent;
    let width = (2 * units) as f64;
    let mut total = 0.0;
    for layer in 0..layers {
        let inputs = if layer == 0 { config.input.dim().unwrap_or(0) } else { 2 * units };
        let products = 2.0 * steps * (2 * 3 * units) as f64;
        // The values need no gradient.
        let passes = if layer == 0 { 2.0 } else { 3.0 };
        total += products * (passes * inputs as f64 + 3.0 * units as f64);
        total += 3.0 * 2.0 * (compared as f64).powi(2) * width;
    }
    total + dense_flops(model, rows)
}

/// One unfolding of `rows` x `columns`: Gram matrices, their bases, and all pairs of subspaces by the cheaper of
/// the two products; twice that for the gradient.
fn mode_flops(n: f64, rows: usize, columns: usize) -> f64 {
    let (r, d) = (rows.min(columns) as f64, rows.max(columns) as f64);
    let pairs = if r * r <= d { 2.0 * (n * r) * (n * r) * d } else { 2.0 * n * r * d * d + 2.0 * n * n * d * d };
    2.0 * (pairs + 3.0 * n * r * r * d)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_core::ModelConfig;
    use dtkc_item::ImageShape;

    #[test]
    fn mnist_costs_what_paper_and_pencil_say() {
        let size = ImageShape { height: 28, width: 28, channels: 1 };
        let model = ModelConfig::new(size, 10).check().unwrap();
        // By hand, in GFLOP for 120 images: conv 24x24x25x1x32 .1106 x 2, 20x20x25x32x32 2.4576 x 3,
        // 8x8x9x32x32 .1416 x 3, 6x6x9x32x32 .0796 x 3; dense 288x100 + 100x10 and the kernel of z .0300.
        let ddc = step_flops(&model, 120, 0) / 1e9;
        assert!((ddc - 8.2876).abs() < 0.01, "{ddc}");
        let dtkc = step_flops(&model, 120, 120) / 1e9;
        assert!((12.0..14.0).contains(&dtkc), "{dtkc}");
    }
}
