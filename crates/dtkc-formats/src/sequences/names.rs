//! The classes of a text file, collected while it is read for the first time.

use std::collections::{BTreeMap, BTreeSet};

use dtkc_source::order;

use super::shortened;
use crate::record::Classes;

/// More classes than anybody can look at.
const MAX_CLASSES: usize = 1 << 20;

/// Names of classes, and after [`Names::settle`] their labels.
#[derive(Debug, Default)]
pub struct Names {
    seen: BTreeSet<String>,
    labels: BTreeMap<String, i64>,
}

impl Names {
    /// Classes at most.
    pub const MAX: usize = MAX_CLASSES;

    /// Learns a name; nothing says that a class is not known.
    pub fn add(&mut self, name: &str) -> Result<(), String> {
        if name.is_empty() || self.seen.contains(name) {
            return Ok(());
        }
        if self.seen.len() == MAX_CLASSES {
            return Err(format!(
                "has the class '{}' after {MAX_CLASSES} others; these are no classes",
                shortened(name)
            ));
        }
        self.seen.insert(name.to_owned());
        Ok(())
    }

    /// The classes in natural order; numbers stay numbers.
    pub fn settle(&mut self, labelled: bool) -> Classes {
        let mut names: Vec<String> = std::mem::take(&mut self.seen).into_iter().collect();
        if !labelled || names.is_empty() {
            return Classes::None;
        }
        names.sort_by(|a, b| order::natural(a, b));
        let (classes, labels) = Classes::from_names(names.clone());
        self.labels = names.into_iter().zip(labels).collect();
        classes
    }

    /// The label of a class; a negative one where it is not known.
    pub fn label(&self, name: &str) -> i64 {
        self.labels.get(name).copied().unwrap_or(-1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_numbers_stay_numbers() {
        let settled = |list: &[&str]| {
            let mut names = Names::default();
            list.iter().for_each(|name| names.add(name).unwrap());
            (names.settle(true), list.iter().map(|name| names.label(name)).collect::<Vec<_>>())
        };
        assert_eq!(settled(&["b", "", "a", "b"]), (Classes::Names(vec!["a".into(), "b".into()]), vec![1, -1, 0, 1]));
        assert_eq!(settled(&["10", "9"]), (Classes::Numbers([9, 10].into()), vec![10, 9]));
        assert_eq!(settled(&["", ""]).0, Classes::None);
    }
}
