//! Sizes of one convolution of stride 1, and the canvases that its images are put on.

use super::lane::Lane;

/// Sizes of one image, its kernel and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels_in: usize,
    pub(crate) channels_out: usize,
    /// Rows and columns of the kernel.
    pub(crate) kernel: (usize, usize),
    /// Zeros above and to the left.
    pub(crate) before: (usize, usize),
    pub(crate) out_height: usize,
    pub(crate) out_width: usize,
}

impl Geometry {
    /// Values of one input image.
    pub(crate) fn input_len(&self) -> usize {
        self.height * self.width * self.channels_in
    }

    /// Values of one output image.
    pub(crate) fn output_len(&self) -> usize {
        self.out_height * self.out_width * self.channels_out
    }

    /// Values of the kernel.
    pub(crate) fn weight_len(&self) -> usize {
        self.kernel.0 * self.kernel.1 * self.channels_in * self.channels_out
    }
}

/// A canvas that an image is copied onto: zeros around it and channels rounded up to whole blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    /// Row and column of the image's first pixel.
    pub(crate) offset: (usize, usize),
}

/// Adds the sum over all pixels of a canvas to `sums`, one per channel; the canvas has whole vectors of channels.
#[inline(always)]
pub(crate) fn add_pixels<const W: usize>(canvas: &[f32], channels: usize, sums: &mut [f32]) {
    for (block, sums) in sums.chunks_mut(W).enumerate() {
        let mut total = Lane::<W>::ZERO;
        for pixel in canvas.chunks_exact(channels) {
            total = total.plus(Lane::load(&pixel[block * W..]));
        }
        for (sum, value) in sums.iter_mut().zip(total.0) {
            *sum += value;
        }
    }
}

impl Frame {
    /// Values of the canvas.
    pub(crate) fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Whether an image of this size already is the canvas.
    pub(crate) fn is_exact(&self, height: usize, width: usize, channels: usize) -> bool {
        (self.height, self.width, self.channels, self.offset) == (height, width, channels, (0, 0))
    }

    /// Copies an image onto the canvas, with zeros where `mask` is given and not positive.
    #[inline(always)]
    pub(crate) fn place(
        &self,
        canvas: &mut [f32],
        image: &[f32],
        mask: Option<&[f32]>,
        (width, channels): (usize, usize),
    ) {
        if canvas.len() != image.len() {
            canvas.fill(0.0);
        }
        // Whole rows where the channels are not padded, else pixel by pixel.
        let (length, steps) = if self.channels == channels { (width * channels, 1) } else { (channels, width) };
        for (part, from) in image.chunks_exact(length).enumerate() {
            let (y, x) = (part / steps, part % steps);
            let start = ((y + self.offset.0) * self.width + self.offset.1 + x) * self.channels;
            let to = &mut canvas[start..][..length];
            match mask {
                Some(mask) => {
                    for ((to, from), mask) in to.iter_mut().zip(from).zip(&mask[part * length..]) {
                        *to = if *mask > 0.0 { *from } else { 0.0 };
                    }
                }
                None => to.copy_from_slice(from),
            }
        }
    }

    /// The image back from the canvas.
    #[inline(always)]
    pub(crate) fn extract(&self, canvas: &[f32], (width, channels): (usize, usize), image: &mut [f32]) {
        for (y, row) in image.chunks_exact_mut(width * channels).enumerate() {
            let start = ((y + self.offset.0) * self.width + self.offset.1) * self.channels;
            if self.channels == channels {
                row.copy_from_slice(&canvas[start..][..width * channels]);
            } else {
                for (x, pixel) in row.chunks_exact_mut(channels).enumerate() {
                    pixel.copy_from_slice(&canvas[start + x * self.channels..][..channels]);
                }
            }
        }
    }
}
