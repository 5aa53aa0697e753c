//! Names in the order that people expect: `img2` before `img10`, `train` before `test`.

use std::cmp::Ordering;

/// Compares runs of digits by value and everything else byte by byte. Total: equal only for equal names.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (x, y) = (a.as_bytes(), b.as_bytes());
    let (mut i, mut j) = (0, 0);
    while i < x.len() && j < y.len() {
        if x[i].is_ascii_digit() && y[j].is_ascii_digit() {
            let (m, n) = (digits_end(x, i), digits_end(y, j));
            let order = compare_digits(&x[i..m], &y[j..n]);
            if order != Ordering::Equal {
                return order;
            }
            (i, j) = (m, n);
        } else if x[i] != y[j] {
            return x[i].cmp(&y[j]);
        } else {
            (i, j) = (i + 1, j + 1);
        }
    }
    // "01" and "1" have the same value; the bytes decide, so that the order is the same everywhere.
    (x.len() - i).cmp(&(y.len() - j)).then_with(|| a.cmp(b))
}

fn digits_end(text: &[u8], start: usize) -> usize {
    start + text[start..].iter().take_while(|c| c.is_ascii_digit()).count()
}

fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    let strip = |s: &[u8]| s.iter().position(|&c| c != b'0').unwrap_or(s.len());
    let (a, b) = (&a[strip(a)..], &b[strip(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// The rank of a part of a dataset by its name: training data come first, test data last.
pub fn split_rank(name: &str) -> u8 {
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_count_by_value() {
        let mut names = vec!["obj10__0", "obj2__5", "obj2__40", "a", "obj02__5", "obj", "obj2__005"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["a", "obj", "obj02__5", "obj2__005", "obj2__5", "obj2__40", "obj10__0"]);
    }

    #[test]
    fn training_comes_first() {
        let mut names = vec!["t10k-images", "x_test", "x_val", "train-images", "x_train"];
        names.sort_by(|a, b| split_rank(a).cmp(&split_rank(b)).then_with(|| compare(a, b)));
        assert_eq!(names, ["train-images", "x_train", "x_val", "t10k-images", "x_test"]);
        assert_eq!(without_split("JapaneseVowels_TRAIN.ts.gz"), without_split("JapaneseVowels_TEST.ts"));
        assert_ne!(without_split("Characters.ts"), without_split("CharactersTrimmed.ts"));
    }

    proptest! {
        #[test]
        fn it_is_a_total_order(a in "[a-c0-3]{0,6}", b in "[a-c0-3]{0,6}", c in "[a-c0-3]{0,6}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}
