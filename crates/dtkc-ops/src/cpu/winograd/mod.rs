//! Convolution by Winograd's minimal filtering on tiles of 8 x 8.
//!
//! A tile gives `m x m` outputs, `m = 9 - k`, from 64 products per pair of channels instead of `m^2 k^2`: 6.25 times
//! fewer for 5 x 5 kernels, 5 times fewer for 3 x 3. Each of the 64 points is one small matrix product over the
//! channels, which the register tiles run near the machine's peak. The backward pass is the transposed algorithm, so
//! it needs the same number of products. Rounding errors are about five times those of the direct sum (2e-6 of the
//! result's standard deviation).

mod image;
mod transform;
mod weights;

pub(crate) use image::{backward, forward};
pub(crate) use transform::POINTS;
pub(crate) use weights::{gradient, pack, pack_transposed};

use super::{
    geometry::{Frame, Geometry},
    isa::Isa,
};

/// Points of a tile.
pub(crate) const TILE: usize = POINTS * POINTS;

/// Tiles that go through the three stages together: their transforms should stay in the second-level cache.
const GROUP: usize = 28;

/// How one convolution is cut into tiles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) isa: Isa,
    pub(crate) geometry: Geometry,
    /// Outputs of a tile along one axis.
    pub(crate) m: usize,
    pub(crate) tiles: (usize, usize),
    pub(crate) channels_in: usize,
    pub(crate) channels_out: usize,
}

impl Plan {
    /// A plan, or `None` where the direct sum is at least about as good.
    pub(crate) fn new(isa: Isa, geometry: Geometry) -> Option<Plan> {
        let (kernel, columns) = geometry.kernel;
        if kernel != columns || !matches!(kernel, 3 | 5 | 7) {
            return None;
        }
        let m = POINTS + 1 - kernel;
        let tiles = (geometry.out_height.div_ceil(m), geometry.out_width.div_ceil(m));
        let (channels_in, channels_out) = (isa.padded(geometry.channels_in), isa.padded(geometry.channels_out));
        let products = tiles.0 * tiles.1 * TILE * channels_in;
        let direct = geometry.out_height * geometry.out_width * kernel * kernel * geometry.channels_in;
        // Measured: the transforms cost about as much as the products themselves.
        (2 * products <= direct).then_some(Plan { isa, geometry, m, tiles, channels_in, channels_out })
    }

    /// Canvas of an input image: a whole number of tiles.
    pub(crate) fn input_frame(&self) -> Frame {
        let border = self.geometry.kernel.0 - 1;
        Frame {
            height: self.tiles.0 * self.m + border,
            width: self.tiles.1 * self.m + border,
            channels: self.channels_in,
            offset: self.geometry.before,
        }
    }

    /// Canvas of an output image.
    pub(crate) fn output_frame(&self) -> Frame {
        Frame {
            height: self.tiles.0 * self.m,
            width: self.tiles.1 * self.m,
            channels: self.channels_out,
            offset: (0, 0),
        }
    }

    /// Values of the transformed weights in either packing.
    pub(crate) fn weight_len(&self) -> usize {
        TILE * self.channels_in * self.channels_out
    }

    /// Images that go through together: few tiles per image would leave the products too thin.
    pub(crate) fn batch(&self) -> usize {
        (GROUP / self.tiles_per_image()).max(1)
    }

    /// Values of scratch that a call needs.
    pub(crate) fn scratch_len(&self) -> usize {
        let canvases = self.batch() * (self.input_frame().len() * 2 + self.output_frame().len());
        canvases + self.values_len() + self.products_len()
    }

    fn tiles_per_image(&self) -> usize {
        self.tiles.0 * self.tiles.1
    }

    /// Tiles of the largest group, made odd so that the points of a tile do not fall into the same cache set.
    fn group(&self) -> usize {
        (self.batch() * self.tiles_per_image()).min(GROUP) | 1
    }

    fn values_len(&self) -> usize {
        TILE * self.group() * self.channels_in
    }

    fn products_len(&self) -> usize {
        TILE * self.group() * self.channels_out
    }
}
