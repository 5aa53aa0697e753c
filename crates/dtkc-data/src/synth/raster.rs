//! From lines to pixels: antialiased, blurred, with noise.

use super::hand::Piece;
use super::random::Random;

/// A gray image in floats from 0 to 1.
pub struct Canvas {
    height: usize,
    width: usize,
    pixels: Vec<f64>,
}

impl Canvas {
    /// All black.
    pub fn new(height: usize, width: usize) -> Self {
        Self { height, width, pixels: vec![0.0; height * width] }
    }

    /// Draws a piece of a line: a pixel is covered as far as it lies inside the pen's radius.
    pub fn draw(&mut self, piece: &Piece) {
        let reach = piece.from_radius.max(piece.to_radius) + 1.0;
        let bounds = |axis: usize, length: usize| {
            let (a, b) = (piece.from[axis], piece.to[axis]);
            let low = (a.min(b) - reach).floor().max(0.0) as usize;
            let high = (a.max(b) + reach).ceil().clamp(0.0, length as f64) as usize;
            low.min(length)..high
        };
        let (dx, dy) = (piece.to[0] - piece.from[0], piece.to[1] - piece.from[1]);
        let length2 = dx * dx + dy * dy;
        for y in bounds(1, self.height) {
            for x in bounds(0, self.width) {
                let (px, py) = (x as f64 + 0.5 - piece.from[0], y as f64 + 0.5 - piece.from[1]);
                let along = if length2 > 0.0 { ((px * dx + py * dy) / length2).clamp(0.0, 1.0) } else { 0.0 };
                let (ex, ey) = (px - along * dx, py - along * dy);
                let radius = piece.from_radius + (piece.to_radius - piece.from_radius) * along;
                let cover = (radius + 0.5 - (ex * ex + ey * ey).sqrt()).clamp(0.0, 1.0);
                let pixel = &mut self.pixels[y * self.width + x];
                *pixel = pixel.max(cover);
            }
        }
    }

    /// Blurs by mixing each pixel with its neighbours: `share` goes to each of the two sides.
    pub fn blur(&mut self, share: f64) {
        let (height, width) = (self.height, self.width);
        let mix = |before: f64, here: f64, after: f64| here * (1.0 - 2.0 * share) + (before + after) * share;
        let mut row = vec![0.0; width];
        for line in self.pixels.chunks_mut(width) {
            row.copy_from_slice(line);
            for x in 0..width {
                line[x] = mix(if x > 0 { row[x - 1] } else { 0.0 }, row[x], row.get(x + 1).copied().unwrap_or(0.0));
            }
        }
        let copy = self.pixels.clone();
        let at = |y: usize, x: usize| copy[y * width + x];
        for y in 0..height {
            for x in 0..width {
                let before = if y > 0 { at(y - 1, x) } else { 0.0 };
                let after = if y + 1 < height { at(y + 1, x) } else { 0.0 };
                self.pixels[y * width + x] = mix(before, at(y, x), after);
            }
        }
    }

    /// The pixels as bytes, with ink of that strength and noise of that deviation.
    pub fn develop(&self, ink: f64, noise: f64, random: &mut Random) -> Vec<u8> {
        let byte = |value: f64| ((value * ink + noise * random.bell()) * 255.0).round().clamp(0.0, 255.0) as u8;
        self.pixels.iter().copied().map(byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(x: f64, y: f64, radius: f64) -> Piece {
        Piece { from: [x, y], to: [x, y], from_radius: radius, to_radius: radius }
    }

    #[test]
    fn a_dot_covers_its_area() {
        let mut canvas = Canvas::new(20, 20);
        canvas.draw(&dot(10.0, 10.0, 5.0));
        let area: f64 = canvas.pixels.iter().sum();
        assert!((area - std::f64::consts::PI * 25.0).abs() < 1.0, "{area}");
        assert_eq!(canvas.pixels[10 * 20 + 10], 1.0);
        assert_eq!(canvas.pixels[0], 0.0);
    }

    #[test]
    fn drawing_outside_is_harmless() {
        let mut canvas = Canvas::new(5, 7);
        for (x, y) in [(-100.0, 2.0), (100.0, 100.0), (-0.5, -0.5), (7.0, 5.0)] {
            canvas.draw(&dot(x, y, 1.0));
        }
        assert!(canvas.pixels.iter().all(|&p| (0.0..=1.0).contains(&p)));
    }

    #[test]
    fn blur_keeps_the_ink() {
        let mut canvas = Canvas::new(20, 20);
        canvas.draw(&dot(10.0, 10.0, 3.0));
        let before: f64 = canvas.pixels.iter().sum();
        canvas.blur(0.2);
        let after: f64 = canvas.pixels.iter().sum();
        assert!((before - after).abs() < 1e-9);
        assert!(canvas.pixels.iter().filter(|&&p| p > 0.0).count() > 40);
    }
}
