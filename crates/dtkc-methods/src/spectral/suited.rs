//! What makes images of so many clusters alike, where that is left open.

use super::embedding::{SpectralOptions, eigenvectors};
use super::graph::{Affinity, Graph};
use crate::LearnError;
use crate::learner::Passes;
use crate::nearest::{Images, Likeness, Neighbours};

/// Sides of the images whose pixels are compared, at most: enough to tell who is near, and less sensitive to a pixel's move.
pub(crate) const SIDE: usize = 16;
/// How well eigenvalues must fit: those of two graphs are compared, no digit of them counts.
const RESIDUAL: f64 = 1e-4;
/// How often clear groups are left at most: COIL-100's are left in .0005 of steps, 100 drawn signs in .0084 by outlines and in
/// .0233 by pixels, which mix them (REPRODUCING.md).
const OFTEN: f64 = 0.015;
/// No seed of a restart: all of a run have one answer.
const SEED: u64 = 0;

/// A likeness and who is near whom by it.
pub(crate) struct Suited {
    pub(crate) by: Likeness,
    pub(crate) nearest: Neighbours,
}

impl Suited {
    /// Of several likenesses the one by whose graph of neighbours so many groups are left least often: coloured objects are
    /// told apart by pixels, drawn signs by outlines, and this tells which a set has without a label.
    pub(crate) fn find(
        by: Likeness,
        images: &Images,
        (count, clusters): (usize, usize),
        data: &dyn Passes,
    ) -> Result<Self, LearnError> {
        let candidates = by.candidates(clusters);
        let mut best: Option<(f64, Self)> = None;
        let mut rates = Vec::new();
        for &by in candidates {
            let nearest = by.neighbours(images, SIDE, count, &|| data.stop())?;
            if candidates.len() == 1 {
                return Ok(Self { by, nearest });
            }
            data.note("eigenvalues");
            let left = how_often_left(&nearest, clusters, &|| data.stop())?;
            rates.push(format!("{} {}", by.name(), in_words(left)));
            if best.as_ref().is_none_or(|(least, _)| left < *least) {
                best = Some((left, Self { by, nearest }));
            }
        }
        let Some((left, found)) = best else { return Err(LearnError::Stopped) };
        let (name, rates) = (found.by.name(), rates.join(", "));
        data.say(&format!(
            "images are compared by {name}: how often one of {clusters} groups is left from an image to a near one: {rates}"
        ));
        if left.is_finite() && left > OFTEN {
            data.say(&format!(
                "near images do not fall into {clusters} clear groups, so that many clusters will mix things: try another number \
                 (--clusters), more images of each kind, or for photos --backbone"
            ));
        }
        Ok(found)
    }
}

fn in_words(left: f64) -> String {
    if left.is_finite() { format!("{:.2} %", 100.0 * left) } else { "falls into more groups".to_owned() }
}

/// The mean over so many groups of how often a step in the graph leaves them; infinite where it has no such groups.
fn how_often_left(nearest: &Neighbours, clusters: usize, stop: &dyn Fn() -> bool) -> Result<f64, LearnError> {
    let graph = Graph::new(nearest, Affinity::Mutual);
    if graph.components() > clusters {
        return Ok(f64::INFINITY);
    }
    let (neighbours, affinity) = (nearest.count, Affinity::Mutual);
    let options = SpectralOptions { clusters, neighbours, affinity, residual: RESIDUAL, seed: SEED };
    match eigenvectors(&graph, &options, stop) {
        Ok(found) => Ok(found.values.iter().map(|value| 1.0 - value).sum::<f64>() / clusters as f64),
        Err(LearnError::Unsuitable(_)) => Ok(f64::INFINITY),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::ImageShape;

    use super::*;
    use crate::learner::Silent;
    use crate::random::Random;

    const GROUPS: usize = 30;
    const EACH: usize = 12;
    const SIDE: usize = 16;

    /// What suits images that `value` draws: of a group, inverted or not, at a row, a column and a channel.
    fn suited(channels: usize, value: impl Fn(usize, bool, [usize; 3]) -> f64) -> Likeness {
        let mut random = Random::new(9, b"test....", 0);
        let mut pixels = Vec::new();
        for image in 0..GROUPS * EACH {
            let is_inverted = random.unit() < 0.5;
            for at in 0..SIDE * SIDE * channels {
                let place = [at / channels / SIDE, at / channels % SIDE, at % channels];
                let noise = 6.0 * random.unit();
                pixels.push((value(image % GROUPS, is_inverted, place) * 240.0 + noise) as u8);
            }
        }
        let images = Images::of(ImageShape { height: SIDE, width: SIDE, channels }, pixels);
        Suited::find(Likeness::Auto, &images, (5, GROUPS), &Silent).unwrap().by
    }

    #[test]
    fn things_of_one_form_are_told_apart_by_colour() {
        let colour = |group: usize, _: bool, [_, x, channel]: [usize; 3]| {
            let shade = Random::new(group as u64, b"testgrp.", channel as u64).unit();
            if x < SIDE / 2 { shade } else { 0.0 }
        };
        assert_eq!(suited(3, colour), Likeness::Pixels);
    }

    #[test]
    fn signs_in_two_shades_are_told_apart_by_outlines() {
        // A disc at a place of the group's own, dark on light or light on dark.
        let sign = |group: usize, is_inverted: bool, [y, x, _]: [usize; 3]| {
            let (dx, dy) = (x as f64 - 2.0 - (2 * (group % 6)) as f64, y as f64 - 3.0 - (2 * (group / 6)) as f64);
            let is_ink = dx * dx + dy * dy < 6.0;
            if is_ink != is_inverted { 1.0 } else { 0.0 }
        };
        assert_eq!(suited(1, sign), Likeness::Outlines);
    }
}
