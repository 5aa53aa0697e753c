//! The hand that draws: its trembling, its slant, its pressure.

use super::figures::{Point, Stroke};
use super::random::{Random, turn};

/// A piece of a line with the pen's radius at both ends, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// Where it starts.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// The radius at the start.
    pub from_radius: f64,
    /// The radius at the end.
    pub to_radius: f64,
}

/// Pieces between two points of a stroke.
const PIECES: usize = 5;

/// Draws strokes on a canvas of that many pixels.
pub fn draw(strokes: Vec<Stroke>, height: usize, width: usize, random: &mut Random) -> Vec<Piece> {
    let side = height.min(width) as f64;
    let place = Placement::random(height, width, random);
    let tremble = random.range(0.02, 0.075);
    let thick = side * random.range(0.024, 0.054);
    let mut pieces = Vec::new();
    for mut stroke in strokes {
        // Round strokes have more points, whose errors would add up to corners.
        let tremble = if stroke.round { 0.6 * tremble } else { tremble };
        for point in &mut stroke.points {
            point[0] += tremble * random.bell();
            point[1] += tremble * random.bell();
        }
        let line = if stroke.round { rounded(&stroke.points) } else { bowed(&stroke.points, random) };
        let line: Vec<Point> = line.into_iter().map(|p| place.apply(p)).collect();
        let pressure = [random.range(0.75, 1.2), random.range(0.75, 1.2)];
        let last = (line.len() - 1) as f64;
        let radius = |i: usize| {
            let along = i as f64 / last;
            // Below a half a line would break up into dots.
            (thick * (pressure[0] * (1.0 - along) + pressure[1] * along)).max(0.5)
        };
        pieces.extend(line.windows(2).enumerate().map(|(i, pair)| Piece {
            from: pair[0],
            to: pair[1],
            from_radius: radius(i),
            to_radius: radius(i + 1),
        }));
    }
    pieces
}

/// Where and how large the figure is on the canvas, and how it is turned and slanted.
struct Placement {
    matrix: [f64; 4],
    centre: Point,
}

impl Placement {
    fn random(height: usize, width: usize, random: &mut Random) -> Self {
        let side = height.min(width) as f64;
        let (c, s) = turn(random.bell() * 0.035);
        let slant = random.bell() * 0.14;
        let scale = side * random.range(0.3, 0.41);
        let (x, y) = (scale * random.range(0.82, 1.08), scale * random.range(0.82, 1.08));
        let shift = |length: usize, random: &mut Random| length as f64 / 2.0 + side * 0.035 * random.bell();
        let centre = [shift(width, random), shift(height, random)];
        // Slant, then scale, then turn.
        Self { matrix: [c * x, (c * slant * x) - s * y, s * x, (s * slant * x) + c * y], centre }
    }

    fn apply(&self, [x, y]: Point) -> Point {
        let [a, b, c, d] = self.matrix;
        [self.centre[0] + a * x + b * y, self.centre[1] + c * x + d * y]
    }
}

/// A Catmull-Rom curve through the points.
fn rounded(points: &[Point]) -> Vec<Point> {
    let last = points.len() - 1;
    let mut line = vec![points[0]];
    for i in 0..last {
        let [p0, p1, p2, p3] = [points[i.saturating_sub(1)], points[i], points[i + 1], points[(i + 2).min(last)]];
        for k in 1..=PIECES {
            let t = k as f64 / PIECES as f64;
            let (t2, t3) = (t * t, t * t * t);
            let axis = |a: usize| {
                0.5 * (2.0 * p1[a]
                    + (p2[a] - p0[a]) * t
                    + (2.0 * p0[a] - 5.0 * p1[a] + 4.0 * p2[a] - p3[a]) * t2
                    + (3.0 * p1[a] - p0[a] - 3.0 * p2[a] + p3[a]) * t3)
            };
            line.push([axis(0), axis(1)]);
        }
    }
    line
}

/// Lines between the points, each bent a little to one side: nobody draws a straight line.
fn bowed(points: &[Point], random: &mut Random) -> Vec<Point> {
    let mut line = vec![points[0]];
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let bow = 0.09 * random.bell();
        let across = [from[1] - to[1], to[0] - from[0]];
        for k in 1..=PIECES {
            let t = k as f64 / PIECES as f64;
            let out = bow * 4.0 * t * (1.0 - t);
            line.push([0, 1].map(|a| from[a] + (to[a] - from[a]) * t + across[a] * out * 0.5));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_go_through_their_points() {
        let points = [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 1.0]];
        let line = rounded(&points);
        assert_eq!(line.len(), 3 * PIECES + 1);
        for (i, point) in points.iter().enumerate() {
            let at = line[i * PIECES];
            assert!((at[0] - point[0]).abs() < 1e-12 && (at[1] - point[1]).abs() < 1e-12);
        }
        let bent = bowed(&points, &mut Random::new(1, 1));
        assert_eq!((bent[0], bent[PIECES], bent[2 * PIECES]), (points[0], points[1], points[2]));
    }

    #[test]
    fn pieces_hang_together() {
        let stroke = Stroke { points: vec![[-0.5, 0.0], [0.5, 0.0], [0.5, 0.5]], round: false };
        let pieces = draw(vec![stroke], 28, 28, &mut Random::new(2, 2));
        assert_eq!(pieces.len(), 2 * PIECES);
        for pair in pieces.windows(2) {
            assert_eq!((pair[0].to, pair[0].to_radius), (pair[1].from, pair[1].from_radius));
        }
    }
}
