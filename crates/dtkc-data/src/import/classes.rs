//! From the classes of several sources to those of one dataset, and `--classes`.

use std::collections::BTreeMap;

use dtkc_source::order;

use super::record::{Classes, Description};
use super::ImportError;

/// What becomes of labels: one map for each source.
#[derive(Debug, PartialEq, Eq)]
pub struct Relabel {
    maps: Vec<Map>,
    /// The class names of the dataset.
    pub names: Option<Vec<String>>,
    /// Whether the dataset has labels.
    pub labelled: bool,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Names for classes that a source only numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Titles {
    /// The number of the first class.
    pub first: i64,
    /// The names from there on.
    pub names: Vec<String>,
}

/// What becomes of the labels of one source.
#[derive(Debug, PartialEq, Eq)]
enum Map {
    /// There are none.
    Drop,
    /// They stay; with a list, only these are wanted.
    Keep(Option<Vec<i64>>),
    /// They change; those that are not in the map are not wanted.
    Change(BTreeMap<i64, i64>),
}

/// What to do with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Into the dataset, with this label.
    Take(Option<i64>),
    /// Not one of the wanted classes.
    Leave,
    /// It has no class where it must have one.
    NoClass,
}

impl Relabel {
    /// Plans for these sources; `wanted` is `--classes`. `titles` are names for classes that a source only
    /// numbers.
    pub fn plan(sources: &[&Description], wanted: &[String], titles: Option<&Titles>) -> Result<Self, ImportError> {
        let without = sources.iter().filter(|s| s.classes == Classes::None).count();
        if without > 0 {
            if !wanted.is_empty() {
                return Err(ImportError::Usage(
                    "--classes needs labels, and there are none for some or all of the data".into(),
                ));
            }
            let mut notes = Vec::new();
            if without < sources.len() {
                notes.push("labels were left out because only some sources have them".to_owned());
            }
            let maps = sources.iter().map(|_| Map::Drop).collect();
            return Ok(Self { maps, names: None, labelled: false, notes });
        }
        let lists: Vec<Vec<(i64, String)>> = sources.iter().map(|s| labels(&s.classes, titles)).collect();
        let numbered = |list: &Vec<(i64, String)>| list.iter().all(|(label, name)| *name == label.to_string());
        if sources.iter().all(|s| matches!(s.classes, Classes::Numbers(_))) && lists.iter().all(numbered) {
            return Self::numbers(&lists, wanted);
        }
        Self::names(&lists, wanted)
    }

    fn numbers(lists: &[Vec<(i64, String)>], wanted: &[String]) -> Result<Self, ImportError> {
        let all: Vec<i64> = lists.iter().flatten().map(|(label, _)| *label).collect();
        let mut kept = Vec::new();
        for word in wanted {
            let number = word.parse().ok().filter(|n| all.contains(n));
            kept.push(number.ok_or_else(|| unknown(word, all.iter().map(i64::to_string).collect()))?);
        }
        let kept = (!wanted.is_empty()).then_some(kept);
        let maps = lists.iter().map(|_| Map::Keep(kept.clone())).collect();
        Ok(Self { maps, names: None, labelled: true, notes: Vec::new() })
    }

