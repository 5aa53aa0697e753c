//! Strokes of a pen: the first dimension to the right, the second upwards, the third as the line's width.

use super::tile::{Point, Rgb, Tile};

const INK: Rgb = [32, 33, 36];
const START: Rgb = [213, 94, 0];
const EDGE: f32 = 8.0;
const RADIUS: f32 = 0.9;
/// Half the line's width where the pressure is least and greatest.
const PRESSED: (f32, f32) = (0.5, 2.3);

/// Draws one sequence, as large as there is room; a dot marks where it begins.
pub fn draw(tile: &mut Tile, values: &[f32], dim: usize, (height, width): (usize, usize)) {
    let Some(frame) = Frame::around(values, dim, (height as f32, width as f32)) else { return };
    let points = || values.chunks_exact(dim).map(|step| frame.point(step));
    tile.stroke(points(), INK);
    let first = points().flatten().next();
    tile.stroke(first.map(|point| Some(Point { radius: 2.6, ..point })), START);
}

/// Where a sequence lies in its picture.
#[derive(Debug, PartialEq)]
struct Frame {
    /// The middle of what is drawn, and that of the picture.
    middle: [f64; 2],
    center: [f64; 2],
    scale: f64,
    pressure: Option<(f64, f64)>,
}

impl Frame {
    /// `None` where nothing can be drawn.
    fn around(values: &[f32], dim: usize, (height, width): (f32, f32)) -> Option<Self> {
        let range = |place: usize| {
            let mut all = values.iter().skip(place).step_by(dim).copied().filter(|v| v.is_finite()).map(f64::from);
            let first = all.next()?;
            Some(all.fold((first, first), |(low, high), v| (low.min(v), high.max(v))))
        };
        let (x, y) = (range(0)?, range(1)?);
        let room = |pixels: f32, (low, high): (f64, f64)| f64::from(pixels - 2.0 * EDGE) / (high - low).max(1e-30);
        let scale = room(width, x).min(room(height, y));
        let middle = [(x.0 + x.1) / 2.0, (y.0 + y.1) / 2.0];
        let center = [f64::from(width) / 2.0, f64::from(height) / 2.0];
        let pressure = if dim > 2 { range(2).filter(|(low, high)| high > low) } else { None };
        Some(Self { middle, center, scale, pressure })
    }

    /// A step; `None` where it has no place.
    fn point(&self, step: &[f32]) -> Option<Point> {
        let [x, y] = [f64::from(step[0]), f64::from(step[1])];
        if !(x.is_finite() && y.is_finite()) {
            return None;
        }
        let radius = match (self.pressure, step.get(2)) {
            (Some((low, high)), Some(&force)) if force.is_finite() => {
                let share = ((f64::from(force) - low) / (high - low)) as f32;
                PRESSED.0 + share * (PRESSED.1 - PRESSED.0)
            }
            _ => RADIUS,
        };
        let at = |value: f64, axis: usize| (value - self.middle[axis]) * self.scale;
        Some(Point { x: (self.center[0] + at(x, 0)) as f32, y: (self.center[1] - at(y, 1)) as f32, radius })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strokes_fill_the_picture_and_keep_their_proportions() {
        let values = [0.0, 0.0, 10.0, 5.0, f32::NAN, 1.0];
        let frame = Frame::around(&values, 2, (96.0, 96.0)).unwrap();
        let points: Vec<_> = values.chunks(2).map(|step| frame.point(step)).collect();
        assert_eq!(points[0], Some(Point { x: 8.0, y: 68.0, radius: RADIUS }));
        assert_eq!(points[1], Some(Point { x: 88.0, y: 28.0, radius: RADIUS }));
        assert_eq!(points[2], None);
    }

    #[test]
    fn pressure_is_width_and_a_single_point_is_drawn() {
        let values = [0.0, 0.0, 1.0, 10.0, 5.0, 3.0];
        let frame = Frame::around(&values, 3, (96.0, 96.0)).unwrap();
        let radii: Vec<f32> = values.chunks(3).filter_map(|step| Some(frame.point(step)?.radius)).collect();
        assert_eq!(radii, [PRESSED.0, PRESSED.1]);
        let single = Frame::around(&[7.0, 7.0], 2, (96.0, 96.0)).unwrap();
        assert_eq!(single.point(&[7.0, 7.0]).map(|p| (p.x, p.y)), Some((48.0, 48.0)));
        assert_eq!(Frame::around(&[f32::NAN, 7.0], 2, (96.0, 96.0)), None);
    }
}
