//! Names for clusters, from a file of the user's.

use std::collections::BTreeMap;
use std::path::Path;

use dtkc_onnx::{Cluster, Metadata};

use crate::InferError;

/// The longest name of a cluster, in characters.
const MAX_NAME: usize = 100;

/// Names for some or all clusters, by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names(BTreeMap<usize, String>);

impl Names {
    /// Reads a file with names for the clusters of a model with `clusters` of them. Three forms are understood:
    /// a JSON list (`["zero", "one"]`), a JSON object (`{"3": "three"}`), or lines of id and name with a comma, tab
    /// or equals sign between (`3,three`); empty lines, lines that start with `#` and a heading `cluster,name` are
    /// skipped.
    pub fn read(path: &Path, clusters: usize) -> Result<Self, InferError> {
        let text = fs_err::read_to_string(path)?;
        Self::parse(&text, clusters).map_err(|reason| InferError::Names { path: path.to_owned(), reason })
    }

    /// The same for a text.
    pub fn parse(text: &str, clusters: usize) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}').trim();
        let pairs: Vec<(String, String)> = if text.starts_with('[') {
            let list: Vec<Option<String>> =
                serde_json::from_str(text).map_err(|error| format!("not a JSON list of names ({error})"))?;
            list.into_iter().enumerate().filter_map(|(id, name)| Some((id.to_string(), name?))).collect()
        } else if text.starts_with('{') {
            let map: BTreeMap<String, String> =
                serde_json::from_str(text).map_err(|error| format!("not a JSON object of names ({error})"))?;
            map.into_iter().collect()
        } else {
            lines(text)?
        };
        let mut names = Self::default();
        for (id, name) in pairs {
            let id: usize = id.trim().parse().map_err(|_| format!("{id:?} is not a cluster id"))?;
            if names.0.contains_key(&id) {
                return Err(format!("cluster {id} has two names"));
            }
            names.set(id, &name, clusters)?;
        }
        Ok(names)
    }

    /// Names one cluster of `clusters`. Names have 1 to 100 characters and no control characters.
    pub fn set(&mut self, id: usize, name: &str, clusters: usize) -> Result<(), String> {
        if id >= clusters {
            return Err(format!(
                "there is no cluster {id}; the model has clusters 0 to {}",
                clusters.saturating_sub(1)
            ));
        }
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(format!(
                "the name of cluster {id} must have 1 to {MAX_NAME} characters and no control characters"
            ));
        }
        self.0.insert(id, name.to_owned());
        Ok(())
    }

    /// The names by id.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().map(|(&id, name)| (id, name.as_str()))
    }

    /// Puts the names into a model's metadata; clusters that are not named here keep theirs.
    pub fn apply(&self, metadata: &mut Metadata) {
        for (&id, name) in &self.0 {
            if let Some(Cluster { name: slot, .. }) = metadata.clusters.get_mut(id) {
                *slot = Some(name.clone());
            }
        }
    }
}

fn lines(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((id, name)) = line.split_once([',', '\t', '=']) else {
            return Err(format!("line {} is not `id,name`", number + 1));
        };
        if pairs.is_empty() && id.trim().eq_ignore_ascii_case("cluster") {
            continue;
        }
        pairs.push((id.to_owned(), unquoted(name.trim()).to_owned()));
    }
    Ok(pairs)
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(usize, String)> {
        Names::parse(text, 10).unwrap().iter().map(|(id, name)| (id, name.to_owned())).collect()
    }

    #[test]
    fn three_forms_mean_the_same() {
        let expected = vec![(0, "zero".to_owned()), (3, "three, or so".to_owned())];
        assert_eq!(names(r#"["zero", null, null, "three, or so"]"#), expected);
        assert_eq!(names(r#"{"3": "three, or so", "0": "zero"}"#), expected);
        assert_eq!(names("cluster,name\n# mine\n\n0,zero\n3 , three, or so\n"), expected);
        assert_eq!(names("0\tzero\n3=\"three, or so\""), expected);
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| Names::parse(text, 4).unwrap_err();
        assert!(wrong("4,four").contains("clusters 0 to 3"));
        assert!(wrong("0,a\n0,b").contains("two names"));
        assert!(wrong("zero").contains("line 1"));
        assert!(wrong("x,y").contains("not a cluster id"));
        assert!(wrong("1,").contains("1 to 100 characters"));
        assert!(wrong("[1]").contains("JSON list"));
    }
}
