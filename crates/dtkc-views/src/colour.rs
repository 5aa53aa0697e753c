//! Colour changes of a view, clamped to [0, 1].

use crate::config::AugmentConfig;
use crate::random::{signed, unit};
use dtkc_item::ImageShape;
use rand_chacha::ChaCha8Rng;

/// Entries of the table of powers; it is linear between them.
const STEPS: usize = 1024;

/// Changes `view` in place: saturation and channels (colour images), contrast, brightness, gamma, noise.
pub(crate) fn change(view: &mut [f32], size: ImageShape, config: &AugmentConfig, rng: &mut ChaCha8Rng) {
    let saturation = 1.0 + signed(rng) * config.saturation as f32;
    let contrast = 1.0 + signed(rng) * config.contrast as f32;
    let brightness = signed(rng) * config.brightness as f32;
    let gamma = (signed(rng) * config.gamma as f32).exp();
    if size.channels > 1 && config.saturation > 0.0 {
        saturate(view, size.channels, saturation);
    }
    if size.channels > 1 && config.channel > 0.0 {
        let gains: Vec<f32> = (0..size.channels).map(|_| 1.0 + signed(rng) * config.channel as f32).collect();
        for pixel in view.chunks_exact_mut(size.channels) {
            pixel.iter_mut().zip(&gains).for_each(|(value, gain)| *value *= gain);
        }
    }
    if config.contrast > 0.0 || config.brightness > 0.0 {
        let mean = view.iter().sum::<f32>() / view.len() as f32;
        view.iter_mut().for_each(|v| *v = (*v - mean) * contrast + mean + brightness);
    }
    if config.gamma > 0.0 {
        bend(view, gamma);
    }
    if config.noise > 0.0 {
        view.iter_mut().for_each(|v| *v += config.noise as f32 * normal(rng));
    }
    view.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
}

/// Moves every channel from (or to) the mean of its pixel.
fn saturate(view: &mut [f32], channels: usize, factor: f32) {
    for pixel in view.chunks_exact_mut(channels) {
        let mean = pixel.iter().sum::<f32>() / channels as f32;
        pixel.iter_mut().for_each(|v| *v = mean + (*v - mean) * factor);
    }
}

/// `v^gamma` by a table.
fn bend(view: &mut [f32], gamma: f32) {
    let table: Vec<f32> = (0..=STEPS).map(|i| (i as f32 / STEPS as f32).powf(gamma)).collect();
    for value in view {
        let at = value.clamp(0.0, 1.0) * STEPS as f32;
        let cell = (at as usize).min(STEPS - 1);
        let part = at - cell as f32;
        *value = table[cell] * (1.0 - part) + table[cell + 1] * part;
    }
}

/// A standard normal number (Box-Muller).
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
    radius * (std::f32::consts::TAU * unit(rng)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    const SIZE: ImageShape = ImageShape { height: 20, width: 20, channels: 3 };

    fn changed(config: &AugmentConfig, seed: u64) -> (Vec<f32>, Vec<f32>) {
        let image: Vec<f32> = (0..SIZE.len()).map(|i| (i * 7 % 101) as f32 / 100.0).collect();
        let mut view = image.clone();
        change(&mut view, SIZE, config, &mut generator(seed, b"test....", 0, 0));
        (image, view)
    }

    #[test]
    fn brightness_adds_the_same_to_every_value() {
        let config = AugmentConfig { brightness: 0.3, ..AugmentConfig::off() };
        let (image, view) = changed(&config, 1);
        let added: Vec<f32> =
            image.iter().zip(&view).filter(|(_, v)| (0.001..0.999).contains(*v)).map(|(a, b)| b - a).collect();
        assert!(added.iter().all(|d| (d - added[0]).abs() < 1e-5 && d.abs() <= 0.3));
        assert!(added[0].abs() > 1e-3);
    }

    #[test]
    fn gamma_keeps_black_and_white() {
        let config = AugmentConfig { gamma: 0.8, ..AugmentConfig::off() };
        let (image, view) = changed(&config, 2);
        for (before, after) in image.iter().zip(&view) {
            if *before == 0.0 || *before == 1.0 {
                assert_eq!(before, after);
            }
        }
        assert!(image.iter().zip(&view).any(|(a, b)| (a - b).abs() > 0.01));
    }

    #[test]
    fn gamma_table_follows_the_power() {
        let mut view: Vec<f32> = (0..=1000).map(|i| i as f32 / 1000.0).collect();
        bend(&mut view, 1.7);
        for (i, v) in view.iter().enumerate() {
            let expected = (i as f32 / 1000.0).powf(1.7);
            assert!((v - expected).abs() < 1e-4, "{v} is not {expected}");
        }
    }

    #[test]
    fn noise_has_its_deviation() {
        let mut rng = generator(5, b"test....", 0, 0);
        let values: Vec<f64> = (0..50_000).map(|_| f64::from(normal(&mut rng))).collect();
        let mean = values.iter().sum::<f64>() / 5e4;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 5e4;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn colour_changes_leave_gray_images_alone() {
        let size = ImageShape { height: 5, width: 5, channels: 1 };
        let config = AugmentConfig { channel: 0.5, saturation: 0.5, ..AugmentConfig::off() };
        let image: Vec<f32> = (0..25).map(|i| i as f32 / 24.0).collect();
        let mut view = image.clone();
        change(&mut view, size, &config, &mut generator(0, b"test....", 0, 0));
        assert_eq!(view, image);
    }
}
