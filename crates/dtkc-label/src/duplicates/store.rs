//! The prints of all images, side by side in memory: with what the search adds, 364 bytes an image and one for each value
//! of its embedding.

use dtkc_image::{Fingerprint, Hash};

use super::print::{Print, cosine};
use crate::error::{LabelError, Result};

/// Mean gray values of copies differ by no more: a fifth of the brightness, and what a cut takes away.
const BRIGHTNESS: u8 = 64;

/// What the model makes of copies is at least so much alike. No more: a cut changes the ratio of the sides, and a model that
/// puts bars beside an image sees another one.
pub const SIMILAR: f32 = 0.3;

/// The prints of images, by place.
#[derive(Default)]
pub struct Store {
    indices: Vec<u64>,
    looks: Vec<Fingerprint>,
    embeddings: Vec<i8>,
    width: usize,
    room: usize,
}

/// How much two images are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// Bits of their hashes that differ, of 256.
    pub distance: u32,
    /// The cosine of their embeddings.
    pub similarity: f32,
}

impl Store {
    /// With room for so many, which is taken once: growing by and by would take up to twice as much.
    pub fn for_images(count: u64) -> Self {
        Self { room: usize::try_from(count).unwrap_or(0), ..Self::default() }
    }

    /// Puts a print behind the others; `index` is the image's position in the input.
    pub fn push(&mut self, index: u64, print: &Print) -> Result<()> {
        if self.indices.is_empty() {
            self.width = print.embedding.len();
            self.indices.reserve_exact(self.room);
            self.looks.reserve_exact(self.room);
            self.embeddings.reserve_exact(self.room.saturating_mul(self.width));
        }
        if self.width != print.embedding.len() || self.indices.len() >= u32::MAX as usize {
            return Err(LabelError::Internal("fingerprints do not fit together"));
        }
        self.indices.push(index);
        self.looks.push(print.look.clone());
        self.embeddings.extend(&print.embedding);
        Ok(())
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// True without any image.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// An image's position in the input.
    pub fn index(&self, place: u32) -> u64 {
        self.indices[place as usize]
    }

    /// What an image looks like.
    pub fn look(&self, place: u32) -> &Fingerprint {
        &self.looks[place as usize]
    }

    fn embedding(&self, place: u32) -> &[i8] {
        let start = place as usize * self.width;
        &self.embeddings[start..start + self.width]
    }

    /// Places, the ones to keep first: most pixels, then most bytes, then the first in the input.
    pub fn ranked(&self) -> Vec<u32> {
        let mut places: Vec<u32> = (0..self.len() as u32).collect();
        let rank = |place: &u32| {
            let look = self.look(*place);
            let pixels = u64::from(look.width) * u64::from(look.height);
            (std::cmp::Reverse((pixels, look.bytes)), self.index(*place))
        };
        places.sort_unstable_by_key(rank);
        places
    }

    /// How much the whole of `other` is like a view of `place`; `None` where it is no copy.
    pub fn compare(&self, place: u32, view: &Hash, other: u32, most: u32) -> Option<Likeness> {
        let whole = &self.look(other).views[0];
        let distance = view.iter().zip(whole).map(|(a, b)| (a ^ b).count_ones()).sum();
        if distance > allowed(view, whole, most) || !self.bright_alike(place, other) {
            return None;
        }
        let similarity = self.similarity(place, other);
        (similarity >= SIMILAR).then_some(Likeness { distance, similarity })
    }

    /// Whether the brightness of two images is that of copies.
    pub fn bright_alike(&self, a: u32, b: u32) -> bool {
        self.look(a).mean.abs_diff(self.look(b).mean) <= BRIGHTNESS
    }

    /// The cosine of the embeddings.
    pub fn similarity(&self, a: u32, b: u32) -> f32 {
        cosine(self.embedding(a), self.embedding(b))
    }
}

/// Bits that may differ however few are set: what compression does to frequencies at the limit.
const SPARE: u32 = 12;

/// Bits in which two hashes may differ. Where most frequencies are next to nothing (drawings, gradients) few bits are set, any two
/// such hashes are near each other, and less is allowed: `most` is for photographs, of which half of the bits are set.
fn allowed(a: &Hash, b: &Hash, most: u32) -> u32 {
    let set: u32 = a.iter().chain(b).map(|word| word.count_ones()).sum();
    (most * set.min(256) / 256 + SPARE).min(most)
}
