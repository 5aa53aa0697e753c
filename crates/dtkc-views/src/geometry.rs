//! One affine map per view, with optional elastic distortion, bilinear.

use crate::background::Outside;
use crate::config::AugmentConfig;
use crate::random::{signed, unit};
use dtkc_item::ImageShape;
use rand_chacha::ChaCha8Rng;

/// Cells of the coarse grid of displacements, per side.
const GRID: usize = 4;

/// From a view's pixel to the image's: `source = matrix * (pixel - centre) + offset`, in pixels.
struct Map {
    matrix: [f32; 4],
    offset: [f32; 2],
    /// Displacements (x, y) of the nodes of the coarse grid, when there are any.
    elastic: Option<Vec<[f32; 2]>>,
}

/// Writes a random view of `image` into `view`, and tells what lies outside of the image.
pub(crate) fn warp(
    image: &[f32],
    view: &mut [f32],
    size: ImageShape,
    config: &AugmentConfig,
    rng: &mut ChaCha8Rng,
) -> Outside {
    let map = Map::draw(size, config, rng);
    let sampler = Sampler { image, size, outside: Outside::of(config.fill, image, size) };
    let (cx, cy) = centre(size);
    let [a, b, c, d] = map.matrix;
    for (y, row) in view.chunks_exact_mut(size.width * size.channels).enumerate() {
        let dy = y as f32 - cy;
        for (x, pixel) in row.chunks_exact_mut(size.channels).enumerate() {
            let dx = x as f32 - cx;
            let mut sx = a * dx + b * dy + map.offset[0];
            let mut sy = c * dx + d * dy + map.offset[1];
            if let Some(grid) = &map.elastic {
                let [ex, ey] = displacement(grid, size, x, y);
                sx += ex;
                sy += ey;
            }
            sampler.sample(sx, sy, pixel);
        }
    }
    sampler.outside
}

fn centre(size: ImageShape) -> (f32, f32) {
    ((size.width as f32 - 1.0) / 2.0, (size.height as f32 - 1.0) / 2.0)
}

impl Map {
    /// The number of draws does not depend on the configuration: a change of one number leaves the others' draws.
    fn draw(size: ImageShape, config: &AugmentConfig, rng: &mut ChaCha8Rng) -> Map {
        let angle = (signed(rng) * config.rotation as f32).to_radians();
        let scale = 1.0 + signed(rng) * config.scale as f32;
        let aspect = (1.0 + signed(rng) * config.aspect as f32).sqrt();
        let shear = signed(rng) * config.shear as f32;
        let move_x = signed(rng) * config.translation as f32 * size.width as f32;
        let move_y = signed(rng) * config.translation as f32 * size.height as f32;
        let mirror_x = if unit(rng) < config.flip as f32 { -1.0 } else { 1.0 };
        let mirror_y = if unit(rng) < config.flip_vertical as f32 { -1.0 } else { 1.0 };
        let nodes: Vec<[f32; 2]> = (0..(GRID + 1) * (GRID + 1))
            .map(|_| {
                let reach = config.elastic as f32;
                [signed(rng) * reach * size.width as f32, signed(rng) * reach * size.height as f32]
            })
            .collect();
        // Turn, then shear along x, then stretch; the inverse map is what sampling needs, and as all of them are
        // symmetric around "no change" the drawn map may as well be the inverse.
        let (sin, cos) = if config.rotation == 0.0 { (0.0, 1.0) } else { angle.sin_cos() };
        let (along_x, along_y) = (mirror_x * aspect / scale, mirror_y / (aspect * scale));
        let (cx, cy) = centre(size);
        Map {
            matrix: [cos * along_x, (cos * shear - sin) * along_y, sin * along_x, (sin * shear + cos) * along_y],
            offset: [cx + move_x, cy + move_y],
            elastic: (config.elastic > 0.0).then_some(nodes),
        }
    }
}

/// Bilinear interpolation of the coarse grid.
fn displacement(grid: &[[f32; 2]], size: ImageShape, x: usize, y: usize) -> [f32; 2] {
    let place = |at: usize, side: usize| {
        let t = at as f32 / side.max(2).saturating_sub(1) as f32 * GRID as f32;
        let cell = (t as usize).min(GRID - 1);
        (cell, t - cell as f32)
    };
    let ((gx, fx), (gy, fy)) = (place(x, size.width), place(y, size.height));
    let node = |i: usize, j: usize| grid[(gy + j) * (GRID + 1) + gx + i];
    let mix = |axis: usize| {
        let top = node(0, 0)[axis] * (1.0 - fx) + node(1, 0)[axis] * fx;
        let bottom = node(0, 1)[axis] * (1.0 - fx) + node(1, 1)[axis] * fx;
        top * (1.0 - fy) + bottom * fy
    };
    [mix(0), mix(1)]
}

