//! Bytes to network input.

use burn::tensor::{Device, Tensor, TensorData};
use dtkc_item::ImageShape;

/// Scales each image to [0, 1] by its own minimum and maximum; a constant image becomes zeros.
///
/// # Shapes
/// - images: n images of `size`, row-major, channels-last
/// - output: `[n, height, width, channels]`
///
/// # Panics
/// Panics when `images` is no whole number of images.
pub fn scale_images(images: &[u8], size: ImageShape, device: &Device) -> Tensor<4> {
    let scaled = scale_pixels(images, size);
    image_tensor(scaled, size, device)
}

/// A tensor from scaled images, as [`scale_pixels`] or an [`Augmenter`](crate::Augmenter) give them.
pub(crate) fn image_tensor(values: Vec<f32>, size: ImageShape, device: &Device) -> Tensor<4> {
    let n = values.len() / size.len();
    let data = TensorData::new(values, [n, size.height, size.width, size.channels]);
    Tensor::from_data(data, device)
}

/// [`scale_images`] without the tensor.
///
/// # Panics
/// Panics when `images` is no whole number of images.
pub fn scale_pixels(images: &[u8], size: ImageShape) -> Vec<f32> {
    assert!(!size.is_empty() && images.len().is_multiple_of(size.len()), "images must be whole images of {size:?}");
    let mut scaled = Vec::with_capacity(images.len());
    for image in images.chunks_exact(size.len()) {
        let (low, high) = image.iter().fold((u8::MAX, u8::MIN), |(l, h), &p| (l.min(p), h.max(p)));
        let table = scale_table(low, high);
        scaled.extend(image.iter().map(|&p| table[usize::from(p)]));
    }
    scaled
}

/// `(value - low) / (high - low)` for every byte between them; all zero when they are equal.
fn scale_table(low: u8, high: u8) -> [f32; 256] {
    let range = f32::from(high) - f32::from(low);
    let mut table = [0.0; 256];
    for value in low..high {
        table[usize::from(value)] = (f32::from(value) - f32::from(low)) / range;
    }
    if high > low {
        table[usize::from(high)] = 1.0;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_image_uses_its_own_range() {
        let size = ImageShape { height: 1, width: 3, channels: 1 };
        let scaled = scale_pixels(&[10, 20, 30, 0, 255, 51, 7, 7, 7], size);
        assert_eq!(scaled, [0.0, 0.5, 1.0, 0.0, 1.0, 0.2, 0.0, 0.0, 0.0]);
    }
}
