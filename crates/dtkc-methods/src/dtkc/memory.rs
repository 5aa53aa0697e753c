//! Memory of a training step on the CPU.

use dtkc_core::{Padding, RecurrentConfig, Tap, ValidModel};
use dtkc_item::{ImageShape, ItemShape, TapShape};

/// What the allocator and small tensors add to activations and gradients: measured, see the table below.
const AROUND: f64 = 1.15;
/// The same for the kernels of the companions, whose buffers of a last partial batch are kept, too.
const AROUND_KERNELS: f64 = 1.3;
const BESIDE_KERNELS: f64 = 20.0 * MIB;
/// Results of other sizes (a last partial batch, scoring) that are kept to be used again, at most.
const OTHER_SIZES: f64 = 64.0 * MIB;
/// Weights, their gradients, two moments, the best epoch's and a clone while a step is made.
const COPIES: f64 = 6.0;
const MIB: f64 = 1024.0 * 1024.0;
/// Matrices over all pairs of rows that a loss with its gradients holds at once.
const PAIRS: usize = 24;
/// Units come in whole register tiles of at most so many lanes.
const LANES: usize = 32;

/// Bytes that a step over `rows` sequences of `steps` steps in all takes: what is held of every step for the backward pass,
/// its values and the gradients of the largest layer, and the kernels over all pairs.
pub(super) fn sequence_memory(model: &ValidModel, rows: usize, steps: usize) -> u64 {
    let RecurrentConfig { layers, units } = model.config().network.recurrent;
    let dim = model.config().input.dim().unwrap_or(0);
    // Gates and state of both directions in whole register tiles, and the states that the next layer takes.
    let kept = 10 * units.next_multiple_of(LANES);
    let held = layers * kept + 2 * units * (layers - 1) + 3 * dim;
    let gradients = 4 * units;
    let values = 4.0 * steps as f64 * (held + gradients) as f64;
    let pairs = 4.0 * (PAIRS * rows * rows) as f64;
    let hidden = 2 * units + model.config().clusters + model.fine_clusters();
    let sums = layers * 6 * units * (dim.max(2 * units) + units) + model.config().network.hidden * hidden;
    (AROUND * values + OTHER_SIZES.min(values / 2.0) + pairs + 4.0 * COPIES * sums as f64) as u64
}

/// Bytes that a step over `rows` vectors of another network takes: they, what the hidden layer and the outputs hold, the
/// kernels over all pairs, and those of `compared` items on what lies inside that network (0 without companion objectives).
pub(super) fn feature_memory(model: &ValidModel, rows: usize, compared: usize) -> u64 {
    let (dim, hidden) = (model.features(), model.config().network.hidden);
    let outputs = model.config().clusters + model.fine_clusters();
    let values = 4.0 * (rows * (3 * dim + 8 * hidden + 8 * outputs)) as f64;
    let pairs = 4.0 * (PAIRS * rows * rows) as f64;
    let inside = if compared > 0 { inside_memory(model, compared) } else { 0.0 };
    (AROUND * values + pairs + inside + 4.0 * COPIES * (hidden * (dim + outputs)) as f64) as u64
}

fn inside_memory(model: &ValidModel, compared: usize) -> f64 {
    let ItemShape::Features(shape) = model.config().input else { return 0.0 };
    let maps = shape.taps.iter().filter_map(|tap| match tap {
        TapShape::Maps { channels, height, width } => Some(ImageShape { channels, height, width }),
        TapShape::Vector(_) => None,
    });
    let values = 4.0 * 3.0 * (compared * shape.taps.len()) as f64;
    AROUND_KERNELS * kernels_of(maps, compared) as f64 + BESIDE_KERNELS + values
}

/// Bytes that a step over `rows` rows takes, `compared` of which the companion objectives see (0 without them): what is held
/// for the backward pass, the two largest gradients, and the kernels.
///
/// Beside the peak of `dtkc-train fit` on 650 images, in MiB with 90 for the process: 28x28x1 (plus) 247 and 249 measured, the
/// same with ddc 196 and 203, 32x32x3 309 and 308, 64x64x3 in 32x32 309 and 305, 64x64x3 whole 1028 and 902.
pub(super) fn step_memory(model: &ValidModel, rows: usize, compared: usize) -> u64 {
    let (held, gradients) = activations(model);
    let values = 4.0 * rows as f64 * (held + gradients) as f64;
    let kernels = if compared > 0 { AROUND_KERNELS * kernels(model, compared) as f64 + BESIDE_KERNELS } else { 0.0 };
    let weights = 4.0 * COPIES * weights(model) as f64;
    (AROUND * values + OTHER_SIZES.min(values / 2.0) + kernels + weights) as u64
}

/// Numbers that training changes.
fn weights(model: &ValidModel) -> usize {
    let config = model.config();
    let (mut channels, mut sum) = (model.seen().channels, 0);
    for block in &config.network.blocks {
        let square = block.kernel * block.kernel;
        sum += square * block.filters * (channels + (block.convs - 1) * block.filters);
        channels = block.filters;
    }
    sum + config.network.hidden * (model.features() + config.clusters + model.fine_clusters())
}

