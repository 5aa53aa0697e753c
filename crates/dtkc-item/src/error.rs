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
    }
}
