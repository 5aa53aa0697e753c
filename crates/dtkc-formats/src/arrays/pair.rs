//! Which of a file's arrays are images, which are their labels, and what belongs together.

use super::super::splits;
use super::layout::show;

/// An array of a file, as far as its header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its full name, such as `train/data` or `x_train`.
    pub name: String,
    /// Its dimensions, in the order that the format gives them.
    pub dims: Vec<usize>,
}

/// Images with their labels: indices into the list of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The array of images.
    pub images: usize,
    /// The array of labels.
    pub labels: Option<usize>,
}

/// The arrays that the user named, where the guess would be wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// `--images-key`.
    pub images: Option<String>,
    /// `--labels-key`.
    pub labels: Option<String>,
}

const IMAGES: [&str; 13] =
    ["images", "image", "imgs", "img", "data", "x", "pixels", "fea", "features", "samples", "inputs", "input", "arr_0"];
const LABELS: [&str; 11] =
    ["labels", "label", "targets", "target", "y", "gnd", "class", "classes", "category", "lab", "arr_1"];
/// What may stand around a role's word: `x_train`, `trainX`, `test/data`.
const SPLITS: [&str; 10] = ["training", "train", "testing", "test", "validation", "valid", "val", "extra", "tr", "te"];

/// Finds the images and their labels; training data come first. The error names what there is.
pub fn find(arrays: &[Named], keys: &Keys) -> Result<Vec<Pair>, String> {
    let mut pairs = match &keys.images {
        Some(key) => by_key(arrays, key, "--images-key")?,
        None => by_role(arrays)?,
    };
    pairs.sort_by(|&a, &b| splits::compare(&arrays[a].name, &arrays[b].name));
    let labels = match &keys.labels {
        Some(key) => Some(by_key(arrays, key, "--labels-key")?),
        None => None,
    };
    let chosen = pairs.clone();
    let pair = |images| Pair { images, labels: labels_of(arrays, images, &chosen, labels.as_deref()) };
    Ok(pairs.into_iter().map(pair).collect())
}

/// Arrays with that full name, or with that name in any group.
fn by_key(arrays: &[Named], key: &str, flag: &str) -> Result<Vec<usize>, String> {
    let key = key.trim_matches('/');
    let matching =
        |test: &dyn Fn(&str) -> bool| -> Vec<usize> { (0..arrays.len()).filter(|&i| test(&arrays[i].name)).collect() };
    let mut found = matching(&|name| name == key);
    if found.is_empty() {
        found = matching(&|name| last_part(name) == key);
    }
    if found.is_empty() {
        Err(format!("there is no array '{key}' ({flag}); there are {}", list(arrays)))
    } else {
        Ok(found)
    }
}

fn by_role(arrays: &[Named]) -> Result<Vec<usize>, String> {
    let shaped = |i: usize| arrays[i].dims.len() >= 2 && arrays[i].dims.iter().all(|&d| d > 0);
    let named: Vec<usize> =
        (0..arrays.len()).filter(|&i| shaped(i) && role(&arrays[i].name, &IMAGES).is_some()).collect();
    if let Some(twin) = ambiguous(arrays, &named) {
        return Err(format!("more than one array could be the images ({twin}); choose one with --images-key"));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    // No telling name: the one array with rows and columns, or else the one table.
    for axes in [3, 2] {
        let wide = |i: &usize| arrays[*i].dims.iter().filter(|&&d| d > 1).count() >= axes.min(2);
        let shaped: Vec<usize> = (0..arrays.len())
            .filter(|&i| shaped(i) && arrays[i].dims.len() >= axes && role(&arrays[i].name, &LABELS).is_none())
            .filter(wide)
            .collect();
        match shaped[..] {
            [only] => return Ok(vec![only]),
            [] => {}
            _ => {
                return Err(format!(
                    "more than one array could be the images ({}); choose one with --images-key",
                    names(arrays, &shaped)
                ));
            }
        }
    }
    Err(format!("no array looks like images; there are {}", list(arrays)))
}

/// Two image arrays of the same part of the data cannot both be meant.
fn ambiguous(arrays: &[Named], named: &[usize]) -> Option<String> {
    for (k, &a) in named.iter().enumerate() {
        let twins: Vec<usize> = named[k..].iter().copied().filter(|&b| part(arrays, a) == part(arrays, b)).collect();
        if twins.len() > 1 {
            return Some(names(arrays, &twins));
        }
    }
    None
}

fn part(arrays: &[Named], index: usize) -> Option<String> {
    role(&arrays[index].name, &IMAGES)
}

fn labels_of(arrays: &[Named], images: usize, all_images: &[usize], given: Option<&[usize]>) -> Option<usize> {
    let candidates: Vec<usize> = match given {
        Some(given) => given.to_vec(),
        None => (0..arrays.len()).filter(|&i| role(&arrays[i].name, &LABELS).is_some()).collect(),
    };
    // Labels named by the user match by group alone: their own name need not be telling.
    let label_part = |i: usize| match given {
        Some(_) => group(&arrays[i].name).to_ascii_lowercase(),
        None => role(&arrays[i].name, &LABELS).unwrap_or_default(),
    };
    let image_part = match given {
        Some(_) => group(&arrays[images].name).to_ascii_lowercase(),
        None => part(arrays, images).unwrap_or_default(),
    };
    let same: Vec<usize> = candidates.iter().copied().filter(|&i| label_part(i) == image_part).collect();
    match same[..] {
        [only] => Some(only),
        _ if all_images.len() == 1 && candidates.len() == 1 => Some(candidates[0]),
        _ => None,
    }
}

/// If the name holds one of the role's words, the rest of it: what tells one part of the data from
/// another. `x_train` and `train/data` give `train`.
fn role(name: &str, words: &[&str]) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let last = last_part(&lower);
    let group = group(&lower);
    let rest = words.iter().find_map(|word| rest_of(last, word))?;
    let parts: Vec<&str> = [group, &rest].into_iter().filter(|p| !p.is_empty()).collect();
    Some(parts.join("/"))
}