struct Sampler<'a> {
    image: &'a [f32],
    size: ImageShape,
    outside: Outside,
}

impl Sampler<'_> {
    fn sample(&self, x: f32, y: f32, pixel: &mut [f32]) {
        let (right, bottom) = (self.size.width as f32 - 1.0, self.size.height as f32 - 1.0);
        if x >= 0.0 && y >= 0.0 && x < right && y < bottom {
            self.within(x, y, pixel)
        } else {
            self.across(x, y, pixel)
        }
    }

    /// A place whose four neighbours all lie in the image, as for most pixels: no `floor` and no branch per neighbour.
    fn within(&self, x: f32, y: f32, pixel: &mut [f32]) {
        let (x0, y0) = (x as u32, y as u32);
        let (fx, fy) = (x - x0 as f32, y - y0 as f32);
        let channels = self.size.channels;
        let row = self.size.width * channels;
        let image = &self.image[y0 as usize * row + x0 as usize * channels..][..row + 2 * channels];
        let (above, below) = (&image[..2 * channels], &image[row..]);
        for (i, value) in pixel.iter_mut().enumerate() {
            *value = (1.0 - fx) * (1.0 - fy) * above[i]
                + fx * (1.0 - fy) * above[i + channels]
                + (1.0 - fx) * fy * below[i]
                + fx * fy * below[i + channels];
        }
    }

    /// The general case, also outside of the image.
    fn across(&self, x: f32, y: f32, pixel: &mut [f32]) {
        let (x0, y0) = (x.floor(), y.floor());
        let (fx, fy) = (x - x0, y - y0);
        let (x0, y0) = (x0 as i64, y0 as i64);
        pixel.fill(0.0);
        let corners = [
            (x0, y0, (1.0 - fx) * (1.0 - fy)),
            (x0 + 1, y0, fx * (1.0 - fy)),
            (x0, y0 + 1, (1.0 - fx) * fy),
            (x0 + 1, y0 + 1, fx * fy),
        ];
        for (cx, cy, weight) in corners {
            // A weight of exactly zero must not touch the neighbour: the identity stays exact.
            if weight == 0.0 {
                continue;
            }
            for (value, source) in pixel.iter_mut().zip(self.read(cx, cy)) {
                *value += weight * source;
            }
        }
    }

    /// The channels at a pixel, which may lie outside.
    fn read(&self, x: i64, y: i64) -> &[f32] {
        let ImageShape { height, width, channels } = self.size;
        let inside = (0..width as i64).contains(&x) && (0..height as i64).contains(&y);
        let (x, y) = match &self.outside {
            _ if inside => (x as usize, y as usize),
            Outside::Value(background) => return background,
            Outside::Edge => (nearest(x, width), nearest(y, height)),
            Outside::Reflect => (mirrored(x, width), mirrored(y, height)),
        };
        &self.image[(y * width + x) * channels..][..channels]
    }
}

fn nearest(at: i64, side: usize) -> usize {
    at.clamp(0, side as i64 - 1) as usize
}

