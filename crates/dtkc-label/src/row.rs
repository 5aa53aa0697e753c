//! One line of the result: an image and what the model says of it, or why it could not be labelled.

use dtkc_item::ItemError;

use crate::duplicates::Print;

/// What is known of one image after labelling.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Position in the whole, undivided input, from 0.
    pub index: u64,
    /// Where the image came from: a path, a path inside an archive, or `file.h5#row`.
    pub path: String,
    /// The known class, with `--truth`.
    pub truth: Option<String>,
    /// The assignment, or why there is none.
    pub outcome: Result<Label, ItemError>,
}

/// The model's answer for one image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Label {
    /// The most probable cluster.
    pub cluster: u32,
    /// Its probability.
    pub confidence: f32,
    /// The second most probable cluster.
    pub second: u32,
    /// Its probability.
    pub second_confidence: f32,
    /// Confidence minus second confidence.
    pub margin: f32,
    /// How far it is from everything in the training set, from 0 to 1, where the model tells.
    pub outlier: Option<f32>,
    /// All probabilities; empty unless asked for.
    pub probabilities: Vec<f32>,
    /// The embedding; empty unless asked for.
    pub embedding: Vec<f32>,
    /// Width and height of the image before it was brought to the model's size; only on the way to the output.
    pub size: Option<(u32, u32)>,
    /// What copies of the image are found by; only on the way to the output, and only if asked for.
    pub print: Option<Box<Print>>,
}

/// Why an image has no label, as one column of text: the code, a colon, the sentence.
pub fn error_text(error: &ItemError) -> String {
    format!("{}: {}", error.code, error.message)
}

/// Reads back what [`error_text`] wrote.
pub fn parse_error(text: &str) -> ItemError {
    match text.split_once(": ") {
        Some((code, message)) => ItemError::new(code.to_owned(), message),
        None => ItemError::new("unknown", text),
    }
}

const LABELLED: u8 = 1;
const TRUTH: u8 = 2;
const PRINT: u8 = 4;
const OUTLIER: u8 = 8;
const SIZE: u8 = 16;

impl Row {
    /// Appends the row to `out` in the journal's binary form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let labelled = if self.outcome.is_ok() { LABELLED } else { 0 };
        let truth = if self.truth.is_some() { TRUTH } else { 0 };
        out.extend(self.index.to_le_bytes());
        let print = self.outcome.as_ref().ok().and_then(|label| label.print.as_deref());
        let outlier = self.outcome.as_ref().ok().and_then(|label| label.outlier);
        let size = self.outcome.as_ref().ok().and_then(|label| label.size);
        let mut more = if print.is_some() { PRINT } else { 0 } | if outlier.is_some() { OUTLIER } else { 0 };
        more |= if size.is_some() { SIZE } else { 0 };
        out.push(labelled | truth | more);
        put_text(out, &self.path);
        if let Some(truth) = &self.truth {
            put_text(out, truth);
        }
        match &self.outcome {
            Ok(label) => {
                out.extend(label.cluster.to_le_bytes());
                out.extend(label.second.to_le_bytes());
                for value in [label.confidence, label.second_confidence, label.margin] {
                    out.extend(value.to_le_bytes());
                }
                out.extend(outlier.iter().flat_map(|value| value.to_le_bytes()));
                out.extend(
                    size.iter().flat_map(|(width, height)| [width.to_le_bytes(), height.to_le_bytes()]).flatten(),
                );
                put_floats(out, &label.probabilities);
                put_floats(out, &label.embedding);
                if let Some(print) = print {
                    print.encode(out);
                }
            }
            Err(error) => {
                put_text(out, &error.code);
                put_text(out, &error.message);
            }
        }
    }

    /// Takes one row from the front of `bytes`; `None` where they do not hold one.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let index = u64::from_le_bytes(take(bytes)?);
        let [flags] = take(bytes)?;
        let path = take_text(bytes)?;
        let truth = if flags & TRUTH != 0 { Some(take_text(bytes)?) } else { None };
        let outcome = if flags & LABELLED != 0 {
            Ok(Label {
                cluster: u32::from_le_bytes(take(bytes)?),
                second: u32::from_le_bytes(take(bytes)?),
                confidence: f32::from_le_bytes(take(bytes)?),
                second_confidence: f32::from_le_bytes(take(bytes)?),
                margin: f32::from_le_bytes(take(bytes)?),
                outlier: if flags & OUTLIER != 0 { Some(f32::from_le_bytes(take(bytes)?)) } else { None },
                size: if flags & SIZE != 0 { Some(take_size(bytes)?) } else { None },
                probabilities: take_floats(bytes)?,
                embedding: take_floats(bytes)?,
                print: if flags & PRINT != 0 { Some(Box::new(Print::decode(bytes)?)) } else { None },
            })
        } else {
            Err(ItemError::new(take_text(bytes)?, take_text(bytes)?))
        };
        Some(Self { index, path, truth, outcome })
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_floats(out: &mut Vec<u8>, values: &[f32]) {
    out.extend((values.len() as u32).to_le_bytes());
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
}

pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn take_size(bytes: &mut &[u8]) -> Option<(u32, u32)> {
    Some((u32::from_le_bytes(take(bytes)?), u32::from_le_bytes(take(bytes)?)))
}

fn take_slice<'a>(bytes: &mut &'a [u8], unit: usize) -> Option<&'a [u8]> {
    let count = u32::from_le_bytes(take(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(count.checked_mul(unit)?)?;
    *bytes = rest;
    Some(head)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_slice(bytes, 1)?.to_vec()).ok()
}

fn take_floats(bytes: &mut &[u8]) -> Option<Vec<f32>> {
    let (values, _) = take_slice(bytes, 4)?.as_chunks::<4>();
    Some(values.iter().map(|v| f32::from_le_bytes(*v)).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::duplicates::print::tests::print;

    prop_compose! {
        fn label()(
            cluster in 0..9u32, second in 0..9u32, confidence in 0f32..1.0, second_confidence in 0f32..1.0,
            outlier in prop::option::of(0f32..1.0),
            probabilities in prop::collection::vec(0f32..1.0, 0..4), embedding in prop::collection::vec(-9f32..9.0, 0..4),
        ) -> Label {
            let margin = confidence - second_confidence;
            let (size, print) = (None, None);
            Label { cluster, confidence, second, second_confidence, margin, outlier, probabilities, embedding, size, print }
        }
    }

    prop_compose! {
        pub(crate) fn row()(
            index in any::<u64>(), path in ".{0,20}", truth in prop::option::of("[a-z]{0,5}"),
            label in label(), reason in ".{0,20}", failed in any::<bool>(),
        ) -> Row {
            let outcome = if failed { Err(ItemError::new("damaged", reason)) } else { Ok(label) };
            Row { index, path, truth, outcome }
        }
    }

    proptest! {
        #[test]
        fn rows_survive_the_journal(
            mut rows in prop::collection::vec(row(), 0..5), prints in prop::collection::vec(prop::option::of(print()), 5),
            sizes: [Option<(u32, u32)>; 5],
        ) {
            for ((row, print), size) in rows.iter_mut().zip(prints).zip(sizes) {
                if let Ok(label) = &mut row.outcome {
                    label.print = print.map(Box::new);
                    label.size = size;
                }
            }
            let mut bytes = Vec::new();
            rows.iter().for_each(|row| row.encode(&mut bytes));
            let mut rest = bytes.as_slice();
            let back: Vec<Row> = std::iter::from_fn(|| Row::decode(&mut rest)).collect();
            prop_assert_eq!(back, rows);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn cut_or_random_bytes_are_refused_without_panic(row in row(), cut in any::<prop::sample::Index>(), noise: Vec<u8>) {
            let mut bytes = Vec::new();
            row.encode(&mut bytes);
            prop_assert_eq!(Row::decode(&mut &bytes[..cut.index(bytes.len())]), None);
            let _ = Row::decode(&mut noise.as_slice());
        }
    }

    #[test]
    fn a_failure_reads_back_from_its_text() {
        let error = ItemError::new("too_large", "the image is 9x9: too much");
        assert_eq!(parse_error(&error_text(&error)), error);
    }
}
