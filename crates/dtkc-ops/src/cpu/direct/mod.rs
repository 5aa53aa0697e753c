//! Convolution as the plain sum over taps, for the shapes that Winograd's tiles do not suit.
//!
//! In channels-last order the taps of one kernel row are contiguous, so an output row is a few matrix products whose
//! left operand is the image itself, read at a stride of one pixel. With few input channels such a run is short; there
//! the rows that an output row needs are interleaved column by column, which makes all taps of a pixel one run.

mod image;
mod weights;

pub(crate) use image::{backward, forward};
pub(crate) use weights::{gradient, pack, pack_transposed};

use super::{
    geometry::{Frame, Geometry},
    isa::Isa,
};

/// Runs shorter than this are interleaved.
const SHORT: usize = 32;

/// How one convolution is cut into runs of taps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) isa: Isa,
    pub(crate) geometry: Geometry,
    /// Runs per output pixel and taps per run.
    pub(crate) runs: usize,
    pub(crate) taps: usize,
    pub(crate) channels_in: usize,
    pub(crate) channels_out: usize,
}

impl Plan {
    pub(crate) fn new(isa: Isa, geometry: Geometry) -> Plan {
        let (rows, columns) = geometry.kernel;
        let run = columns * geometry.channels_in;
        let (runs, taps) = if run < SHORT { (1, rows * run) } else { (rows, run) };
        Plan {
            isa,
            geometry,
            runs,
            taps,
            channels_in: isa.padded(geometry.channels_in),
            channels_out: isa.padded(geometry.channels_out),
        }
    }

    /// Canvas of an input image: its border.
    pub(crate) fn input_frame(&self) -> Frame {
        let geometry = self.geometry;
        Frame {
            height: geometry.out_height + geometry.kernel.0 - 1,
            width: geometry.out_width + geometry.kernel.1 - 1,
            channels: geometry.channels_in,
            offset: geometry.before,
        }
    }

    /// Canvas of the gradient to the input: the same with whole blocks of channels.
    pub(crate) fn gradient_frame(&self) -> Frame {
        Frame { channels: self.channels_in, ..self.input_frame() }
    }

    /// Canvas of an output image: whole blocks of channels.
    pub(crate) fn output_frame(&self) -> Frame {
        let geometry = self.geometry;
        Frame { height: geometry.out_height, width: geometry.out_width, channels: self.channels_out, offset: (0, 0) }
    }

    /// Values of the packed weights and of their gradient.
    pub(crate) fn weight_len(&self) -> usize {
        self.runs * self.taps * self.channels_out
    }

    /// Values of scratch that a call needs.
    pub(crate) fn scratch_len(&self) -> usize {
        self.input_frame().len() + self.gradient_frame().len() + self.output_frame().len() + self.strip_len()
    }

    /// Whether rows are interleaved.
    pub(crate) fn is_interleaved(&self) -> bool {
        self.runs == 1 && self.geometry.kernel.0 > 1
    }

    /// The interleaved rows of one output row.
    fn strip_len(&self) -> usize {
        if self.is_interleaved() {
            self.input_frame().width * self.geometry.kernel.0 * self.geometry.channels_in
        } else {
            0
        }
    }

    /// Index in `[kh, kw, cin]` of a tap in the order of the runs.
    fn source(&self, run: usize, tap: usize) -> usize {
        if !self.is_interleaved() {
            return run * self.taps + tap;
        }
        let (rows, columns) = self.geometry.kernel;
        let (pixel, channel) = (tap / self.geometry.channels_in, tap % self.geometry.channels_in);
        (pixel % rows * columns + pixel / rows) * self.geometry.channels_in + channel
    }
}
