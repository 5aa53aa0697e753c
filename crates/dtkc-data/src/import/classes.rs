//! From the classes of several sources to those of one dataset, and `--classes`.

use std::collections::{BTreeMap, BTreeSet};

use dtkc_source::order;

use super::ImportError;
use super::record::{Classes, Description};

/// What becomes of labels: one map for each source.
#[derive(Debug, PartialEq, Eq)]
pub struct Relabel {
    maps: Vec<Map>,
    /// Whether only some classes are wanted.
    chosen: bool,
    /// The class names of the dataset.
    pub names: Option<Vec<String>>,
    /// Whether the dataset has labels.
    pub labelled: bool,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// What is known about the classes of a set beside what its files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Names for classes that the files only number.
    pub titles: Option<Titles>,
    /// Other numbers for some of them: what the files say, and what it means.
    pub digits: Vec<(i64, i64)>,
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
    /// New labels by the old ones; a class that is not in the map is not wanted.
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
    /// Plans for these sources; `wanted` is `--classes`, `known` is what is known about classes that a source only
    /// numbers.
    pub fn plan(sources: &[&Description], wanted: &[String], known: &Known) -> Result<Self, ImportError> {
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
            return Ok(Self { maps, chosen: false, names: None, labelled: false, notes });
        }
        match sources.iter().map(|s| known.numbers(&s.classes)).collect::<Option<Vec<_>>>() {
            Some(lists) => Self::numbers(lists, wanted),
            None => Self::names(&sources.iter().map(|s| known.names(&s.classes)).collect::<Vec<_>>(), wanted),
        }
    }

    /// `lists` are the numbers of each source, and what they become.
    fn numbers(mut lists: Vec<BTreeMap<i64, i64>>, wanted: &[String]) -> Result<Self, ImportError> {
        let all: Vec<i64> = lists.iter().flat_map(BTreeMap::values).copied().collect();
        let mut kept = Vec::new();
        for word in wanted {
            let number = word.parse().ok().filter(|n| all.contains(n));
            kept.push(number.ok_or_else(|| unknown(word, all.iter().map(i64::to_string).collect()))?);
        }
        let chosen = !wanted.is_empty();
        lists.iter_mut().for_each(|list| list.retain(|_, number| !chosen || kept.contains(number)));
        let maps = lists.into_iter().map(Map::Change).collect();
        Ok(Self { maps, chosen, names: None, labelled: true, notes: Vec::new() })
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
        Ok(Self { maps, chosen: !wanted.is_empty(), names: Some(all), labelled: true, notes: Vec::new() })
    }

    /// What to do with a record of source number `source`.
    pub fn fate(&self, source: usize, label: Option<i64>) -> Fate {
        match (&self.maps[source], label) {
            (Map::Drop, _) => Fate::Take(None),
            (_, None) => Fate::NoClass,
            // Its class is not known, so it is not one of those that were chosen.
            (_, Some(label)) if label < 0 && !self.chosen => Fate::Take(Some(label)),
            (Map::Change(map), Some(label)) => map.get(&label).map_or(Fate::Leave, |&label| Fate::Take(Some(label))),
        }
    }
}

impl Known {
    /// The numbers of a source's classes, and what they become; `None` where the classes have or get names.
    fn numbers(&self, classes: &Classes) -> Option<BTreeMap<i64, i64>> {
        let Classes::Numbers(numbers) = classes else { return None };
        if self.titles_of(numbers).is_some() {
            return None;
        }
        let digit = |number: i64| self.digits.iter().find(|(from, _)| *from == number).map_or(number, |(_, to)| *to);
        Some(numbers.iter().map(|&number| (number, digit(number))).collect())
    }

    /// The labels of a source with their names; a number is its own name.
    fn names(&self, classes: &Classes) -> Vec<(i64, String)> {
        match classes {
            Classes::None => Vec::new(),
            Classes::Names(names) => (0..).zip(names.iter().cloned()).collect(),
            Classes::Numbers(numbers) => match self.titles_of(numbers) {
                Some(titles) => (titles.first..).zip(titles.names.iter().cloned()).collect(),
                None => numbers.iter().map(|n| (*n, n.to_string())).collect(),
            },
        }
    }

    /// The names, where they are enough for these numbers.
    fn titles_of(&self, numbers: &BTreeSet<i64>) -> Option<&Titles> {
        self.titles.as_ref().filter(|titles| numbers.iter().all(|&number| titles.has(number)))
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
        Description { classes, ..Description::new("test", ContentForm::Encoded) }
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
        let all = Relabel::plan(&[&digits], &[], &Known::default()).unwrap();
        assert_eq!((all.fate(0, Some(7)), all.names.clone()), (Fate::Take(Some(7)), None));
        let some = Relabel::plan(&[&digits], &words(&["3", "8"]), &Known::default()).unwrap();
        assert_eq!([some.fate(0, Some(8)), some.fate(0, Some(7))], [Fate::Take(Some(8)), Fate::Leave]);
        let error = Relabel::plan(&[&digits], &words(&["12"]), &Known::default()).unwrap_err();
        assert!(error.to_string().contains("no class '12'") && error.to_string().contains("8, 9"), "{error}");
    }

