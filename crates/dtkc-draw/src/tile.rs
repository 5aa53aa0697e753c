//! A small picture with smooth lines.

/// Red, green, blue.
pub type Rgb = [u8; 3];

const WHITE: u8 = 255;

/// A small RGB picture, white at first.
#[derive(Debug)]
pub struct Tile {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    /// How much of each pixel the line that is being drawn covers: pieces of one line do not darken each other.
    cover: Vec<f32>,
}

/// A point of a line, and half the line's width there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f32,
    pub y: f32,
    pub radius: f32,
}

impl Tile {
    /// A white tile.
    pub fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![WHITE; width * height * 3], cover: vec![0.0; width * height] }
    }

    /// Rows of red, green and blue bytes.
    pub fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    /// Colours one pixel that is inside.
    pub fn set(&mut self, x: usize, y: usize, color: Rgb) {
        let start = (y * self.width + x) * 3;
        self.pixels[start..start + 3].copy_from_slice(&color);
    }

    /// Draws a thin line along the edges.
    pub fn frame(&mut self, color: Rgb) {
        let (width, height) = (self.width, self.height);
        let across = (0..width).flat_map(|x| [(x, 0), (x, height - 1)]);
        let down = (0..height).flat_map(|y| [(0, y), (width - 1, y)]);
        across.chain(down).for_each(|(x, y)| self.set(x, y, color));
    }

    /// Draws lines through points that are finite; `None` lifts the pen.
    pub fn stroke(&mut self, points: impl IntoIterator<Item = Option<Point>>, color: Rgb) {
        let mut last: Option<Point> = None;
        for point in points {
            if let Some(point) = point {
                self.segment(last.unwrap_or(point), point);
            }
            last = point;
        }
        for (pixel, cover) in self.pixels.chunks_exact_mut(3).zip(&mut self.cover) {
            if *cover > 0.0 {
                for (value, ink) in pixel.iter_mut().zip(color) {
                    *value = (f32::from(*value) * (1.0 - *cover) + f32::from(ink) * *cover).round() as u8;
                }
                *cover = 0.0;
            }
        }
    }

    /// Covers the pixels near a piece of a line, the more the nearer.
    fn segment(&mut self, a: Point, b: Point) {
        let reach = a.radius.max(b.radius) + 1.0;
        let span = |p: f32, q: f32, most: usize| {
            // Casts of floats stay within the limits of the type, whatever they are.
            let (low, high) = (p.min(q) - reach, p.max(q) + reach);
            (low.max(0.0) as usize)..((high.max(0.0) as usize).saturating_add(1).min(most))
        };
        for y in span(a.y, b.y, self.height) {
            for x in span(a.x, b.x, self.width) {
                let covered = coverage(a, b, x as f32 + 0.5, y as f32 + 0.5);
                let cover = &mut self.cover[y * self.width + x];
                *cover = cover.max(covered);
            }
        }
    }
}

/// How much a piece of a line covers of the pixel around (x, y).
fn coverage(a: Point, b: Point, x: f32, y: f32) -> f32 {
    let (dx, dy) = (b.x - a.x, b.y - a.y);
    let length = dx * dx + dy * dy;
    let along = if length > 0.0 { (((x - a.x) * dx + (y - a.y) * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    let distance = (a.x + along * dx - x).hypot(a.y + along * dy - y);
    let radius = a.radius + along * (b.radius - a.radius);
    (radius + 0.5 - distance).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: f32, y: f32) -> Option<Point> {
        Some(Point { x, y, radius: 0.5 })
    }

    fn gray(tile: &Tile, x: usize, y: usize) -> u8 {
        tile.pixels[(y * tile.width + x) * 3]
    }

    #[test]
    fn a_line_is_dark_in_its_middle_and_ends_where_it_ends() {
        let mut tile = Tile::new(10, 5);
        tile.stroke([point(1.5, 2.5), point(6.5, 2.5)], [0; 3]);
        assert_eq!((gray(&tile, 1, 2), gray(&tile, 6, 2), gray(&tile, 8, 2)), (0, 0, 255));
        assert_eq!((gray(&tile, 4, 1), gray(&tile, 4, 0)), (255, 255));
    }

    #[test]
    fn a_lifted_pen_leaves_a_gap_and_nothing_outside_matters() {
        let mut tile = Tile::new(10, 3);
        tile.stroke([point(0.5, 1.5), point(1.5, 1.5), None, point(8.5, 1.5)], [0; 3]);
        assert_eq!((gray(&tile, 1, 1), gray(&tile, 5, 1), gray(&tile, 8, 1)), (0, 255, 0));
        tile.stroke([point(-1e30, -5.0), point(-1e30, 1e30), point(f32::MAX, f32::MIN)], [0; 3]);
        Tile::new(0, 0).stroke([point(0.0, 0.0)], [0; 3]);
    }
}
