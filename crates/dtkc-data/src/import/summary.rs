//! What an import did.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dtkc_item::ImageShape;
use serde::Serialize;

/// What an import did, for people and for `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The dataset file.
    pub out: PathBuf,
    /// Its name.
    pub name: String,
    /// "images" or "sequences".
    pub kind: &'static str,
    /// The formats that were read, such as "IDX".
    pub formats: Vec<&'static str>,
    /// Items in the dataset.
    pub count: u64,
    /// The size of every image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<ImageShape>,
    /// Values per time step of every sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// The classes with their sizes; none where there are no labels.
    pub classes: Vec<ClassCount>,
    /// Items of a labelled set whose class is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unlabelled: u64,
    /// Images that could not be imported.
    pub skipped: u64,
    /// The list of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped_file: Option<PathBuf>,
    /// Files that were passed over because they are no images, by the reason's code.
    pub passed_over: BTreeMap<&'static str, u64>,
    /// The list of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over_file: Option<PathBuf>,
    /// Remarks, such as how the size was chosen.
    pub notes: Vec<String>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// One class and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCount {
    /// The number in `/labels`.
    pub label: i64,
    /// Its name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Items of this class.
    pub count: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The classes of counted labels, by label.
pub fn class_counts(counts: &BTreeMap<i64, u64>, names: Option<&[String]>) -> Vec<ClassCount> {
    let name = |label: i64| names.and_then(|n| n.get(usize::try_from(label).ok()?)).cloned();
    counts.iter().map(|(&label, &count)| ClassCount { label, name: name(label), count }).collect()
}
