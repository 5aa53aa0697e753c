//! Why one item cannot be used.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

/// Why one item cannot be used, while its neighbours can. The sentence does not name the item: whoever asked for it
/// knows its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ItemError {
    /// A stable word for programs: it does not change when the sentence does.
    pub code: Cow<'static, str>,
    /// One sentence for people: what is wrong, and where there is one, the remedy.
    pub message: String,
}

impl ItemError {
    /// A problem with a stable word and a sentence.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self { code: code.into(), message: message.to_string() }
    }

    /// More bytes than one item may have.
    pub fn too_many_bytes(bytes: u64, limit: u64) -> Self {
        Self::new("too_large", format_args!("the file has {bytes} bytes, more than the limit of {limit}"))
    }

    /// The operating system would not give the bytes.
    pub fn unreadable(cause: impl fmt::Display) -> Self {
        Self::new("unreadable", format_args!("the file cannot be read: {cause}"))
    }

    /// Fails where one item has more bytes than it may.
    pub fn check_bytes(bytes: u64, limit: u64) -> Result<(), Self> {
        if bytes > limit { Err(Self::too_many_bytes(bytes, limit)) } else { Ok(()) }
    }

    /// Something that would have to be read without knowing where it ends.
    pub fn not_a_file() -> Self {
        Self::unreadable("it is a pipe, a socket or a device")
    }

    /// A sequence without anything in it.
    pub fn no_steps() -> Self {
        Self::new("no_steps", "the sequence has no steps")
    }

    /// A sequence of another dimension than it must have.
    pub fn other_dimension(found: usize, wanted: usize) -> Self {
        let values = if found == 1 { "value" } else { "values" };
        let text = format_args!("the sequence has {found} {values} a step and the model takes {wanted}");
        Self::new("other_dimension", text)
    }

    /// Values of a sequence of `dim` values a step that are no numbers; `None` where all are.
    pub fn missing_values(values: &[f32], dim: usize) -> Option<Self> {
        let first = values.iter().position(|value| !value.is_finite())?;
        let count = values.iter().filter(|value| !value.is_finite()).count();
        let are = if count == 1 { "is" } else { "are" };
        let (step, place) = (first / dim.max(1) + 1, first % dim.max(1) + 1);
        let of = values.len();
        let text = format_args!(
            "{count} of {of} values {are} missing or not finite, the first in dimension {place} of step {step}"
        );
        Some(Self::new("missing_values", text))
    }

    /// Whatever made the item ready panicked.
    pub fn panicked() -> Self {
        Self::new("panicked", "preparing the item failed unexpectedly; please report it with the item")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_is_what_people_see() {
        let error = ItemError::too_many_bytes(11, 10);
        assert_eq!(
            (&*error.code, error.to_string().as_str()),
            ("too_large", "the file has 11 bytes, more than the limit of 10")
        );
        let error = ItemError::missing_values(&[1.0, 2.0, 3.0, f32::NAN], 2).map(|error| error.message);
        let text = "1 of 4 values is missing or not finite, the first in dimension 2 of step 2";
        assert_eq!(error.as_deref(), Some(text));
        assert_eq!(ItemError::missing_values(&[1.0], 0), None);
    }
}
