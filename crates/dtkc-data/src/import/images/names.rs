//! Labels from names: the folder that an image lies in, or COIL's `objN__ANGLE.png`.

use std::collections::BTreeMap;

use super::super::natural;
use super::super::record::Classes;

/// Where labels come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabelsFrom {
    /// COIL where every name says so, nothing otherwise.
    #[default]
    Detect,
    /// The folder.
    Folders,
    /// COIL names, whatever else there is.
    Coil,
}

/// The labels of a list of images.
#[derive(Debug, PartialEq, Eq)]
pub struct Labels {
    /// The classes.
    pub classes: Classes,
    /// One for each image; `None` throughout where there are no classes, and for an image that has no
    /// class where the others have.
    pub labels: Vec<Option<i64>>,
    /// Whether they come from COIL names.
    pub coil: bool,
    /// A hint where folders could be labels and are not.
    pub notes: Vec<String>,
}

/// Finds the labels of images by their paths, which use `/`.
pub fn label(paths: &[String], from: LabelsFrom) -> Labels {
    let folders = || classes_of(paths);
    if from == LabelsFrom::Folders {
        return by_name(folders(), false);
    }
    let objects: Vec<Option<&str>> = paths.iter().map(|p| coil_object(p)).collect();
    let detected = !objects.is_empty() && objects.iter().all(Option::is_some);
    if from == LabelsFrom::Coil || detected {
        return by_name(objects, true);
    }
    let mut names: Vec<&str> = folders().into_iter().flatten().collect();
    names.sort_unstable();
    names.dedup();
    let mut notes = Vec::new();
    if names.len() > 1 {
        notes.push(format!(
            "the images lie in {} folders; --labels-from-folders would keep these as labels",
            names.len()
        ));
    }
    Labels { classes: Classes::None, labels: vec![None; paths.len()], coil: false, notes }
}

fn by_name(names: Vec<Option<&str>>, coil: bool) -> Labels {
    let mut classes: Vec<&str> = names.iter().copied().flatten().collect();
    classes.sort_by(|a, b| natural::compare(a, b));
    classes.dedup();
    let none = classes.is_empty();
    let (kind, numbers) = Classes::from_names(classes.iter().map(|&c| c.to_owned()).collect());
    let number_of: BTreeMap<&str, i64> = classes.into_iter().zip(numbers).collect();
    let labels = names.iter().map(|n| n.and_then(|n| number_of.get(n)).copied()).collect();
    let classes = if none { Classes::None } else { kind };
    Labels { classes, labels, coil, notes: Vec::new() }
}

/// `12` for `coil-100/obj12__355.png`.
fn coil_object(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (number, angle) = name.strip_prefix("obj")?.split_once("__")?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let angle = angle.split('.').next()?;
    (digits(number) && digits(angle)).then_some(number)
}

/// The class folder of every image: the first folder below what all have in common and below
/// `train`, `test` and the like.
fn classes_of(paths: &[String]) -> Vec<Option<&str>> {
    let split: Vec<Vec<&str>> =
        paths.iter().map(|p| p.split('/').filter(|c| !c.is_empty() && *c != ".").collect()).collect();
    let mut level = 0;
    // A folder that all images share is not a class, unless it is the only folder there is.
    while let Some(first) = split.first().and_then(|p| p.get(level))
        && split.iter().all(|p| p.len() >= level + 3 && p[level] == *first)
    {
        level += 1;
    }
    let parts = ["train", "training", "test", "testing", "val", "valid", "validation", "extra"];
    let is_part = |p: &Vec<&str>| p.len() >= level + 3 && parts.contains(&p[level].to_ascii_lowercase().as_str());
    if !split.is_empty() && split.iter().all(is_part) {
        level += 1;
    }
    split.iter().map(|p| (p.len() >= level + 2).then(|| p[level])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<String> {
        list.iter().map(|p| (*p).to_owned()).collect()
    }

    fn folders(list: &[&str]) -> Vec<Option<String>> {
        classes_of(&paths(list)).into_iter().map(|c| c.map(str::to_owned)).collect()
    }

    #[test]
    fn the_class_is_the_first_folder_that_differs() {
        let some = |names: &[&str]| -> Vec<Option<String>> { names.iter().map(|n| Some((*n).to_owned())).collect() };
        assert_eq!(folders(&["cat/1.png", "dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(folders(&["set/cat/1.png", "set/dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(folders(&["cat/1.png", "cat/2.png"]), some(&["cat", "cat"]));
        assert_eq!(folders(&["train/cat/1.png", "test/dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(folders(&["cat/a/1.png", "dog/2.png"]), some(&["cat", "dog"]));
        assert_eq!(folders(&["1.png", "dog/2.png"]), [None, Some("dog".to_owned())]);
    }

    #[test]
    fn names_are_classes_and_numbers_stay_numbers() {
        let named = label(&paths(&["dog/2.png", "cat/1.png"]), LabelsFrom::Folders);
        assert_eq!(named.classes, Classes::Names(vec!["cat".into(), "dog".into()]));
        assert_eq!(named.labels, [Some(1), Some(0)]);
        let numbered = label(&paths(&["10/2.png", "3/1.png"]), LabelsFrom::Folders);
        assert_eq!(numbered.classes, Classes::Numbers([3, 10].into()));
        assert_eq!(numbered.labels, [Some(10), Some(3)]);
        let hint = label(&paths(&["dog/2.png", "cat/1.png"]), LabelsFrom::Detect);
        assert_eq!(hint.classes, Classes::None);
        assert!(hint.notes[0].contains("2 folders; --labels-from-folders"));
    }

    #[test]
    fn coil_names_are_known() {
        assert_eq!(coil_object("coil-100/obj12__355.png"), Some("12"));
        for name in ["obj12_355.png", "obj__3.png", "object1__3.png", "obj1__x.png", "obj1__.png"] {
            assert_eq!(coil_object(name), None, "{name}");
        }
        let labels = label(&paths(&["obj100__0.png", "obj7__5.png"]), LabelsFrom::Detect);
        assert_eq!((labels.coil, labels.labels), (true, vec![Some(100), Some(7)]));
        assert!(!label(&paths(&["obj100__0.png", "cat.png"]), LabelsFrom::Detect).coil);
        assert!(!label(&[], LabelsFrom::Detect).coil);
    }
}
