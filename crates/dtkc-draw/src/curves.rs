//! A curve over time for every dimension, one above the other.

use super::Scales;
use super::tile::{Point, Rgb, Tile};

/// Colours that people with any kind of sight tell apart (Okabe and Ito), the pale yellow left out.
const COLORS: [Rgb; 6] = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [130, 130, 130]];
const PALE: Rgb = [228, 229, 231];
const RADIUS: f32 = 0.55;
/// Pixels above and below a curve.
const EDGE: f32 = 3.0;
/// So many of a thousand values at either end have no part in the scale: a single outlier would leave a flat line of the others.
const LEFT_OUT: usize = 3;

/// Height of a picture: the fewer the dimensions, the higher the curves.
pub fn height(dim: usize) -> usize {
    match dim {
        1 => 80,
        2 => 104,
        3 => 126,
        _ => dim * if dim <= 8 { 32 } else { 20 },
    }
}

/// Draws one sequence.
pub fn draw(tile: &mut Tile, values: &[f32], dim: usize, (height, width): (usize, usize), scales: &Scales) {
    let band = height as f32 / dim as f32;
    tile.frame(PALE);
    for place in 0..dim {
        let (top, bottom) = (place as f32 * band, (place + 1) as f32 * band);
        let upright = Upright::new(range(&scales.samples[place]), top + EDGE, bottom - EDGE);
        if let Some(y) = upright.zero() {
            tile.stroke([0.0, width as f32].map(|x| Some(Point { x, y, radius: 0.5 })), PALE);
        }
        let column: Vec<f32> = values.iter().skip(place).step_by(dim).copied().collect();
        let across = (width as f32 - 2.0) / (scales.steps.unwrap_or(column.len()).max(2) - 1) as f32;
        let points = points(&column, across).into_iter();
        let color = COLORS[place % COLORS.len()];
        tile.stroke(points.map(|p| p.map(|(x, v)| Point { x: x + 1.0, y: upright.at(v), radius: RADIUS })), color);
    }
}

/// The values between which nearly all of a sorted sample lie.
fn range(sample: &[f32]) -> (f32, f32) {
    let last = sample.len().saturating_sub(1);
    let out = last * LEFT_OUT / 1000;
    (sample.get(out).copied().unwrap_or(0.0), sample.get(last - out).copied().unwrap_or(0.0))
}

/// Where values are drawn in a band.
#[derive(Debug, Clone, Copy)]
struct Upright {
    range: (f32, f32),
    top: f32,
    bottom: f32,
}

impl Upright {
    fn new(range: (f32, f32), top: f32, bottom: f32) -> Self {
        Self { range, top, bottom }
    }

    /// The height of a value, in the band whatever it is; the middle where all are equal.
    fn at(&self, value: f32) -> f32 {
        let (low, high) = (f64::from(self.range.0), f64::from(self.range.1));
        let share = if high > low { (f64::from(value) - low) / (high - low) } else { 0.5 };
        self.bottom + (share.clamp(0.0, 1.0) as f32) * (self.top - self.bottom)
    }

    /// The height of zero, where it is inside.
    fn zero(&self) -> Option<f32> {
        // On a whole pixel, so that the line is sharp.
        (self.range.0 < 0.0 && self.range.1 > 0.0).then(|| self.at(0.0).floor() + 0.5)
    }
}

/// The points of a curve: place in time and value. Of many steps in one pixel the least and the greatest are enough.
fn points(column: &[f32], across: f32) -> Vec<Option<(f32, f32)>> {
    let together = if across > 0.0 { (0.5 / across) as usize } else { 0 };
    if together < 2 {
        let point = |(step, &value): (usize, &f32)| value.is_finite().then_some((step as f32 * across, value));
        return column.iter().enumerate().map(point).collect();
    }
    let mut points = Vec::new();
    for (number, block) in column.chunks(together).enumerate() {
        let x = (number * together) as f32 * across;
        let finite = || block.iter().copied().filter(|value| value.is_finite());
        match (finite().reduce(f32::min), finite().reduce(f32::max)) {
            (Some(low), Some(high)) => points.extend([Some((x, low)), Some((x, high))]),
            _ => points.push(None),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_are_points_and_many_are_spans() {
        let few = points(&[1.0, f32::NAN, 3.0], 10.0);
        assert_eq!(few, [Some((0.0, 1.0)), None, Some((20.0, 3.0))]);
        let many: Vec<f32> = (0..1_000_000).map(|i| if i % 2 == 0 { -1.0 } else { 2.0 }).collect();
        let drawn = points(&many, 100.0 / 1e6);
        assert!(drawn.len() < 1000, "{}", drawn.len());
        assert!(drawn.iter().flatten().any(|p| p.1 == -1.0) && drawn.iter().flatten().any(|p| p.1 == 2.0));
    }

    #[test]
    fn outliers_do_not_set_the_scale() {
        let mut sample: Vec<f32> = (0..1001).map(|i| i as f32).collect();
        sample[1000] = 1e9;
        assert_eq!((range(&sample), range(&[7.0]), range(&[])), ((3.0, 997.0), (7.0, 7.0), (0.0, 0.0)));
    }

    #[test]
    fn heights_follow_the_range() {
        let upright = Upright::new((-1.0, 3.0), 0.0, 40.0);
        assert_eq!((upright.at(-1.0), upright.at(3.0), upright.at(1.0), upright.zero()), (40.0, 0.0, 20.0, Some(30.5)));
        let flat = Upright::new((2.0, 2.0), 0.0, 40.0);
        assert_eq!((flat.at(2.0), flat.zero()), (20.0, None));
        let wide = Upright::new((f32::MIN, f32::MAX), 0.0, 40.0);
        assert_eq!(wide.at(0.0), 20.0);
    }
}
