//! Near neighbours as second views: an image and one that looks nearly like it belong together as an image and its own
//! view do, and tell the network about changes that no random view makes.

use dtkc_core::ConfigError;
use dtkc_core::augment::BatchKey;
use dtkc_item::{Batch, ImageShape};
use serde::{Deserialize, Serialize};

use crate::LearnError;
use crate::learner::Passes;
use crate::nearest::{Images, Likeness, Neighbours, Rows as _};
use crate::random::Random;

/// Sides of the images that are compared: enough to tell who is near, and less sensitive to a pixel's move.
const SIDE: usize = 16;
/// Most seconds, about, that finding neighbours may take; a larger set has views enough.
const LONGEST: f64 = 120.0;
/// Most bytes of images that are held for it.
const MOST_BYTES: usize = 1 << 30;

/// Neighbours as second views.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartnerConfig {
    /// Nearest others of an image that may stand in for it; 0 for none.
    pub count: usize,
    /// Probability that one of them does.
    pub share: f64,
    /// What makes images near: `pixels`, `outlines`, or `auto`, which is `pixels` only for many clusters.
    pub by: Likeness,
}

impl PartnerConfig {
    /// Whether there are any.
    pub(super) fn is_on(&self) -> bool {
        self.count > 0 && self.share > 0.0
    }

    /// Refuses numbers that cannot work.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.count > 100 {
            return Err(ConfigError::TooLarge { name: "neighbours.count".into(), value: self.count, most: 100 });
        }
        match (0.0..=1.0).contains(&self.share) {
            true => Ok(()),
            false => {
                Err(ConfigError::Range { name: "neighbours.share".into(), value: self.share, range: "between 0 and 1" })
            }
        }
    }
}

/// Who is near whom by a checkpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub(super) items: Vec<u32>,
    pub(super) squares: Vec<f32>,
}

impl Table {
    /// Whether it can be that of `n` images with `count` neighbours each.
    fn fits(&self, n: usize, count: usize) -> bool {
        let whole = self.items.len() == n * count && self.squares.len() == n * count;
        whole && self.items.iter().all(|&item| (item as usize) < n)
    }
}

/// All images and who is near whom.
pub(super) struct Partners {
    share: f64,
    images: Images,
    nearest: Neighbours,
}

impl Partners {
    /// Finds them, or takes a table that was found before; `None`, with a word, where that would take too much.
    pub(super) fn find(
        config: &PartnerConfig,
        data: &mut dyn Passes,
        shape: ImageShape,
        clusters: usize,
        known: Table,
    ) -> Result<Option<Self>, LearnError> {
        let (n, by) = (data.len(), config.by.for_clusters(clusters));
        let reduced = ImageShape { height: shape.height.min(SIDE), width: shape.width.min(SIDE), ..shape };
        if n * shape.len() > MOST_BYTES || by.seconds_of_all_pairs(n, reduced) > LONGEST {
            data.say(&format!("{n} images are too many to look for near neighbours: random views alone are used"));
            return Ok(None);
        }
        data.note("nearest neighbours");
        let images = Images::read(data, shape)?;
        let count = config.count.min(n.saturating_sub(1));
        let nearest = match known.fits(n, count) {
            true => Neighbours { count, items: known.items, squares: known.squares },
            false => by.neighbours(&images, SIDE, count, &|| data.stop())?,
        };
        Ok((count > 0).then_some(Self { share: config.share, images, nearest }))
    }

    /// What the second views of a batch are made of: the image itself, or a neighbour.
    pub(super) fn pixels(&self, batch: &Batch, key: BatchKey) -> Vec<u8> {
        let place = (key.epoch << 32) ^ key.batch;
        let mut random = Random::new(key.seed, b"partner.", place);
        let mut pixels = Vec::with_capacity(batch.items.pixels().map_or(0, <[u8]>::len));
        for &index in &batch.indices {
            let (drawn, place) = (random.unit(), random.below(self.nearest.count));
            // A batch of another set has no neighbours here.
            let index = index.min(self.images.len().saturating_sub(1));
            let shown = if drawn < self.share { self.nearest.of(index)[place] as usize } else { index };
            pixels.extend_from_slice(self.images.image(shown));
        }
        pixels
    }

    /// Who is near whom.
    pub(super) fn nearest(&self) -> &Neighbours {
        &self.nearest
    }
}
