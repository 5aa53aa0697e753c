//! An RGB picture to draw on.

use super::font;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// An RGB picture to draw on.
#[derive(Debug)]
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: usize, height: usize, color: Rgb) -> Self {
        Self { width, height, pixels: color.repeat(width * height) }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Rows of red, green and blue bytes.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Fills a rectangle; what lies outside the canvas is left out.
    pub fn fill(&mut self, left: usize, top: usize, width: usize, height: usize, color: Rgb) {
        let right = (left + width).min(self.width);
        for y in top..(top + height).min(self.height) {
            let row = &mut self.pixels[(y * self.width + left.min(right)) * 3..(y * self.width + right) * 3];
            row.chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&color));
        }
    }

    /// Copies RGB pixels of `width` columns to the canvas, which has room for them.
    pub fn paste(&mut self, left: usize, top: usize, width: usize, pixels: &[u8]) {
        for (y, row) in pixels.chunks_exact(width * 3).enumerate() {
            let start = ((top + y) * self.width + left) * 3;
            self.pixels[start..start + row.len()].copy_from_slice(row);
        }
    }

    /// Writes a line of text with its upper left corner at `left`, `top`; every dot is `scale` pixels wide.
    pub fn text(&mut self, left: usize, top: usize, scale: usize, color: Rgb, text: &str) {
        for (place, character) in text.chars().enumerate() {
            let x = left + place * font::ADVANCE * scale;
            for (column, row) in font::dots(character) {
                self.fill(x + column * scale, top + row * scale, scale, scale, color);
            }
        }
    }
}
