//! Near neighbours as second views: an item and one that looks nearly like it belong together as an item and its own
//! view do, and tell the network about changes that no random view makes.

use dtkc_core::ConfigError;
use dtkc_core::augment::BatchKey;
use dtkc_item::{Batch, FeatureShape, ImageShape, ItemShape, Items};
use serde::{Deserialize, Serialize};

use super::surroundings::{Scaled, Search};
use crate::LearnError;
use crate::features::{Described, read_features};
use crate::learner::Passes;
use crate::nearest::{
    Images, Likeness, Neighbours, Resampled, read_sequences, seconds_of_all_pairs, seconds_of_all_sequences,
};
use crate::random::Random;
use crate::spectral::{SIDE, Suited};

/// Most seconds, about, that finding neighbours may take; a larger set has views enough.
const LONGEST: f64 = 120.0;
/// Most bytes of items that are held for it.
const MOST_BYTES: usize = 1 << 30;

/// Neighbours as second views.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartnerConfig {
    /// Nearest others of an item that may stand in for it; 0 for none.
    pub count: usize,
    /// Probability that one of them does.
    pub share: f64,
    /// What makes images near (sequences are compared by their values): `pixels`, `outlines`, or `auto`, which is `outlines` and for many clusters what suits the images.
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
    /// Whether it can be that of `n` items with `count` neighbours each.
    fn fits(&self, n: usize, count: usize) -> bool {
        let whole = self.items.len() == n * count && self.squares.len() == n * count;
        whole && self.items.iter().all(|&item| (item as usize) < n)
    }

    fn with(self, count: usize) -> Neighbours {
        Neighbours { count, items: self.items, squares: self.squares }
    }
}

/// All items and who is near whom.
pub(super) struct Partners {
    share: f64,
    held: Items,
    nearest: Neighbours,
}

impl Partners {
    /// Finds them, or takes a table that was found before; `None`, with a word, where that would take too much.
    pub(super) fn find(search: &Search<'_>, data: &mut dyn Passes, known: Table) -> Result<Option<Self>, LearnError> {
        let config = &search.settings.neighbours;
        let count = config.count.min(data.len().saturating_sub(1));
        let known = known.fits(data.len(), count).then(|| known.with(count));
        let found = match search.shape {
            ItemShape::Image(shape) => find_images(config, data, (shape, search.clusters), known)?,
            ItemShape::Sequence { dim } => find_sequences(config, data, (dim, search.scaled), known)?,
            ItemShape::Features(shape) => find_features(config, data, shape, known)?,
        };
        let Some((held, nearest)) = found else {
            let (n, kind) = (data.len(), search.shape.kind().noun());
            data.say(&format!("{n} {kind} are too many to look for near neighbours: random views alone are used"));
            return Ok(None);
        };
        Ok((count > 0).then_some(Self { share: config.share, held, nearest }))
    }

    /// What the second views of a batch are made of: the item itself, or a neighbour.
    pub(super) fn items(&self, batch: &Batch, key: BatchKey) -> Items {
        let place = (key.epoch << 32) ^ key.batch;
        let mut random = Random::new(key.seed, b"partner.", place);
        let mut items = Items::empty(self.held.shape());
        for &index in &batch.indices {
            let (drawn, place) = (random.unit(), random.below(self.nearest.count));
            // A batch of another set has no neighbours here.
            let index = index.min(self.held.len().saturating_sub(1));
            let shown = if drawn < self.share { self.nearest.of(index)[place] as usize } else { index };
            items.push_from(&self.held, shown);
        }
        items
    }

    /// Who is near whom.
    pub(super) fn nearest(&self) -> &Neighbours {
        &self.nearest
    }
}

/// Images and who is near whom; `None` where there are too many.
fn find_images(
    config: &PartnerConfig,
    data: &mut dyn Passes,
    (shape, clusters): (ImageShape, usize),
    known: Option<Neighbours>,
) -> Result<Option<(Items, Neighbours)>, LearnError> {
    let n = data.len();
    let reduced = ImageShape { height: shape.height.min(SIDE), width: shape.width.min(SIDE), ..shape };
    let seconds = |by: &Likeness| by.seconds_of_all_pairs(n, reduced);
    if n * shape.len() > MOST_BYTES || config.by.candidates(clusters).iter().map(seconds).sum::<f64>() > LONGEST {
        return Ok(None);
    }
    data.note("nearest neighbours");
    let images = Images::read(data, shape)?;
    let nearest = match known {
        Some(known) => known,
        None => Suited::find(config.by, &images, (config.count, clusters), data)?.nearest,
    };
    Ok(Some((images.into_items(), nearest)))
}

/// The same for features: near by what the network that made them finds alike.
fn find_features(
    config: &PartnerConfig,
    data: &mut dyn Passes,
    shape: FeatureShape,
    known: Option<Neighbours>,
) -> Result<Option<(Items, Neighbours)>, LearnError> {
    if seconds_of_all_pairs(data.len(), shape.dim) > LONGEST {
        return Ok(None);
    }
    data.note("nearest neighbours");
    let Some(held) = read_features(data, shape, MOST_BYTES)? else { return Ok(None) };
    let nearest = match known {
        Some(known) => known,
        None => Described::of(&held, shape).neighbours(config.count, &|| data.stop())?,
    };
    Ok(Some((held, nearest)))
}

/// The same for sequences: near by the distance of what they are when they are scaled and resampled.
fn find_sequences(
    config: &PartnerConfig,
    data: &mut dyn Passes,
    (dim, scaled): (usize, Scaled<'_>),
    known: Option<Neighbours>,
) -> Result<Option<(Items, Neighbours)>, LearnError> {
    if seconds_of_all_sequences(data.len(), dim) > LONGEST {
        return Ok(None);
    }
    data.note("nearest neighbours");
    let Some(held) = read_sequences(data, dim, MOST_BYTES)? else { return Ok(None) };
    let nearest = match (known, held.steps()) {
        (Some(known), _) => known,
        (None, Some((steps, lengths))) => {
            Resampled::of(&scaled(steps), &lengths, dim).neighbours(config.count, &|| data.stop())?
        }
        (None, None) => return Ok(None),
    };
    Ok(Some((held, nearest)))
}
