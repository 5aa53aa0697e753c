//! The parts of a dataset by the names of their files: `train` before `test`.

use std::cmp::Ordering;

use dtkc_source::order;

/// Training data come first, test data last; parts of the same rank in natural order.
pub fn compare(a: &str, b: &str) -> Ordering {
    split_rank(a).cmp(&split_rank(b)).then_with(|| order::natural(a, b))
}

/// The rank of a part of a dataset by its name: training data come first, test data last.
fn split_rank(name: &str) -> u8 {
    split_of(name).map_or(0, |(rank, _)| rank)
}

/// The name without the word that says which part of the dataset it is: the same for parts that belong
/// together.
pub fn without_split(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let plain = lower.trim_end_matches(".gz").trim_end_matches(".bz2");
    let word = split_of(name).map_or("", |(_, word)| word);
    plain.replacen(word, "", 1).replace(['_', '-', '.', ' '], "")
}

fn split_of(name: &str) -> Option<(u8, &'static str)> {
    const WORDS: [(u8, &str); 8] = [
        (0, "training"),
        (0, "train"),
        (1, "extra"),
        (2, "validation"),
        (2, "valid"),
        (3, "testing"),
        (3, "test"),
        (3, "t10k"),
    ];
    let lower = name.to_ascii_lowercase();
    let found = WORDS.iter().find(|(_, word)| lower.contains(word)).copied();
    // "val" is too short to look for anywhere but as a word of its own.
    found.or_else(|| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == "val").then_some((2, "val")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_comes_first() {
        let mut names = vec!["t10k-images", "x_test", "x_val", "train-images", "x_train"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["train-images", "x_train", "x_val", "t10k-images", "x_test"]);
        assert_eq!(without_split("JapaneseVowels_TRAIN.ts.gz"), without_split("JapaneseVowels_TEST.ts"));
        assert_ne!(without_split("Characters.ts"), without_split("CharactersTrimmed.ts"));
    }
}
