//! A part of a view is hidden, so that what is left must be enough: a seven is one with a bar through it or without.

use crate::background::Outside;
use crate::random::unit;
use dtkc_item::ImageShape;
use rand_chacha::ChaCha8Rng;

/// Hides a random rectangle, whose sides are at most `most` of the image's, behind the background; behind the mean where the
/// image has none.
pub(crate) fn hide(view: &mut [f32], size: ImageShape, outside: &Outside, most: f32, rng: &mut ChaCha8Rng) {
    let mut stretch = |side: usize| {
        let length = ((unit(rng) * most * side as f32).round() as usize).min(side);
        let first = (unit(rng) * (side - length + 1) as f32) as usize;
        (first.min(side - length), length)
    };
    let ((top, rows), (left, columns)) = (stretch(size.height), stretch(size.width));
    let fill = match outside {
        Outside::Value(background) => background.clone(),
        Outside::Edge | Outside::Reflect => means(view, size.channels),
    };
    for row in view.chunks_exact_mut(size.width * size.channels).skip(top).take(rows) {
        let hidden = &mut row[left * size.channels..][..columns * size.channels];
        hidden.chunks_exact_mut(size.channels).for_each(|pixel| pixel.copy_from_slice(&fill));
    }
}

fn means(view: &[f32], channels: usize) -> Vec<f32> {
    let pixels = (view.len() / channels) as f32;
    (0..channels).map(|channel| view.iter().skip(channel).step_by(channels).sum::<f32>() / pixels).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    const SIZE: ImageShape = ImageShape { height: 10, width: 20, channels: 2 };

    fn hidden(outside: &Outside, seed: u64) -> Vec<f32> {
        let mut view: Vec<f32> = (0..SIZE.len()).map(|i| 2.0 + (i % 2) as f32).collect();
        hide(&mut view, SIZE, outside, 0.5, &mut generator(seed, b"test....", 0, 0));
        view
    }

    #[test]
    fn one_rectangle_has_the_background() {
        let background = Outside::Value(vec![0.0, 1.0]);
        let mut largest = (0, 0);
        for seed in 0..300 {
            let view = hidden(&background, seed);
            let is_hidden = |y: usize, x: usize| view[(y * SIZE.width + x) * 2..][..2] == [0.0, 1.0];
            let rows: Vec<usize> = (0..10).filter(|&y| (0..20).any(|x| is_hidden(y, x))).collect();
            let columns: Vec<usize> = (0..20).filter(|&x| (0..10).any(|y| is_hidden(y, x))).collect();
            let all = (0..10).flat_map(|y| (0..20).map(move |x| (y, x))).filter(|&(y, x)| is_hidden(y, x)).count();
            assert_eq!(all, rows.len() * columns.len(), "a whole rectangle");
            let in_a_row = |places: &[usize]| places.windows(2).all(|pair| pair[1] == pair[0] + 1);
            assert!(in_a_row(&rows) && in_a_row(&columns));
            largest = (largest.0.max(rows.len()), largest.1.max(columns.len()));
        }
        assert_eq!(largest, (5, 10), "half of each side, at most");
    }

    #[test]
    fn images_without_a_background_have_their_mean_there() {
        assert_eq!(hidden(&Outside::Reflect, 1), hidden(&Outside::Value(vec![2.0, 3.0]), 1));
    }
}
