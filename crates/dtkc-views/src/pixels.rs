//! Bytes to what a network sees.

use dtkc_item::ImageShape;

/// Scales each image to [0, 1] by its own minimum and maximum; a constant image becomes zeros.
///
/// # Panics
/// Panics when `images` is no whole number of images.
pub fn scale_pixels(images: &[u8], size: ImageShape) -> Vec<f32> {
    let mut scaled = vec![0.0; images.len()];
    scale_pixels_into(images, size, &mut scaled);
    scaled
}

/// [`scale_pixels`] into memory that is there already.
///
/// # Panics
/// Panics when `images` is no whole number of images or `scaled` has another length.
pub fn scale_pixels_into(images: &[u8], size: ImageShape, scaled: &mut [f32]) {
    assert!(!size.is_empty() && images.len().is_multiple_of(size.len()), "images must be whole images of {size:?}");
    assert_eq!(images.len(), scaled.len(), "as many values as pixels");
    for (image, scaled) in images.chunks_exact(size.len()).zip(scaled.chunks_exact_mut(size.len())) {
        let (low, high) = image.iter().fold((u8::MAX, u8::MIN), |(l, h), &p| (l.min(p), h.max(p)));
        scale(image, (low, high), scaled);
    }
}

/// `(value - low) / (high - low)`; all zero when they are equal. A division for every pixel takes several at once and is
/// faster than a table for every image.
fn scale(image: &[u8], (low, high): (u8, u8), scaled: &mut [f32]) {
    if low >= high {
        return scaled.fill(0.0);
    }
    let (low, range) = (f32::from(low), f32::from(high - low));
    for (to, &from) in scaled.iter_mut().zip(image) {
        *to = (f32::from(from) - low) / range;
    }
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

    #[test]
    fn every_value_is_the_quotient_of_its_definition() {
        for low in [0u8, 1, 7, 100] {
            for high in low..=u8::MAX {
                let size = ImageShape { height: 1, width: usize::from(high - low) + 1, channels: 1 };
                let image: Vec<u8> = (low..=high).collect();
                let range = f32::from(high) - f32::from(low);
                let quotient = |&p: &u8| if range > 0.0 { (f32::from(p) - f32::from(low)) / range } else { 0.0 };
                let expected: Vec<f32> = image.iter().map(quotient).collect();
                let scaled = scale_pixels(&image, size);
                assert_eq!(scaled, expected);
                assert!(high == low || scaled.last() == Some(&1.0));
            }
        }
    }
}
