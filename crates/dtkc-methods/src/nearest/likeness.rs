//! What makes two images alike.

use dtkc_item::{ImageShape, Items};
use serde::{Deserialize, Serialize};

use super::neighbours::{Neighbours, Rows};
use super::outlines::{self, Outlines};
use super::sequences::Resampled;
use super::{Images, images};
use crate::LearnError;
use crate::features::own_vectors;

/// Up to so many clusters are kinds of things, which shapes tell apart; more are often single things, which colours and shades
/// do.
pub(crate) const MANY: usize = 25;

/// Sides of the images whose outlines are taken: more detail is noise.
const OUTLINED: usize = 32;

/// What makes two images alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Likeness {
    /// Equal values in the same pixels.
    #[default]
    Pixels,
    /// Edges of the same direction in the same parts of the image.
    Outlines,
    /// `outlines`; where there are many clusters, whichever of both has them farther apart.
    Auto,
}

impl Likeness {
    /// What it may mean for so many clusters. Which of several it is only the images can say.
    pub(crate) fn candidates(self, clusters: usize) -> &'static [Likeness] {
        match self {
            Likeness::Auto if clusters > MANY => &[Likeness::Pixels, Likeness::Outlines],
            Likeness::Auto | Likeness::Outlines => &[Likeness::Outlines],
            Likeness::Pixels => &[Likeness::Pixels],
        }
    }

    /// Seconds that it takes to compare every pair of `n` images of this shape, about, on two cores.
    pub(crate) fn seconds_of_all_pairs(self, n: usize, shape: ImageShape) -> f64 {
        let values = if self == Likeness::Pixels { shape.len() } else { outlines::WIDTH };
        images::seconds_of_all_pairs(n, values)
    }

    /// The images as rows whose distances say how alike they are.
    pub(crate) fn rows(self, images: Images) -> Box<dyn Rows> {
        match self {
            Likeness::Pixels => Box::new(images),
            _ => {
                let images = images.reduced(OUTLINED);
                Box::new(Outlines::of(images.pixels(), images.shape()))
            }
        }
    }

    /// Its name in files and flags.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Likeness::Pixels => "pixels",
            Likeness::Outlines => "outlines",
            Likeness::Auto => "auto",
        }
    }

    /// The images that are most like each one. Pixels are compared as means of squares, sides of at most `side`.
    pub(crate) fn neighbours(
        self,
        images: &Images,
        side: usize,
        count: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Neighbours, LearnError> {
        let side = if self == Likeness::Pixels { side } else { OUTLINED };
        Neighbours::find(self.rows(images.reduced(side)).as_ref(), count, stop)
    }
}

/// What items look like before anything was learnt about them, row after row: outlines of images, and sequences resampled
/// once `scaled` has scaled their steps. Features are what another network has learnt.
pub(crate) fn compared_rows(items: &Items, scaled: &dyn Fn(&[f32]) -> Vec<f32>) -> Vec<f32> {
    match items {
        Items::Images { shape, pixels } => {
            let images = Images::of(*shape, pixels.clone()).reduced(OUTLINED);
            Outlines::of(images.pixels(), images.shape()).into_values()
        }
        Items::Sequences { dim, .. } => {
            let (steps, lengths) = items.steps().unwrap_or_default();
            Resampled::of(&scaled(steps), &lengths, *dim).into_values()
        }
        Items::Features { .. } => own_vectors(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_clusters_may_be_single_things_or_kinds_of_them() {
        let found = [2, 25, 26, 300].map(|k| Likeness::Auto.candidates(k).len());
        assert_eq!(found, [1, 1, 2, 2]);
        assert_eq!(Likeness::Auto.candidates(25), [Likeness::Outlines]);
        assert_eq!(Likeness::Pixels.candidates(9), [Likeness::Pixels]);
    }
}
