//! Bytes to network input.

use burn::tensor::{Device, Tensor, TensorData};
use dtkc_item::ImageShape;
use dtkc_views::scale_pixels;

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
