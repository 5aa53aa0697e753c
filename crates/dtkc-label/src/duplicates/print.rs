//! What is kept of an image to find its copies: what it looks like, and what the model makes of it.

use dtkc_image::{Fingerprint, Hash, VIEWS};

use crate::row::take;

/// A fingerprint and the direction of the embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Print {
    /// What the image looks like.
    pub look: Fingerprint,
    /// The embedding, a byte for each value: its direction is what counts, and a million of them must fit.
    pub embedding: Vec<i8>,
}

impl Print {
    /// From what the worker and the model say.
    pub fn new(look: Fingerprint, embedding: impl Iterator<Item = f32> + Clone) -> Self {
        let largest = embedding.clone().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        // A vector of zeros stays one; what is not finite becomes zero, too.
        let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        Self { look, embedding: embedding.map(|value| (value * scale).round() as i8).collect() }
    }

    /// Appends it to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let Fingerprint { width, height, bytes, mean, flat, views } = &self.look;
        out.extend(width.to_le_bytes());
        out.extend(height.to_le_bytes());
        out.extend(bytes.to_le_bytes());
        out.extend([*mean, u8::from(*flat)]);
        out.extend(views.as_flattened().iter().flat_map(|word| word.to_le_bytes()));
        out.extend((self.embedding.len() as u32).to_le_bytes());
        out.extend(self.embedding.iter().map(|value| value.cast_unsigned()));
    }

    /// Takes one from the front of `bytes`; `None` where they do not hold one.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (width, height) = (u32::from_le_bytes(take(bytes)?), u32::from_le_bytes(take(bytes)?));
        let size = u64::from_le_bytes(take(bytes)?);
        let [mean, flat] = take(bytes)?;
        let mut views: [Hash; VIEWS] = Default::default();
        for word in views.as_flattened_mut() {
            *word = u64::from_le_bytes(take(bytes)?);
        }
        let count = u32::from_le_bytes(take(bytes)?) as usize;
        let (values, rest) = bytes.split_at_checked(count)?;
        *bytes = rest;
        let look = Fingerprint { width, height, bytes: size, mean, flat: flat != 0, views };
        Some(Self { look, embedding: values.iter().map(|value| value.cast_signed()).collect() })
    }
}

/// The cosine of the angle between two embeddings. Without any length they are alike if both are.
pub fn cosine(a: &[i8], b: &[i8]) -> f32 {
    let dot =
        |a: &[i8], b: &[i8]| -> i64 { a.iter().zip(b).map(|(a, b)| i64::from(i16::from(*a) * i16::from(*b))).sum() };
    match (dot(a, a), dot(b, b)) {
        (0, 0) => 1.0,
        (0, _) | (_, 0) => 0.0,
        (x, y) => (dot(a, b) as f64 / ((x as f64) * (y as f64)).sqrt()) as f32,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        pub(crate) fn print()(
            width in 1..9000u32, height in 1..9000u32, bytes in any::<u64>(), mean in any::<u8>(), flat in any::<bool>(),
            views in any::<[[u64; 4]; VIEWS]>(), embedding in prop::collection::vec(any::<i8>(), 0..9),
        ) -> Print {
            Print { look: Fingerprint { width, height, bytes, mean, flat, views }, embedding }
        }
    }

    #[test]
    fn a_byte_a_value_keeps_the_direction() {
        let look = Fingerprint { width: 1, height: 1, bytes: 0, mean: 0, flat: true, views: [[0; 4]; VIEWS] };
        let print = |values: &[f32]| Print::new(look.clone(), values.iter().copied()).embedding;
        let (a, b) = ([0.1, 2.0, -0.7, 0.3], [0.4, 1.5, -0.2, 0.9]);
        let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let exact = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        assert!((cosine(&print(&a), &print(&b)) - exact).abs() < 0.005);
        let larger: Vec<f32> = a.iter().map(|value| value * 1e20).collect();
        assert_eq!(print(&a), print(&larger));
        assert_eq!(print(&[f32::NAN, 1.0]), [0, 127]);
        assert_eq!(print(&[0.0, 0.0]), [0, 0]);
        assert_eq!((cosine(&[0, 0], &[0, 0]), cosine(&[0, 0], &[1, 0]), cosine(&[], &[])), (1.0, 0.0, 1.0));
    }
}
