//! How much memory an answer takes, known before anything of it is made.
//!
//! Every number here is an upper bound from counts: of images, of clusters and of values per image. It covers all that
//! exists at one time, from the rows that workers give to the text that is sent.

use crate::answer::Format;
use crate::engine::Row;
use crate::models::Served;

/// A character of a name in JSON, at worst `\u0001`; CSV at worst doubles it.
const PER_CHARACTER: u64 = 6;
/// A number and what separates it from the next, in JSON and in CSV, which knows no exponents.
const JSON_NUMBER: u64 = 20;
const CSV_NUMBER: u64 = 60;
/// An image's entry without names and lists: keys, numbers, or an error in one sentence, twice: as values and as text.
const PER_IMAGE: u64 = 2048;
/// Text besides the images.
const AROUND: u64 = 64 << 10;

/// What an answer is about.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    images: u64,
    clusters: u64,
    embedding: u64,
    longest_name: u64,
}

impl Extent {
    /// An answer of that model about so many images.
    pub fn new(images: usize, served: &Served, want_embedding: bool) -> Self {
        let longest_name = served.cluster_names().iter().map(String::len).max().unwrap_or(0);
        Self {
            images: images as u64,
            clusters: served.model.clusters() as u64,
            embedding: if want_embedding { served.model.embedding_size() as u64 } else { 0 },
            longest_name: longest_name as u64,
        }
    }

    /// Bytes of an answer in that form, `names` being the bytes of all names together.
    pub fn assign(&self, format: Format, top_k: usize, names: usize) -> u64 {
        let number = if format == Format::Csv { CSV_NUMBER } else { JSON_NUMBER };
        let name = self.longest_name.saturating_mul(1 + PER_CHARACTER);
        // A listed cluster as a value, and as text with its keys.
        let listed = name + 160 + 2 * number;
        let top = (top_k as u64).min(self.clusters).saturating_mul(listed);
        let each = PER_IMAGE + name + top + self.embedding * number;
        let names = (names as u64).saturating_mul(1 + PER_CHARACTER);
        AROUND.saturating_add(self.rows()).saturating_add(names).saturating_add(self.images.saturating_mul(each))
    }

    /// Bytes of an answer with those outputs, each by its values per image and whether it is in binary.
    pub fn infer(&self, outputs: impl Iterator<Item = (u64, bool)>) -> u64 {
        // Collected as values of at most eight bytes, then written.
        let each = |(values, binary): (u64, bool)| values * (8 + if binary { 8 } else { JSON_NUMBER });
        let outputs: u64 = outputs.map(each).sum();
        AROUND.saturating_add(self.rows()).saturating_add(self.images.saturating_mul(outputs))
    }

    /// True where writing the answer takes long enough to keep other connections waiting.
    pub fn is_large(bytes: u64) -> bool {
        bytes > 4 * AROUND
    }

    fn rows(&self) -> u64 {
        let row = 2 * size_of::<Row>() as u64 + (self.clusters + self.embedding) * size_of::<f32>() as u64;
        self.images.saturating_mul(row)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::ItemError;

    use super::*;
    use crate::answer::{Assigned, PassedOver};

    /// The longest of everything: names of control characters, numbers with all their digits.
    #[test]
    fn no_answer_is_larger_than_its_bound() {
        let (images, k, values) = (50, 30, 40);
        let cluster_names: Vec<String> = (0..k).map(|_| "\u{1}\"".repeat(50)).collect();
        let extent = Extent { images, clusters: k as u64, embedding: values, longest_name: 100 };
        let number = -1.234_567_9e-38_f32;
        let embedding = Some(vec![number; values as usize]);
        let row = Row { cluster: 3, probabilities: vec![number; k], embedding, outlier: Some(number) };
        for top_k in [0, 1, 30, 10_000] {
            for format in [Format::Json, Format::Csv, Format::Ndjson] {
                let names: Vec<String> = (0..images).map(|_| "\u{2}\"".repeat(500)).collect();
                let bound = extent.assign(format, top_k, names.iter().map(String::len).sum());
                let mut outcomes = vec![Ok(row.clone()); images as usize];
                outcomes[7] = Err(ItemError::new("damaged", "x".repeat(400)));
                let assigned = Assigned {
                    model: "m".repeat(100),
                    kind: dtkc_item::ItemKind::Images,
                    names,
                    passed_over: PassedOver::default(),
                    outcomes,
                    cluster_names: cluster_names.clone().into(),
                    top_k,
                };
                let written = format.write(&assigned.into_answer()).unwrap().len() as u64;
                assert!(written < bound, "{format:?} {top_k}: {written} of {bound}");
            }
        }
    }
}