/// Mirrored at the middle of the first and the last pixel, as often as it takes.
fn mirrored(at: i64, side: usize) -> usize {
    let last = side as i64 - 1;
    let folded = at.rem_euclid((2 * last).max(1));
    folded.min(2 * last - folded) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Fill;
    use crate::random::generator;

    const SIZE: ImageShape = ImageShape { height: 9, width: 9, channels: 1 };

    fn warped(image: &[f32], size: ImageShape, config: &AugmentConfig, seed: u64) -> Vec<f32> {
        let mut view = vec![0.0; image.len()];
        warp(image, &mut view, size, config, &mut generator(seed, b"test....", 0, 0));
        view
    }

    fn dot(x: usize, y: usize) -> Vec<f32> {
        let mut image = vec![0.0; SIZE.len()];
        image[y * SIZE.width + x] = 1.0;
        image
    }

    #[test]
    fn a_certain_flip_mirrors_exactly() {
        let config = AugmentConfig { flip: 1.0, ..AugmentConfig::off() };
        assert_eq!(warped(&dot(1, 3), SIZE, &config, 0), dot(7, 3));
        let config = AugmentConfig { flip_vertical: 1.0, ..AugmentConfig::off() };
        assert_eq!(warped(&dot(1, 3), SIZE, &config, 0), dot(1, 5));
    }

    #[test]
    fn rotation_keeps_the_centre_and_the_distance_from_it() {
        let config = AugmentConfig { rotation: 40.0, ..AugmentConfig::off() };
        for seed in 0..20 {
            let view = warped(&dot(4, 4), SIZE, &config, seed);
            assert!((view[4 * 9 + 4] - 1.0).abs() < 1e-5);
            // Bilinear sampling spreads a dot; its centre of mass stays near the circle.
            let view = warped(&dot(7, 4), SIZE, &config, seed);
            let mass: f32 = view.iter().sum();
            let mean = |f: fn(usize) -> usize| -> f32 {
                view.iter().enumerate().map(|(i, v)| v * (f(i) as f32 - 4.0)).sum::<f32>() / mass
            };
            let radius = mean(|i| i % 9).hypot(mean(|i| i / 9));
            assert!((radius - 3.0).abs() < 0.25, "seed {seed}: {radius}");
        }
    }

    #[test]
    fn translation_is_bounded() {
        let config = AugmentConfig { translation: 0.2, ..AugmentConfig::off() };
        for seed in 0..50 {
            let view = warped(&dot(4, 4), SIZE, &config, seed);
            let far = view.iter().enumerate().filter(|(_, v)| **v > 0.0);
            assert!(far.clone().count() >= 1);
            assert!(far.map(|(i, _)| (i % 9).abs_diff(4).max((i / 9).abs_diff(4))).all(|d| d <= 2));
        }
    }

    #[test]
    fn a_constant_image_stays_constant_unless_background_is_zero() {
        let image = vec![0.7; SIZE.len()];
        for (fill, constant) in [(Fill::Auto, true), (Fill::Edge, true), (Fill::Reflect, true), (Fill::Zero, false)] {
            let config = AugmentConfig { fill, translation: 0.5, rotation: 45.0, ..AugmentConfig::strong() };
            let view = warped(&image, SIZE, &config, 3);
            assert_eq!(view.iter().all(|v| (v - 0.7).abs() < 1e-5), constant, "{fill:?}");
        }
    }

    /// Turned by up to half a turn and moved by up to a third: every view has corners from outside.
    fn turned(fill: Fill) -> AugmentConfig {
        AugmentConfig { rotation: 180.0, translation: 0.3, fill, ..AugmentConfig::off() }
    }

    #[test]
    fn a_black_border_gives_the_views_of_zero() {
        let image: Vec<f32> = (0..SIZE.len())
            .map(|i| {
                let (x, y) = (i % 9, i / 9);
                if (1..8).contains(&x) && (1..8).contains(&y) { (i * 7 % 11) as f32 / 10.0 } else { 0.0 }
            })
            .collect();
        for seed in 0..20 {
            let view = |fill| warped(&image, SIZE, &turned(fill), seed);
            assert_eq!(view(Fill::Auto), view(Fill::Zero));
        }
    }

    #[test]
    fn paper_stays_paper() {
        // Dark ink that also touches the border, on paper of three colours that are not quite even.
        let size = ImageShape { height: 9, width: 9, channels: 3 };
        let paper = [1.0, 0.95, 0.8];
        let image: Vec<f32> = (0..81)
            .flat_map(|i| {
                paper.map(|value| if (3..6).contains(&(i % 9)) { 0.1 } else { value - (i % 2) as f32 * 0.02 })
            })
            .collect();
        for seed in 0..20 {
            for pixel in warped(&image, size, &turned(Fill::Auto), seed).chunks_exact(3) {
                let ink = (0.95 - pixel[1]) / 0.85;
                for (value, paper) in pixel.iter().zip(paper) {
                    let expected = paper + (0.1 - paper) * ink;
                    assert!((value - expected).abs() < 0.03, "seed {seed}: {pixel:?}");
                }
            }
        }
    }

    #[test]
    fn photographs_are_mirrored() {
        for channels in [1, 3] {
            let size = ImageShape { channels, ..SIZE };
            let image: Vec<f32> = (0..size.len()).map(|i| (i * 31 % 97) as f32 / 96.0).collect();
            let view = |fill| warped(&image, size, &turned(fill), 4);
            assert_eq!(view(Fill::Auto), view(Fill::Reflect));
            assert_ne!(view(Fill::Auto), view(Fill::Zero));
        }
    }

    #[test]
    fn places_outside_are_folded_back() {
        let folded: Vec<usize> = (-5..9).map(|at| mirrored(at, 4)).collect();
        assert_eq!(folded, [1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert!((-3..3).all(|at| mirrored(at, 1) == 0));
    }

    #[test]
    fn single_pixels_and_lines_work() {
        let size = ImageShape { height: 1, width: 1, channels: 1 };
        let config = AugmentConfig { elastic: 0.2, fill: Fill::Reflect, ..AugmentConfig::strong() };
        assert!((warped(&[0.5], size, &config, 0)[0] - 0.5).abs() < 1e-5);
        let size = ImageShape { height: 1, width: 5, channels: 1 };
        assert!(warped(&[0.5; 5], size, &config, 1).iter().all(|v| v.is_finite()));
    }
}
