//! Classes from folders, for import's labels and labelling's truth alike.
//!
//! The class of an item is the first folder below what all items of its folder or archive have in common, and below
//! `train`, `test` and the like where all lie in such parts. A folder that all share is no class, unless it is the last
//! one before the items. Where several folders are named side by side and their items lie in them directly, the folders
//! themselves are the classes. Where a container gives classes itself ([`Found::class`]) folders in it are none.

use std::collections::HashMap;
use std::path::Path;

use crate::{Body, Found};

const PARTS: [&str; 8] = ["train", "training", "test", "testing", "val", "valid", "validation", "extra"];

/// The rule for one folder or archive. It must have seen all names before it can tell classes; it keeps none of them.
#[derive(Debug, Clone, Default)]
pub struct FolderRule {
    names: u64,
    /// The folders that all have in common, from the first name.
    common: Vec<String>,
    /// For each depth, whether all have the word for a part of a dataset there.
    parts: Vec<bool>,
    shortest: usize,
    longest: usize,
}

impl FolderRule {
    /// The rule for a list of names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut rule = Self::default();
        names.into_iter().for_each(|name| rule.add(name));
        rule
    }

    /// Learns a name below the folder or archive, with `/`.
    pub fn add(&mut self, name: &str) {
        let parts: Vec<&str> = split(name).collect();
        let is_part = |part: &&str| PARTS.iter().any(|p| p.eq_ignore_ascii_case(part));
        if self.names == 0 {
            self.common = parts.iter().map(|part| (*part).to_owned()).collect();
            self.parts = parts.iter().map(is_part).collect();
            (self.shortest, self.longest) = (parts.len(), parts.len());
        }
        self.names += 1;
        let same = self.common.iter().zip(&parts).take_while(|(a, b)| a == b).count();
        self.common.truncate(same);
        self.parts.truncate(parts.len());
        self.parts.iter_mut().zip(&parts).for_each(|(all, part)| *all &= is_part(part));
        self.shortest = self.shortest.min(parts.len());
        self.longest = self.longest.max(parts.len());
    }

    /// The depth of the class folder.
    fn level(&self) -> usize {
        let level = self.common.len().min(self.shortest.saturating_sub(2));
        let in_parts = self.shortest >= level + 3 && self.parts.get(level) == Some(&true);
        level + usize::from(in_parts)
    }

    /// Whether any item has a class.
    pub fn has_classes(&self) -> bool {
        self.longest >= self.level() + 2
    }

    /// The class of one of the names.
    pub fn class_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let mut parts = split(name).skip(self.level());
        let class = parts.next()?;
        parts.next().map(|_| class)
    }
}

