//! Labels from names: the folder that an image lies in, or COIL's `objN__ANGLE.png`; or from what lies beside images in an
//! archive.

use std::collections::{BTreeMap, BTreeSet};

use dtkc_source::classes::FolderRule;
use dtkc_source::order;

use super::record::Classes;

/// Where labels come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabelsFrom {
    /// COIL where every name says so, else what the archive says itself.
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

/// Finds the labels of images by their names, which use `/`; a name that ends with it is that of a folder, and has
/// none. `given` is what the archive says about each, `own` the class of all where there are no folders below: the name of
/// one folder among several.
pub fn label(names: &[&str], given: &[Option<&str>], from: LabelsFrom, own: Option<&str>) -> Labels {
    let is_image = |name: &&str| !name.ends_with('/');
    let images = || names.iter().copied().filter(is_image);
    let rule = FolderRule::of(images());
    let folder = |name: &&'_ str| -> Option<String> {
        let below = rule.class_of(name).filter(|_| is_image(name));
        below.or(own.filter(|_| !rule.has_classes())).map(str::to_owned)
    };
    if from == LabelsFrom::Folders {
        return by_name(names.iter().map(folder).collect(), false);
    }
    let objects = || names.iter().map(|name| coil_object(name).map(str::to_owned));
    let detected = images().next().is_some() && images().all(|name| coil_object(name).is_some());
    if from == LabelsFrom::Coil || detected {
        return by_name(objects().collect(), true);
    }
    if given.iter().any(Option::is_some) {
        let Labels { classes, mut labels, .. } =
            by_name(given.iter().map(|class| class.map(str::to_owned)).collect(), false);
        // Of one that nothing lies beside the class is not known.
        labels.iter_mut().for_each(|label| *label = label.or(Some(-1)));
        return Labels { classes, labels, coil: false, notes: Vec::new() };
    }
    let classes: BTreeSet<&str> = images().filter_map(|name| rule.class_of(name)).collect();
    let mut notes = Vec::new();
    if classes.len() > 1 {
        notes.push(format!(
            "the images lie in {} folders; --labels-from-folders would keep these as labels",
            classes.len()
        ));
    }
    Labels { classes: Classes::None, labels: vec![None; names.len()], coil: false, notes }
}

fn by_name(names: Vec<Option<String>>, coil: bool) -> Labels {
    let distinct: BTreeSet<&str> = names.iter().flatten().map(String::as_str).collect();
    let mut classes: Vec<&str> = distinct.into_iter().collect();
    classes.sort_by(|a, b| order::natural(a, b));
    let none = classes.is_empty();
    let (kind, numbers) = Classes::from_names(classes.iter().map(|&c| c.to_owned()).collect());
    let number_of: BTreeMap<&str, i64> = classes.into_iter().zip(numbers).collect();
    let labels = names.iter().map(|n| n.as_deref().and_then(|n| number_of.get(n)).copied()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classes_and_numbers_stay_numbers() {
        let named = label(&["dog/2.png", "cat/1.png", "locked/"], &[], LabelsFrom::Folders, None);
        assert_eq!(named.classes, Classes::Names(vec!["cat".into(), "dog".into()]));
        assert_eq!(named.labels, [Some(1), Some(0), None]);
        let numbered = label(&["10/2.png", "3/1.png"], &[], LabelsFrom::Folders, None);
        assert_eq!(numbered.classes, Classes::Numbers([3, 10].into()));
        assert_eq!(numbered.labels, [Some(10), Some(3)]);
        let hint = label(&["dog/2.png", "cat/1.png"], &[], LabelsFrom::Detect, None);
        assert_eq!(hint.classes, Classes::None);
        assert!(hint.notes[0].contains("2 folders; --labels-from-folders"));
    }

    #[test]
    fn a_folder_among_several_is_a_class_where_it_has_none() {
        let flat = label(&["1.png", "2.png"], &[], LabelsFrom::Folders, Some("cat"));
        assert_eq!((flat.classes, flat.labels), (Classes::Names(vec!["cat".into()]), vec![Some(0), Some(0)]));
        assert_eq!(label(&["1.png"], &[], LabelsFrom::Folders, None).classes, Classes::None);
        let mixed = label(&["1.png", "dog/2.png"], &[], LabelsFrom::Folders, Some("cat"));
        assert_eq!(mixed.labels, [None, Some(0)]);
    }

    #[test]
    fn coil_names_are_known() {
        assert_eq!(coil_object("coil-100/obj12__355.png"), Some("12"));
        for name in ["obj12_355.png", "obj__3.png", "object1__3.png", "obj1__x.png", "obj1__.png"] {
            assert_eq!(coil_object(name), None, "{name}");
        }
        let labels = label(&["obj100__0.png", "obj7__5.png"], &[], LabelsFrom::Detect, None);
        assert_eq!((labels.coil, labels.labels), (true, vec![Some(100), Some(7)]));
        assert!(!label(&["obj100__0.png", "cat.png"], &[], LabelsFrom::Detect, None).coil);
        assert!(!label(&[], &[], LabelsFrom::Detect, None).coil);
    }

    #[test]
    fn what_lies_beside_an_image_is_its_class() {
        let names = ["dog/1.jpg", "cat/2.jpg", "cat/3.jpg"];
        let of = |given: &[Option<&str>], from| label(&names, given, from, None);
        let found = of(&[Some("10"), None, Some("9")], LabelsFrom::Detect);
        assert_eq!(
            (found.classes, found.labels),
            (Classes::Numbers([9, 10].into()), vec![Some(10), Some(-1), Some(9)])
        );
        let found = of(&[Some("b"), Some("a"), None], LabelsFrom::Detect);
        assert_eq!(found.classes, Classes::Names(vec!["a".into(), "b".into()]));
        assert_eq!((found.labels, found.notes.len()), (vec![Some(1), Some(0), Some(-1)], 0));
        let folders = of(&[Some("1"), Some("2"), None], LabelsFrom::Folders);
        assert_eq!(folders.classes, Classes::Names(vec!["cat".into(), "dog".into()]));
    }
}
