//! Labels that are words, and how NumPy stores them: arrays of `U` (four bytes a letter) and `S` (one byte).

use std::collections::{BTreeMap, BTreeSet};

use dtkc_source::order;

use super::record::Classes;

/// Longer words than this are not names of classes.
const MAX_LETTERS: usize = 4096;

/// How words are stored: each with the same number of letters, filled up with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    letters: usize,
    wide: bool,
    big_endian: bool,
}

/// Labels as a file has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// Numbers.
    Numbers(Vec<i64>),
    /// Words; an empty one says that the class is not known.
    Words(Vec<String>),
}

impl Words {
    /// What a type such as `<U10` or `|S5` says.
    pub fn parse(descr: &str) -> Option<Self> {
        let mut chars = descr.chars();
        let big_endian = chars.next()? == '>';
        let wide = match chars.next()? {
            'U' => true,
            'S' => false,
            _ => return None,
        };
        let letters = chars.as_str().parse().ok().filter(|&n| n <= MAX_LETTERS)?;
        Some(Self { letters, wide, big_endian })
    }

    /// Bytes of one word.
    pub fn size(self) -> usize {
        self.letters * if self.wide { 4 } else { 1 }
    }

    /// `count` words from their bytes.
    pub fn read(self, bytes: &[u8], count: usize) -> Vec<String> {
        (0..count).map(|i| self.word(&bytes[i * self.size()..(i + 1) * self.size()])).collect()
    }

    fn word(self, bytes: &[u8]) -> String {
        let word: String = match self.wide {
            true => bytes.as_chunks::<4>().0.iter().map(|&raw| self.letter(raw)).collect(),
            false => String::from_utf8_lossy(bytes).into_owned(),
        };
        word.trim_end_matches('\0').to_owned()
    }

    fn letter(self, raw: [u8; 4]) -> char {
        let code = if self.big_endian { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) };
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The labels of several parts in one numbering, and the names of their classes.
type Settled = (Vec<Option<Vec<i64>>>, Option<Vec<String>>);

/// Brings the labels of several parts to one numbering; classes have names where they are words that are no numbers. An
/// error where some parts have words and others numbers.
pub fn settle(given: Vec<Option<Given>>) -> Result<Settled, &'static str> {
    let words = given.iter().flatten().filter(|part| matches!(part, Given::Words(_))).count();
    if words > 0 && words < given.iter().flatten().count() {
        return Err("some labels are words and others are numbers; save all of them as one or the other");
    }
    let all =
        given.iter().flatten().flat_map(|part| if let Given::Words(words) = part { words.as_slice() } else { &[] });
    let mut names: Vec<String> =
        all.filter(|word| !word.is_empty()).cloned().collect::<BTreeSet<_>>().into_iter().collect();
    names.sort_by(|a, b| order::natural(a, b));
    let (classes, numbers) = Classes::from_names(names.clone());
    let number_of: BTreeMap<String, i64> = names.into_iter().zip(numbers).collect();
    let number = |part: Given| match part {
        Given::Numbers(numbers) => numbers,
        Given::Words(words) => words.iter().map(|word| number_of.get(word).copied().unwrap_or(-1)).collect(),
    };
    let labels = given.into_iter().map(|part| part.map(number)).collect();
    Ok((labels, if let Classes::Names(names) = classes { Some(names) } else { None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_either_width_and_order() {
        // numpy.array(["a", "Bär"]).tobytes() and numpy.array([b"a", b"bear"]).tobytes()
        let wide = b"a\0\0\0\0\0\0\0\0\0\0\0B\0\0\0\xe4\0\0\0r\0\0\0";
        let words = Words::parse("<U3").unwrap();
        assert_eq!((words.size(), words.read(wide, 2)), (12, vec!["a".to_owned(), "B\u{e4}r".to_owned()]));
        assert_eq!(Words::parse(">U1").unwrap().read(b"\0\0\0z", 1), ["z"]);
        assert_eq!(Words::parse("|S4").unwrap().read(b"a\0\0\0bear", 2), ["a", "bear"]);
        assert_eq!(Words::parse("<U0").unwrap().read(b"", 2), ["", ""]);
        for other in ["<f4", "|O", "<U", "<U-1", "|S99999", ""] {
            assert_eq!(Words::parse(other), None, "{other}");
        }
    }

    #[test]
    fn words_become_names_and_numbers_stay_numbers() {
        let words = |list: &[&str]| Some(Given::Words(list.iter().map(|w| (*w).to_owned()).collect()));
        let (labels, names) = settle(vec![words(&["dog", "cat", ""]), None, words(&["eel", "cat"])]).unwrap();
        assert_eq!(labels, [Some(vec![1, 0, -1]), None, Some(vec![2, 0])]);
        assert_eq!(names.unwrap(), ["cat", "dog", "eel"]);
        assert_eq!(settle(vec![words(&["10", "9"])]), Ok((vec![Some(vec![10, 9])], None)));
        assert_eq!(settle(vec![Some(Given::Numbers(vec![3]))]), Ok((vec![Some(vec![3])], None)));
        assert!(settle(vec![words(&["a"]), Some(Given::Numbers(vec![3]))]).is_err());
    }
}