/// Values of one row that are held for the backward pass, and of the two largest gradients that follow each other.
fn activations(model: &ValidModel) -> (usize, usize) {
    let mut sizes = vec![model.seen().len()];
    for (outputs, pooled) in convolutions(model).iter().zip(model.block_shapes()) {
        sizes.extend(outputs.iter().map(ImageShape::len));
        sizes.push(pooled.len());
    }
    // The images need no gradient.
    let gradients = sizes[1..].windows(2).map(|pair| pair[0] + pair[1]).max().unwrap_or(0);
    (sizes.iter().sum(), gradients)
}

/// What every convolution of every block gives.
fn convolutions(model: &ValidModel) -> Vec<Vec<ImageShape>> {
    let network = &model.config().network;
    let mut side = model.seen();
    let mut all = Vec::new();
    for (block, pooled) in network.blocks.iter().zip(model.block_shapes()) {
        let outputs = (0..block.convs).map(|_| {
            let lost = if network.padding == Padding::Valid { block.kernel - 1 } else { 0 };
            side = ImageShape { height: side.height - lost, width: side.width - lost, channels: block.filters };
            side
        });
        all.push(outputs.collect());
        side = *pooled;
    }
    all
}

/// Bytes of the tensor kernels of all blocks: the buffers of every unfolding, and the scratch of the largest.
fn kernels(model: &ValidModel, rows: usize) -> u64 {
    let blocks = model.config().network.blocks.iter().zip(convolutions(model)).zip(model.block_shapes());
    let taps = blocks.map(|((block, outputs), &pooled)| match block.tap {
        Tap::Pooled => pooled,
        Tap::Unpooled => outputs.last().copied().unwrap_or(pooled),
    });
    kernels_of(taps, rows)
}

fn kernels_of(taps: impl Iterator<Item = ImageShape>, rows: usize) -> u64 {
    let modes = taps.flat_map(|tap| [tap.height, tap.width, tap.channels].map(|side| [rows, side, tap.len() / side]));
    let (mut held, mut scratch) = (0, 0);
    for memory in modes.map(dtkc_ops::projector_memory) {
        held += memory.held;
        scratch = memory.scratch.max(scratch);
    }
    held + scratch
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_core::{ModelConfig, NetworkConfig};
    use dtkc_item::ItemShape;

    fn model(side: usize, channels: usize, reduce: usize) -> ValidModel {
        let network = NetworkConfig { reduce, ..NetworkConfig::default() };
        let shape = ImageShape { height: side, width: side, channels };
        ModelConfig::new(shape, 10).with_network(network).check().unwrap()
    }

    #[test]
    fn values_are_those_of_paper_and_pencil() {
        // 28x28 + (24x24 + 20x20 + 10x10 + 8x8 + 6x6 + 3x3) x 32, and gradients of the first two convolutions.
        assert_eq!(activations(&model(28, 1, 1)), (784 + (576 + 400 + 100 + 64 + 36 + 9) * 32, (576 + 400) * 32));
        // 5x5x(1 + 32)x32 + 3x3x(32 + 32)x32 + (288 + 10) x 100.
        assert_eq!(weights(&model(28, 1, 1)), 26_400 + 18_432 + 29_800);
    }

    /// Peaks of `fit` (VmHWM, MiB) on two cores, 650 images, two epochs; see [`step_memory`].
    #[test]
    fn forecasts_are_near_what_was_measured() {
        let mib = |model: &ValidModel, rows, compared| 90.0 + step_memory(model, rows, compared) as f64 / MIB;
        for (found, measured) in [
            (mib(&model(28, 1, 1), 240, 120), 249.0),
            (mib(&model(28, 1, 1), 240, 0), 203.0),
            (mib(&model(28, 1, 1), 120, 120), 168.0),
            (mib(&model(32, 3, 1), 240, 120), 308.0),
            (mib(&model(64, 3, 2), 240, 120), 305.0),
            (mib(&model(64, 3, 1), 240, 0), 607.0),
            (mib(&model(64, 3, 1), 240, 120), 902.0),
            (mib(&model(32, 3, 1), 1200, 600), 1306.0),
        ] {
            assert!(found < 1.5 * measured && found > 0.8 * measured, "{found:.0} and {measured}");
        }
    }

    /// Peaks of `fit --preset plus` (VmHWM, MiB): 240 rows of Character Trajectories (at most 175 steps) and of Arabic Digits (at
    /// most 93), and of `authors` where one of 120 sequences has a million steps.
    #[test]
    fn forecasts_of_sequences_are_near_what_was_measured() {
        let mib = |dim, rows, steps| {
            let model = ModelConfig::new(ItemShape::Sequence { dim }, 10).check().unwrap();
            90.0 + sequence_memory(&model, rows, steps) as f64 / MIB
        };
        for (found, measured) in
            [(mib(3, 240, 240 * 150), 298.0), (mib(13, 240, 240 * 80), 274.0), (mib(2, 120, 1_009_500), 3890.0)]
        {
            assert!(found < 1.5 * measured && found > 0.7 * measured, "{found:.0} and {measured}");
        }
    }

    #[test]
    fn large_images_need_what_they_need() {
        let gib = |model: &ValidModel| step_memory(model, 240, 120) as f64 / MIB / 1024.0;
        assert!(gib(&model(256, 3, 1)) > 10.0 && gib(&model(256, 3, 8)) < 0.5);
    }
}