fn split(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// The rules for everything that several inputs hold: one for each folder and archive, one for all files that are named
/// themselves.
#[derive(Debug, Clone, Default)]
pub struct FolderClasses {
    files: FolderRule,
    roots: HashMap<String, Root>,
}

#[derive(Debug, Clone, Default)]
struct Root {
    rule: FolderRule,
    is_folder: bool,
    /// Whether the container itself gives classes: then folders are none.
    gives: bool,
}

impl FolderClasses {
    /// Learns an item. What could not even be listed says nothing.
    pub fn add(&mut self, found: &Found) {
        let name = found.name();
        let Some(root) = found.root() else {
            if !matches!(found.body, Body::Broken(_)) {
                self.files.add(name);
            }
            return;
        };
        if name.ends_with('/') {
            return;
        }
        if !self.roots.contains_key(root) {
            self.roots.insert(root.to_owned(), Root::default());
        }
        if let Some(known) = self.roots.get_mut(root) {
            known.rule.add(name);
            known.is_folder |= found.body.is_file();
            known.gives |= found.class.is_some();
        }
    }

    fn are_several(&self) -> bool {
        self.roots.len() + usize::from(self.files.names > 0) > 1
    }

    /// Whether any item has a class.
    pub fn any(&self) -> bool {
        let has = |root: &Root| root.gives || root.rule.has_classes() || (root.is_folder && self.are_several());
        self.files.has_classes() || self.roots.values().any(has)
    }

    /// The class of an item that was learnt before.
    pub fn class_of(&self, found: &Found) -> Option<String> {
        let Some(root) = found.root() else { return self.files.class_of(found.name()).map(str::to_owned) };
        let known = self.roots.get(root)?;
        if known.gives {
            return found.class.as_deref().map(str::to_owned);
        }
        if known.rule.has_classes() {
            return known.rule.class_of(found.name()).map(str::to_owned);
        }
        if known.is_folder && self.are_several() { own_name(root) } else { None }
    }
}

/// The name of a folder itself, also where it is given as `.`.
pub fn own_name(folder: &str) -> Option<String> {
    let path = std::path::absolute(Path::new(folder)).ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn classes(names: &[&str]) -> Vec<Option<String>> {
        let rule = FolderRule::of(names.iter().copied());
        let classes: Vec<_> = names.iter().map(|n| rule.class_of(n).map(str::to_owned)).collect();
        assert_eq!(rule.has_classes(), classes.iter().any(Option::is_some), "{names:?}");
        classes
    }

    #[test]
    fn the_class_is_the_first_folder_that_differs() {
        let some = |names: &[&str]| -> Vec<Option<String>> { names.iter().map(|n| Some((*n).to_owned())).collect() };
        assert_eq!(classes(&["cat/1.png", "dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(classes(&["set/cat/1.png", "set/dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(classes(&["./set/cat/1.png", "set//dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(classes(&["cat/1.png", "cat/2.png"]), some(&["cat", "cat"]));
        assert_eq!(classes(&["train/cat/1.png", "Test/dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(classes(&["set/train/cat/1.png", "set/train/dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(classes(&["train/1.png", "test/2.png"]), some(&["train", "test"]));
        assert_eq!(classes(&["cat/a/1.png", "dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(classes(&["1.png", "dog/2.png"]), [None, Some("dog".to_owned())]);
        assert_eq!(classes(&["1.png", "2.png"]), [None, None]);
        assert_eq!(classes(&[]), []);
    }

    /// The rule as it reads, with all names at hand.
    fn by_the_book(names: &[String]) -> Vec<Option<String>> {
        let all: Vec<Vec<&str>> = names.iter().map(|n| split(n).collect()).collect();
        let mut level = 0;
        while let Some(first) = all.first().and_then(|p| p.get(level))
            && all.iter().all(|p| p.len() >= level + 3 && p[level] == *first)
        {
            level += 1;
        }
        let is_part = |p: &Vec<&str>| p.len() >= level + 3 && PARTS.contains(&p[level].to_ascii_lowercase().as_str());
        if !all.is_empty() && all.iter().all(is_part) {
            level += 1;
        }
        all.iter().map(|p| (p.len() >= level + 2).then(|| p[level].to_owned())).collect()
    }

    proptest! {
        #[test]
        fn no_name_need_be_kept(names in prop::collection::vec("((train|test|a|b)/){0,4}x", 0..6)) {
            let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
            prop_assert_eq!(classes(&borrowed), by_the_book(&names));
        }
    }

    fn file(root: &str, name: &str) -> Found {
        Found::below(Path::new(root), name, Body::File(Path::new(root).join(name)))
    }

    #[test]
    fn folders_side_by_side_are_classes_themselves() {
        let (cat, dog) = (file("photos/cat", "1.png"), file("photos/dog/", "2.png"));
        let mut alone = FolderClasses::default();
        alone.add(&cat);
        assert!(!alone.any());
        assert_eq!(alone.class_of(&cat), None);
        let mut both = alone.clone();
        both.add(&dog);
        assert!(both.any());
        assert_eq!(both.class_of(&cat).as_deref(), Some("cat"));
        assert_eq!(both.class_of(&dog).as_deref(), Some("dog"));
        // A folder that has classes below keeps them.
        let (eel, fox) = (file("more", "eel/1.png"), file("more", "fox/1.png"));
        both.add(&eel);
        both.add(&fox);
        assert_eq!(both.class_of(&eel).as_deref(), Some("eel"));
    }

    #[test]
    fn every_archive_has_a_rule_of_its_own() {
        let entry = |root: &str, name: &str| Found::below(Path::new(root), name, Body::Bytes(vec![]));
        let items = [entry("a.tar", "set/cat/1.png"), entry("a.tar", "set/dog/1.png"), entry("b.tar", "cat/2.png")];
        let named = Found::file(Path::new("photos/eel/3.png"));
        let mut classes = FolderClasses::default();
        items.iter().chain([&named]).for_each(|found| classes.add(found));
        classes.add(&Found::below(Path::new("a.tar"), "locked/", Body::Broken(dtkc_item::ItemError::panicked())));
        let found: Vec<_> = items.iter().chain([&named]).map(|f| classes.class_of(f).unwrap_or_default()).collect();
        assert_eq!(found, ["cat", "dog", "cat", "eel"]);
        let given = |class: Option<&str>| Found { class: class.map(Into::into), ..entry("c.tar", "cat/1.png") };
        classes.add(&given(Some("3")));
        assert_eq!((classes.class_of(&given(Some("3"))).as_deref(), classes.class_of(&given(None))), (Some("3"), None));
        let mut flat = FolderClasses::default();
        flat.add(&entry("a.tar", "1.png"));
        flat.add(&entry("b.tar", "1.png"));
        assert!(!flat.any());
    }

    #[test]
    fn a_folder_has_a_name_wherever_one_stands() {
        assert_eq!(own_name("photos/cat").as_deref(), Some("cat"));
        assert!(own_name(".").is_some());
        assert_eq!(own_name(""), None);
    }
}