/// `train` for (`x_train`, `x`), (`trainx`, `x`) or (`train_images`, `images`); empty for an exact match.
fn rest_of(name: &str, word: &str) -> Option<String> {
    if name == word {
        return Some(String::new());
    }
    let separators = ['_', '-', '.', ' '];
    for rest in [name.strip_prefix(word), name.strip_suffix(word)].into_iter().flatten() {
        let trimmed = rest.trim_matches(separators);
        if trimmed.len() < rest.len() || SPLITS.contains(&trimmed) {
            return Some(trimmed.to_owned());
        }
    }
    None
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn group(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(group, _)| group)
}

fn names(arrays: &[Named], which: &[usize]) -> String {
    which.iter().map(|&i| arrays[i].name.as_str()).collect::<Vec<_>>().join(", ")
}

fn list(arrays: &[Named]) -> String {
    if arrays.is_empty() {
        return "no numeric arrays".to_owned();
    }
    let shown: Vec<String> = arrays.iter().take(12).map(|a| format!("{} {}", a.name, show(&a.dims))).collect();
    let more = if arrays.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(list: &[(&str, &[usize])]) -> Vec<Named> {
        list.iter().map(|(name, dims)| Named { name: (*name).to_owned(), dims: dims.to_vec() }).collect()
    }

    fn found(list: &[(&str, &[usize])], keys: &Keys) -> Vec<(String, Option<String>)> {
        let arrays = arrays(list);
        let name = |i: usize| arrays[i].name.clone();
        find(&arrays, keys).unwrap().into_iter().map(|p| (name(p.images), p.labels.map(name))).collect()
    }

    fn pair(images: &str, labels: &str) -> (String, Option<String>) {
        (images.to_owned(), Some(labels.to_owned()))
    }

    #[test]
    fn groups_and_suffixes_are_joined_training_first() {
        let usps: &[(&str, &[usize])] =
            &[("test/data", &[7, 256]), ("test/target", &[7]), ("train/data", &[9, 256]), ("train/target", &[9])];
        assert_eq!(
            found(usps, &Keys::default()),
            [pair("train/data", "train/target"), pair("test/data", "test/target")]
        );
        let keras: &[(&str, &[usize])] =
            &[("x_test", &[7, 28, 28]), ("x_train", &[9, 28, 28]), ("y_train", &[9]), ("y_test", &[7])];
        assert_eq!(found(keras, &Keys::default()), [pair("x_train", "y_train"), pair("x_test", "y_test")]);
        let medmnist: &[(&str, &[usize])] = &[
            ("train_images", &[9, 28, 28]),
            ("val_images", &[5, 28, 28]),
            ("train_labels", &[9, 1]),
            ("val_labels", &[5, 1]),
        ];
        assert_eq!(
            found(medmnist, &Keys::default()),
            [pair("train_images", "train_labels"), pair("val_images", "val_labels")]
        );
    }

    #[test]
    fn single_arrays_need_no_telling_name() {
        assert_eq!(found(&[("X", &[32, 32, 3, 9]), ("y", &[9, 1])], &Keys::default()), [pair("X", "y")]);
        assert_eq!(found(&[("fea", &[9, 1024]), ("gnd", &[9, 1])], &Keys::default()), [pair("fea", "gnd")]);
        assert_eq!(found(&[("faces", &[9, 64, 64]), ("target", &[9])], &Keys::default()), [pair("faces", "target")]);
        assert_eq!(found(&[("faces", &[9, 64, 64])], &Keys::default()), [("faces".to_owned(), None)]);
    }

    #[test]
    fn keys_override_the_guess() {
        let list: &[(&str, &[usize])] = &[("a", &[9, 8, 8]), ("b", &[9, 8, 8]), ("kind", &[9]), ("y", &[9])];
        assert!(find(&arrays(list), &Keys::default()).unwrap_err().contains("--images-key"));
        let keys = Keys { images: Some("b".to_owned()), labels: Some("/kind".to_owned()) };
        assert_eq!(found(list, &keys), [pair("b", "kind")]);
        let none = Keys { images: Some("c".to_owned()), labels: None };
        assert!(find(&arrays(list), &none).unwrap_err().contains("a [9, 8, 8]"));
        let grouped: &[(&str, &[usize])] =
            &[("test/p", &[7, 9]), ("test/q", &[7]), ("train/p", &[9, 9]), ("train/q", &[9])];
        let keys = Keys { images: Some("p".to_owned()), labels: Some("q".to_owned()) };
        assert_eq!(found(grouped, &keys), [pair("train/p", "train/q"), pair("test/p", "test/q")]);
    }

    #[test]
    fn no_images_is_an_error_that_lists_what_there_is() {
        let error = find(&arrays(&[("y", &[9]), ("weights", &[9])]), &Keys::default()).unwrap_err();
        assert!(error.contains("no array looks like images") && error.contains("weights [9]"), "{error}");
    }
}
