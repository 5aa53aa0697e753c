//! The ten figures as strokes, on a canvas from -1 to 1 with the first axis to the right and the second
//! one down. What varies here is what a person varies on purpose: how far a spiral is wound, how wide an
//! arrow's head is. The hand's own errors come later, in [`super::hand`].

use super::random::{Random, turn};

/// A point of the canvas.
pub type Point = [f64; 2];

/// The classes, in the order of their labels.
pub const NAMES: [&str; 10] =
    ["ring", "cross", "triangle", "zigzag", "spiral", "arrow", "star", "hash", "eight", "fork"];

/// One movement of the pen.
#[derive(Debug, Clone, PartialEq)]
pub struct Stroke {
    /// Where it leads through.
    pub points: Vec<Point>,
    /// Whether it is round between the points, or straight.
    pub round: bool,
}

fn straight(points: &[Point]) -> Stroke {
    Stroke { points: points.to_vec(), round: false }
}

fn round(points: Vec<Point>) -> Stroke {
    Stroke { points, round: true }
}

/// The strokes of figure number `class`.
pub fn draw(class: usize, random: &mut Random) -> Vec<Stroke> {
    match class {
        0 => ring(random),
        1 => cross(random),
        2 => triangle(random),
        3 => zigzag(random),
        4 => spiral(random),
        5 => arrow(random),
        6 => star(random),
        7 => hash(random),
        8 => eight(random),
        _ => fork(random),
    }
}

fn ring(random: &mut Random) -> Vec<Stroke> {
    let start = random.unit();
    // A ring is rarely closed exactly: it stops short or runs over.
    let sweep = random.range(0.92, 1.06);
    let flat = random.range(0.75, 1.0);
    let point = |i: usize| {
        let (c, s) = turn(start + sweep * i as f64 / 12.0);
        [0.85 * flat * c, 0.85 * s]
    };
    vec![round((0..=12).map(point).collect())]
}

fn cross(random: &mut Random) -> Vec<Stroke> {
    let (x, y) = (random.range(-0.2, 0.2), random.range(-0.25, 0.25));
    vec![straight(&[[x, -0.85], [x, 0.85]]), straight(&[[-0.85, y], [0.85, y]])]
}

fn triangle(random: &mut Random) -> Vec<Stroke> {
    let top = [random.range(-0.25, 0.25), -0.8];
    let gap = random.range(-0.08, 0.1);
    vec![straight(&[top, [0.85, 0.7], [-0.85, 0.7], [top[0] - gap, top[1] + gap]])]
}

fn zigzag(random: &mut Random) -> Vec<Stroke> {
    let corners = 4 + random.below(2);
    let reach = random.range(0.6, 0.85);
    let point = |i: usize| {
        let y = -0.85 + 1.7 * i as f64 / corners as f64;
        [if i.is_multiple_of(2) { -reach } else { reach }, y]
    };
    vec![straight(&(0..=corners).map(point).collect::<Vec<_>>())]
}

fn spiral(random: &mut Random) -> Vec<Stroke> {
    let turns = random.range(1.5, 2.1);
    let start = random.unit();
    let steps = (turns * 10.0) as usize;
    let point = |i: usize| {
        let along = i as f64 / steps as f64;
        let (c, s) = turn(start + turns * along);
        let radius = 0.06 + 0.86 * along;
        [radius * c, radius * s]
    };
    vec![round((0..=steps).map(point).collect())]
}

fn arrow(random: &mut Random) -> Vec<Stroke> {
    let (back, wide) = (random.range(0.4, 0.65), random.range(0.4, 0.65));
    vec![straight(&[[-0.9, 0.0], [0.9, 0.0]]), straight(&[[0.9 - back, -wide], [0.9, 0.0], [0.9 - back, wide]])]
}

fn star(random: &mut Random) -> Vec<Stroke> {
    // A pentagram in one movement, from tip to tip but one.
    let tilt = random.range(-0.03, 0.03);
    let point = |i: usize| {
        let (c, s) = turn(-0.25 + tilt + 0.4 * i as f64);
        [0.92 * c, 0.92 * s]
    };
    vec![straight(&(0..=5).map(point).collect::<Vec<_>>())]
}

fn hash(random: &mut Random) -> Vec<Stroke> {
    let (a, b) = (random.range(0.25, 0.4), random.range(0.25, 0.4));
    let lean = random.range(0.0, 0.2);
    vec![
        straight(&[[-a + lean, -0.85], [-a - lean, 0.85]]),
        straight(&[[a + lean, -0.85], [a - lean, 0.85]]),
        straight(&[[-0.85, -b], [0.85, -b]]),
        straight(&[[-0.85, b], [0.85, b]]),
    ]
}

fn eight(random: &mut Random) -> Vec<Stroke> {
    let wide = random.range(0.4, 0.6);
    let upper = random.range(0.8, 1.0);
    let point = |i: usize| {
        let along = 0.25 + i as f64 / 20.0;
        let (_, s) = turn(along);
        let (_, s2) = turn(2.0 * along);
        let y = -0.9 * s;
        // The upper loop is the smaller one, as in handwriting.
        let scale = if y < 0.0 { upper } else { 1.0 };
        [wide * scale * 1.25 * s2, y]
    };
    vec![round((0..=20).map(point).collect())]
}

fn fork(random: &mut Random) -> Vec<Stroke> {
    let (wide, bottom) = (random.range(0.55, 0.8), random.range(0.05, 0.3));
    let cup = round(vec![
        [-wide, -0.85],
        [-wide * 0.95, -0.25],
        [-wide * 0.5, bottom],
        [0.0, bottom + 0.08],
        [wide * 0.5, bottom],
        [wide * 0.95, -0.25],
        [wide, -0.85],
    ]);
    vec![cup, straight(&[[0.0, -0.85], [0.0, 0.9]])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_stays_on_the_canvas() {
        for (class, name) in NAMES.iter().enumerate() {
            for stream in 0..50 {
                let strokes = draw(class, &mut Random::new(1, stream));
                let points: Vec<Point> = strokes.iter().flat_map(|s| s.points.clone()).collect();
                assert!(points.len() >= 4, "{name}");
                assert!(points.iter().flatten().all(|v| v.abs() <= 1.05), "{name}: {points:?}");
                let span = |axis: usize| {
                    let values = points.iter().map(|p| p[axis]);
                    values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
                };
                assert!(span(0) > 0.7 && span(1) > 0.7, "{name}");
            }
        }
    }
}
