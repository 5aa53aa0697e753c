//! Sequences as small pictures, all on one scale.

use std::collections::BTreeMap;

use dtkc_draw::{Measure, Style};
use dtkc_item::{Color, ImageSpec, Resize};

use super::thumbnail::{self, Thumbnail};

/// Steps that are kept of a picked sequence: far more than a picture is wide.
const KEPT: usize = 4096;

/// The picked sequences, until all are there and the scale is known.
#[derive(Debug, Default)]
pub struct Curves {
    dim: usize,
    sequences: BTreeMap<u64, Vec<f32>>,
}

impl Curves {
    /// Keeps a sequence of `dim` values a step; of a long one some steps, evenly.
    pub fn add(&mut self, index: u64, dim: usize, values: &[f32]) {
        let steps = values.len() / dim.max(1);
        let every = steps.div_ceil(KEPT).max(1);
        self.dim = dim;
        let kept = values.chunks_exact(dim.max(1)).step_by(every).flatten().copied();
        self.sequences.insert(index, kept.collect());
    }

    /// Draws them.
    pub fn draw(self) -> BTreeMap<u64, Thumbnail> {
        let Self { dim, sequences } = self;
        let mut measure = Measure::new(dim, Style::of(dim, false), false, sequences.len());
        sequences.values().for_each(|values| measure.add(values));
        let pictures = measure.finish();
        let (height, width) = pictures.size();
        let spec = ImageSpec { height, width, color: Color::Rgb, resize: Resize::Stretch };
        let made = |(index, values): (u64, Vec<f32>)| Some((index, thumbnail::as_png(&pictures.draw(&values), spec)?));
        sequences.into_iter().filter_map(made).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sequences_are_thinned_and_all_are_drawn() {
        let mut curves = Curves::default();
        curves.add(7, 3, &vec![1.0; 3 * 1_000_000]);
        curves.add(9, 3, &[0.5; 6]);
        assert!(curves.sequences[&7].len() <= 3 * KEPT && curves.sequences[&9].len() == 6);
        let drawn = curves.draw();
        assert_eq!(drawn.keys().copied().collect::<Vec<_>>(), [7, 9]);
        assert!(drawn.values().all(|picture| picture.source.starts_with("data:image/png;base64,")));
        assert!(Curves::default().draw().is_empty());
    }
}