    fn names(lists: &[Vec<(i64, String)>], wanted: &[String]) -> Result<Self, ImportError> {
        let mut all: Vec<String> = Vec::new();
        for (_, name) in lists.iter().flatten() {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        // One source keeps its order; several are sorted, so that their order does not matter.
        if lists.windows(2).any(|pair| pair[0] != pair[1]) {
            all.sort_by(|a, b| order::natural(a, b));
        }
        if !wanted.is_empty() {
            let mut kept = Vec::new();
            for word in wanted {
                let by_number = || word.parse::<usize>().ok().filter(|&n| n < all.len());
                let place = all.iter().position(|n| n == word).or_else(by_number);
                kept.push(place.ok_or_else(|| unknown(word, all.clone()))?);
            }
            let mut place = 0..;
            all.retain(|_| place.next().is_some_and(|i: usize| kept.contains(&i)));
        }
        let index = |name: &String| all.iter().position(|n| n == name).map(|i| i as i64);
        let map = |list: &Vec<(i64, String)>| list.iter().filter_map(|(l, n)| Some((*l, index(n)?))).collect();
        let maps = lists.iter().map(|list| Map::Change(map(list))).collect();
        Ok(Self { maps, names: Some(all), labelled: true, notes: Vec::new() })
    }

    /// What to do with a record of source number `source`.
    pub fn fate(&self, source: usize, label: Option<i64>) -> Fate {
        match (&self.maps[source], label) {
            (Map::Drop, _) => Fate::Take(None),
            (_, None) => Fate::NoClass,
            (Map::Keep(None), label) => Fate::Take(label),
            (Map::Keep(Some(wanted)), Some(label)) if wanted.contains(&label) => Fate::Take(Some(label)),
            (Map::Change(map), Some(label)) if map.contains_key(&label) => Fate::Take(map.get(&label).copied()),
            _ => Fate::Leave,
        }
    }
}

/// The labels of a source with their names; a number is its own name.
fn labels(classes: &Classes, titles: Option<&Titles>) -> Vec<(i64, String)> {
    match (classes, titles) {
        (Classes::Numbers(numbers), Some(titles)) if numbers.iter().all(|&n| titles.has(n)) => {
            titles.names.iter().enumerate().map(|(i, name)| (i as i64 + titles.first, name.clone())).collect()
        }
        (Classes::None, _) => Vec::new(),
        (Classes::Numbers(numbers), _) => numbers.iter().map(|n| (*n, n.to_string())).collect(),
        (Classes::Names(names), _) => names.iter().enumerate().map(|(i, n)| (i as i64, n.clone())).collect(),
    }
}

impl Titles {
    fn has(&self, number: i64) -> bool {
        (self.first..self.first + self.names.len() as i64).contains(&number)
    }
}

fn unknown(word: &str, mut there: Vec<String>) -> ImportError {
    there.sort_by(|a, b| order::natural(a, b));
    there.dedup();
    let more = if there.len() > 30 { ", ..." } else { "" };
    there.truncate(30);
    ImportError::Usage(format!("there is no class '{word}' (--classes); there are {}{more}", there.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::record::ContentForm;
    use super::*;

    fn source(classes: Classes) -> Description {
        Description {
            format: "test",
            form: ContentForm::Encoded,
            count: None,
            classes,
            paths: false,
            origin: None,
            notes: Vec::new(),
        }
    }

    fn names(list: &[&str]) -> Classes {
        Classes::Names(list.iter().map(|n| (*n).to_owned()).collect())
    }

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn numbers_stay_what_they_are() {
        let digits = source(Classes::Numbers((0..10).collect()));
        let all = Relabel::plan(&[&digits], &[], None).unwrap();
        assert_eq!((all.fate(0, Some(7)), all.names.clone()), (Fate::Take(Some(7)), None));
        let some = Relabel::plan(&[&digits], &words(&["3", "8"]), None).unwrap();
        assert_eq!([some.fate(0, Some(8)), some.fate(0, Some(7))], [Fate::Take(Some(8)), Fate::Leave]);
        let error = Relabel::plan(&[&digits], &words(&["12"]), None).unwrap_err();
        assert!(error.to_string().contains("no class '12'") && error.to_string().contains("8, 9"), "{error}");
    }

    #[test]
    fn wanted_names_are_numbered_anew() {
        let letters = source(names(&["a", "b", "c", "d"]));
        let plan = Relabel::plan(&[&letters], &words(&["d", "b"]), None).unwrap();
        assert_eq!(plan.names, Some(words(&["b", "d"])));
        let fates = [0, 1, 2, 3].map(|l| plan.fate(0, Some(l)));
        assert_eq!(fates, [Fate::Leave, Fate::Take(Some(0)), Fate::Leave, Fate::Take(Some(1))]);
        assert_eq!(Relabel::plan(&[&letters], &words(&["2"]), None).unwrap().names, Some(words(&["c"])));
        assert_eq!(plan.fate(0, None), Fate::NoClass);
    }

    #[test]
    fn numbered_classes_can_be_given_titles() {
        let numbered = source(Classes::Numbers((1..=3).collect()));
        let titles = Titles { first: 1, names: words(&["a", "b", "c"]) };
        let plan = Relabel::plan(&[&numbered], &words(&["c", "a"]), Some(&titles)).unwrap();
        assert_eq!(plan.names, Some(words(&["a", "c"])));
        assert_eq!([1, 2, 3].map(|l| plan.fate(0, Some(l))), [Fate::Take(Some(0)), Fate::Leave, Fate::Take(Some(1))]);
        let named = source(names(&["x", "y"]));
        assert_eq!(Relabel::plan(&[&named], &[], Some(&titles)).unwrap().names, Some(words(&["x", "y"])));
    }

    #[test]
    fn sources_with_different_names_are_joined() {
        let (a, b) = (source(names(&["dog", "cat"])), source(names(&["cat", "eel"])));
        let plan = Relabel::plan(&[&a, &b], &[], None).unwrap();
        assert_eq!(plan.names, Some(words(&["cat", "dog", "eel"])));
        assert_eq!([plan.fate(0, Some(0)), plan.fate(1, Some(0))], [Fate::Take(Some(1)), Fate::Take(Some(0))]);
    }

    #[test]
    fn half_labelled_data_lose_their_labels_with_a_note() {
        let (a, b) = (source(names(&["dog"])), source(Classes::None));
        let plan = Relabel::plan(&[&a, &b], &[], None).unwrap();
        assert_eq!((plan.fate(0, Some(0)), plan.labelled, plan.notes.len()), (Fate::Take(None), false, 1));
        assert!(Relabel::plan(&[&b], &words(&["dog"]), None).is_err());
    }
}
