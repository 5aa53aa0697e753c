//! Made-up characters: two to four strokes between places of a grid, the same for every image of a class.

use super::figures::{Point, Stroke};
use super::random::Random;

/// Places along an axis.
const GRID: usize = 4;
/// Strokes of all classes come from streams of their own, far from those of images.
const FIRST_STREAM: u64 = 1 << 62;

/// The strokes of a class.
pub fn draw(seed: u64, class: usize) -> Vec<Stroke> {
    let mut random = Random::new(seed, FIRST_STREAM + class as u64);
    let count = 2 + random.below(3);
    (0..count).map(|_| stroke(&mut random)).collect()
}

/// Two to four places, no two in a row the same.
fn stroke(random: &mut Random) -> Stroke {
    let count = 2 + random.below(3);
    let mut points: Vec<Point> = Vec::with_capacity(count);
    while points.len() < count {
        let place = [0, 1].map(|_| -0.85 + 1.7 * random.below(GRID) as f64 / (GRID - 1) as f64);
        if points.last() != Some(&place) {
            points.push(place);
        }
    }
    Stroke { points, round: count > 2 && random.below(2) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_always_has_the_same_strokes_and_others_have_others() {
        let all: Vec<Vec<Stroke>> = (0..300).map(|class| draw(1, class)).collect();
        assert_eq!(all[7], draw(1, 7));
        assert_ne!(all[7], draw(2, 7));
        for (class, strokes) in all.iter().enumerate() {
            assert!(strokes.iter().all(|stroke| stroke.points.len() >= 2));
            assert!(!all[..class].contains(strokes), "{class}");
        }
    }
}
