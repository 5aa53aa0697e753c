//! Sequences: UEA .ts, the Arabic Digits, tables, sounds, Parquet, and what all importers of sequences have in common.
//!
//! A sequence is a list of time steps of the same number of values. An importer yields missing values as NaN; what becomes of
//! them is [`Missing`]'s affair, in one place for all formats.

pub mod arabic;
pub mod files;
pub mod layout;
pub mod lines;
pub mod lists;
pub mod long;
pub mod missing;
pub mod sound;
pub mod table;
pub mod taken;
pub mod ts;
pub mod wide;

pub(crate) mod names;

pub use missing::Missing;

/// Values of one sequence at most: a quarter of a GiB. It is known before a sequence is put together.
pub const MAX_VALUES: usize = 1 << 26;

/// Values of one step at most.
pub const MAX_DIM: usize = 1 << 16;

/// A number of a text file. Nothing, `?` and `NaN` stand for a value that is missing; it becomes NaN.
pub fn number(text: &str) -> Result<f32, String> {
    let text = text.trim();
    match text.parse::<f32>() {
        Ok(value) => Ok(value),
        Err(_) if text.is_empty() || text == "?" => Ok(f32::NAN),
        Err(_) => Err(format!("holds '{}', which is not a number", shortened(text))),
    }
}

/// The beginning of a text that may be of any length, fit to be shown: no file speaks to the terminal.
pub fn shortened(text: &str) -> String {
    text.chars().take(20).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Steps from dimensions that lie one after the other, each as a whole. The error names both lengths.
pub fn steps_of(columns: &[impl AsRef<[f32]>]) -> Result<Vec<f32>, String> {
    let columns: Vec<&[f32]> = columns.iter().map(AsRef::as_ref).collect();
    let length = columns.first().map_or(0, |column| column.len());
    if let Some(other) = columns.iter().position(|column| column.len() != length) {
        let found = columns[other].len();
        return Err(format!("has {length} steps in dimension 1 and {found} in dimension {}", other + 1));
    }
    Ok((0..length).flat_map(|step| columns.iter().map(move |column| column[step])).collect())
}

/// Takes off the steps at the end that have no values at all: with these, sequences are filled up to one length.
pub fn without_padding(values: &mut Vec<f32>, dim: usize) {
    let empty = values.rchunks(dim).take_while(|step| step.iter().all(|value| value.is_nan())).count();
    values.truncate(values.len() - empty * dim);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_are_nan() {
        assert_eq!(number(" -1.5e2 "), Ok(-150.0));
        for text in ["", " ", "?", "NaN", "nan"] {
            assert!(number(text).is_ok_and(f32::is_nan), "{text}");
        }
        assert!(number("x".repeat(99).as_str()).is_err_and(|e| e.len() < 60));
        assert_eq!(shortened("\u{1b}[31m"), "\u{fffd}[31m");
    }

    #[test]
    fn only_whole_steps_at_the_end_are_padding() {
        let cut = |values: &[f32], dim| {
            let mut values = values.to_vec();
            without_padding(&mut values, dim);
            values.len()
        };
        const NAN: f32 = f32::NAN;
        assert_eq!(cut(&[1.0, NAN, NAN, 1.0, NAN, NAN, NAN, NAN], 2), 4);
        assert_eq!((cut(&[NAN, NAN], 2), cut(&[1.0], 1), cut(&[], 3)), (0, 1, 0));
    }

    #[test]
    fn dimensions_become_steps() {
        assert_eq!(steps_of(&[vec![1.0, 2.0], vec![3.0, 4.0]]), Ok(vec![1.0, 3.0, 2.0, 4.0]));
        assert_eq!(steps_of(&[Vec::new(), Vec::new()]), Ok(vec![]));
        let error = steps_of(&[vec![1.0], vec![3.0], vec![]]).unwrap_err();
        assert_eq!(error, "has 1 steps in dimension 1 and 0 in dimension 3");
    }
}
