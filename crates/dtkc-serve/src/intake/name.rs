//! Names that clients give images, and that answers repeat.

/// The most of a name that an answer repeats: more than any path that people write, and little enough that a thousand
/// of them are a small answer.
pub const LONGEST: usize = 1000;

/// A name as answers repeat it: at most [`LONGEST`] bytes, cut between two characters.
pub fn name(given: &str) -> String {
    given[..given.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters() {
        assert_eq!(name("a.png"), "a.png");
        assert_eq!(name(&"x".repeat(5000)).len(), LONGEST);
        assert_eq!(name(&"€".repeat(5000)).len(), 999);
    }
}
