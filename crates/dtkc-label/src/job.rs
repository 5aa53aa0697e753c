//! What decides the content of an output, kept beside it: `--resume` and `merge` must not mix different things.

use std::path::{Path, PathBuf};

use dtkc_image::Limits;
use dtkc_item::{ImageShape, ItemShape};
use dtkc_observe::Observer;
use dtkc_source::parquet::RowColumns;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{LabelError, Result};
use crate::journal::with_suffix;
use crate::keep::Keep;
use crate::layout::Layout;
use crate::sequences::SequenceSettings;
use crate::shard::Shard;
use crate::source::{Inputs, Wanted};

/// Everything that decides which rows a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The model, as given.
    pub model: String,
    /// SHA-256 of its file.
    pub model_sha256: String,
    /// The inputs, as given, in order.
    pub inputs: Vec<String>,
    /// Columns and names.
    pub layout: Layout,
    /// The model's input size, where it takes images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ImageShape>,
    /// Values per time step, where it takes sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dim: Option<usize>,
    /// How sequences are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequences: Option<SequenceSettings>,
    /// The column of images in tables, where it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_column: Option<String>,
    /// Their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_column: Option<String>,
    /// Their classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_column: Option<String>,
    /// Most bytes of an image file.
    pub max_bytes: u64,
    /// Most pixels per side.
    pub max_side: u32,
    /// Most pixels in all.
    pub max_pixels: u64,
    /// The folder of `--sort-into`.
    pub sort_into: Option<PathBuf>,
    /// The columns of the input that are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// What the tables that have them are known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<String>,
    /// Where copies are looked for: the most bits in which their hashes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<u32>,
}

impl Settings {
    /// What the model takes.
    pub fn item(&self) -> ItemShape {
        match (self.shape, self.dim) {
            (Some(shape), _) => ItemShape::Image(shape),
            (None, dim) => ItemShape::Sequence { dim: dim.unwrap_or(1) },
        }
    }

    /// What one image may cost.
    pub fn limits(&self) -> Limits {
        Limits { max_bytes: self.max_bytes, max_side: self.max_side, max_pixels: self.max_pixels }
    }

    /// Opens the inputs again, as the run did.
    pub fn open_inputs(&self, observer: &dyn Observer) -> Result<Inputs> {
        let options = match (&self.sequences, self.item()) {
            (Some(sequences), ItemShape::Sequence { dim }) => Some(sequences.options(dim, self.limits())?),
            _ => None,
        };
        let columns = RowColumns {
            image: self.image_column.clone(),
            name: self.id_column.clone(),
            label: self.label_column.clone(),
        };
        let (shape, max_bytes, sequences) = (self.item(), self.max_bytes, options.as_ref());
        let wanted = Wanted { shape, max_bytes, sequences, columns: &columns };
        Inputs::open(&self.inputs, &wanted, observer)
    }
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Stopped; `--resume` goes on.
    Interrupted,
    /// All rows are there.
    Complete,
}

/// The small file beside an output: what it is and whether it is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The program and its version.
    pub tool: String,
    /// How far it came.
    pub state: State,
    /// Rows in the output.
    pub rows: u64,
    /// Which share of the input.
    pub shard: Shard,
    /// What decides the rows.
    pub settings: Settings,
}

/// Where the job file of an output is.
pub fn path_for(output: &Path) -> PathBuf {
    with_suffix(output, ".job.json")
}

impl Job {
    /// Describes an output of this program.
    pub fn new(state: State, rows: u64, shard: Shard, settings: &Settings) -> Self {
        let tool = format!("dtkc-label {}", env!("CARGO_PKG_VERSION"));
        Self { tool, state, rows, shard, settings: settings.clone() }
    }

    /// Writes the job file of `output`.
    pub fn write(&self, output: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).map_err(std::io::Error::from)?;
        text.push('\n');
        Ok(dtkc_files::write(&path_for(output), text.as_bytes())?)
    }

    /// Reads the job file of `output`.
    pub fn read(output: &Path) -> Result<Self> {
        let path = path_for(output);
        let text = fs_err::read_to_string(&path)?;
        serde_json::from_str(&text)
            .map_err(|e| LabelError::file(&path, format!("it is not a job file of dtkc-label ({e})")))
    }

    /// Reads it where there is one.
    pub fn find(output: &Path) -> Result<Option<Self>> {
        if path_for(output).exists() { Self::read(output).map(Some) } else { Ok(None) }
    }
}

/// What a journal begins with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Which share of the input.
    pub shard: Shard,
    /// What decides the rows.
    pub settings: Settings,
}

impl Head {
    /// As one line.
    pub fn line(&self) -> Result<String> {
        Ok(serde_json::to_string(self).map_err(std::io::Error::from)?)
    }

    /// Refuses to go on with a journal that was begun with something else.
    pub fn check(&self, line: &str, journal: &Path) -> Result<()> {
        let old: Value = serde_json::from_str(line).map_err(|e| LabelError::wrap(journal, e))?;
        let tables = old.pointer("/settings/tables").and_then(Value::as_str);
        if let (Some(old), Some(new)) = (tables, &self.settings.tables)
            && old != new
        {
            let reason = format!(
                "the tables of the input have changed since the run began (then {old}; now {new}), and their columns would \
                 stand beside the labels of other images; restore them, or start over with --force without --resume"
            );
            return Err(LabelError::file(journal, reason));
        }
        match difference(&old, self) {
            None => Ok(()),
            Some(difference) => {
                let reason = format!(
                    "it was begun with other settings ({difference}); use the same, or --force without --resume to start over"
                );
                Err(LabelError::file(journal, reason))
            }
        }
    }
}

/// The first thing in which two settings differ, as "`key` was A and is now B".
pub fn difference(old: &impl Serialize, new: &impl Serialize) -> Option<String> {
    // By way of the text: as a value, 0.9 in single precision is another number than 0.9 read from a file.
    let value = |text: String| serde_json::from_str::<Value>(&text).ok();
    let (old, new) = (value(serde_json::to_string(old).ok()?)?, value(serde_json::to_string(new).ok()?)?);
    first_difference("", &old, &new)
}

fn first_difference(key: &str, old: &Value, new: &Value) -> Option<String> {
    if old == new {
        return None;
    }
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let keys = old.keys().chain(new.keys().filter(|k| !old.contains_key(*k)));
        let value = |map: &serde_json::Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or(Value::Null);
        return keys.into_iter().find_map(|k| first_difference(k, &value(old, k), &value(new, k)));
    }
    let show = |value: &Value| {
        let text = value.to_string();
        if text.chars().count() > 80 { text.chars().take(79).chain(['…']).collect() } else { text }
    };
    Some(format!("{key} was {} and is now {}", show(old), show(new)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let old = json!({"a": 1, "b": {"c": [1, 2], "d": null}});
        assert_eq!(difference(&old, &old), None);
        let new = json!({"a": 1, "b": {"c": [1, 3], "d": null}});
        assert_eq!(difference(&old, &new).as_deref(), Some("c was [1,2] and is now [1,3]"));
        let new = json!({"a": 1, "b": {"c": [1, 2], "d": null}, "e": true});
        assert_eq!(difference(&old, &new).as_deref(), Some("e was null and is now true"));
        assert_eq!(difference(&json!({"p": 0.9}), &std::collections::BTreeMap::from([("p", 0.9f32)])), None);
    }
}