    #[test]
    fn wanted_names_are_numbered_anew() {
        let letters = source(names(&["a", "b", "c", "d"]));
        let plan = Relabel::plan(&[&letters], &words(&["d", "b"]), &Known::default()).unwrap();
        assert_eq!(plan.names, Some(words(&["b", "d"])));
        let fates = [0, 1, 2, 3].map(|l| plan.fate(0, Some(l)));
        assert_eq!(fates, [Fate::Leave, Fate::Take(Some(0)), Fate::Leave, Fate::Take(Some(1))]);
        assert_eq!(Relabel::plan(&[&letters], &words(&["2"]), &Known::default()).unwrap().names, Some(words(&["c"])));
        assert_eq!(plan.fate(0, None), Fate::NoClass);
    }

    #[test]
    fn numbered_classes_can_be_given_titles() {
        let numbered = source(Classes::Numbers((1..=3).collect()));
        let titles = Some(Titles { first: 1, names: words(&["a", "b", "c"]) });
        let titles = Known { titles, ..Known::default() };
        let plan = Relabel::plan(&[&numbered], &words(&["c", "a"]), &titles).unwrap();
        assert_eq!(plan.names, Some(words(&["a", "c"])));
        assert_eq!([1, 2, 3].map(|l| plan.fate(0, Some(l))), [Fate::Take(Some(0)), Fate::Leave, Fate::Take(Some(1))]);
        let named = source(names(&["x", "y"]));
        assert_eq!(Relabel::plan(&[&named], &[], &titles).unwrap().names, Some(words(&["x", "y"])));
    }

    #[test]
    fn digits_mean_what_is_known_about_them() {
        let known = Known { digits: vec![(10, 0)], ..Known::default() };
        let svhn = source(Classes::Numbers((1..=10).collect()));
        let plan = Relabel::plan(&[&svhn], &[], &known).unwrap();
        assert_eq!((plan.fate(0, Some(10)), plan.fate(0, Some(9))), (Fate::Take(Some(0)), Fate::Take(Some(9))));
        assert_eq!(plan.names, None);
        let zeros = Relabel::plan(&[&svhn], &words(&["0"]), &known).unwrap();
        assert_eq!((zeros.fate(0, Some(10)), zeros.fate(0, Some(9))), (Fate::Take(Some(0)), Fate::Leave));
        assert!(Relabel::plan(&[&svhn], &words(&["10"]), &known).is_err());
    }

    #[test]
    fn a_negative_label_stays_one() {
        for classes in [Classes::Numbers([0, 1].into()), names(&["cat", "dog"])] {
            let source = source(classes);
            let all = Relabel::plan(&[&source], &[], &Known::default()).unwrap();
            assert_eq!((all.fate(0, Some(-1)), all.fate(0, Some(1))), (Fate::Take(Some(-1)), Fate::Take(Some(1))));
            let some = Relabel::plan(&[&source], &words(&["1"]), &Known::default()).unwrap();
            assert_eq!(some.fate(0, Some(-1)), Fate::Leave);
        }
        let (classes, labels) = Classes::from_names(words(&["-1", "1"]));
        assert_eq!((classes, labels), (names(&["-1", "1"]), vec![0, 1]));
    }

    #[test]
    fn sources_with_different_names_are_joined() {
        let (a, b) = (source(names(&["dog", "cat"])), source(names(&["cat", "eel"])));
        let plan = Relabel::plan(&[&a, &b], &[], &Known::default()).unwrap();
        assert_eq!(plan.names, Some(words(&["cat", "dog", "eel"])));
        assert_eq!([plan.fate(0, Some(0)), plan.fate(1, Some(0))], [Fate::Take(Some(1)), Fate::Take(Some(0))]);
    }

    #[test]
    fn half_labelled_data_lose_their_labels_with_a_note() {
        let (a, b) = (source(names(&["dog"])), source(Classes::None));
        let plan = Relabel::plan(&[&a, &b], &[], &Known::default()).unwrap();
        assert_eq!((plan.fate(0, Some(0)), plan.labelled, plan.notes.len()), (Fate::Take(None), false, 1));
        assert!(Relabel::plan(&[&b], &words(&["dog"]), &Known::default()).is_err());
    }
}
