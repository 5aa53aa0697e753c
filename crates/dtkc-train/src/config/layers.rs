//! Layers of a run's settings taken apart: what the run knows, and what belongs to the method.

use std::path::Path;

use dtkc_methods::dtkc::Preset;
use dtkc_methods::{Method, SettingError};
use dtkc_settings::overlay;
use serde::{Deserialize as _, Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use super::DataConfig;
use crate::error::TrainError;

/// The tables of a run; every other name belongs to the method.
const OWN: [&str; 4] = ["plan", "data", "run", "prune"];

/// Layers taken apart.
pub(super) struct Split {
    /// The method that the last layer to name one names.
    pub method: Method,
    /// The preset that the last layer to name one names.
    pub preset: Option<String>,
    /// Per layer, the tables of the run.
    own: Vec<Table>,
    /// Per layer, the method's settings.
    settings: Vec<Table>,
}

impl Split {
    /// Takes layers apart. The settings of a method stand in the table of its name or, as flags give them, at the top.
    pub(super) fn new(layers: &[Table]) -> Result<Self, TrainError> {
        let chosen = |key: &str| -> Result<Option<String>, TrainError> {
            match layers.iter().rev().find_map(|layer| layer.get(key)) {
                None => Ok(None),
                Some(Value::String(name)) => Ok(Some(name.clone())),
                Some(other) => Err(SettingError::Value(format!("{key} must be a name, not {other}")).into()),
            }
        };
        let preset = chosen("preset")?;
        let method = match chosen("method")? {
            Some(name) => name.parse()?,
            None => usual(layers, preset.as_deref()),
        };
        let (mut own, mut settings) = (Vec::new(), Vec::new());
        for layer in layers {
            let mut layer = layer.clone();
            layer.remove("method");
            layer.remove("preset");
            let mut mine = Table::new();
            for name in OWN {
                mine.extend(take(&mut layer, name)?.map(|table| (name.to_owned(), Value::Table(table))));
            }
            let mut named = Table::new();
            for other in Method::ALL {
                match take(&mut layer, other.name())? {
                    Some(table) if other == method => named = table,
                    // A file of one method taken as a start for another: its numbers say nothing here.
                    Some(_) | None => {}
                }
            }
            own.push(mine);
            settings.extend([named, layer]);
        }
        Ok(Self { method, preset, own, settings })
    }

    /// The method's settings, in order.
    pub(super) fn settings(&self) -> Vec<&Table> {
        self.settings.iter().collect()
    }

    /// One of the run's tables: `defaults` with every layer put over it.
    pub(super) fn overlay<T: Serialize + DeserializeOwned>(&self, name: &str, defaults: &T) -> Result<T, TrainError> {
        let layers: Vec<&Table> = self.own.iter().filter_map(|layer| layer.get(name)?.as_table()).collect();
        Ok(overlay(name, defaults, &layers)?)
    }

    /// The dataset. Its description is a record, not a setting: only names at its top are replaced.
    pub(super) fn data(&self) -> Result<DataConfig, TrainError> {
        let mut all = Table::new();
        for layer in &self.own {
            all.extend(layer.get("data").and_then(Value::as_table).cloned().unwrap_or_default());
        }
        DataConfig::deserialize(Value::Table(all)).map_err(|error| {
            let reason = error.to_string();
            TrainError::Setting(format!("[data] cannot be used: {}", reason.trim().lines().next().unwrap_or_default()))
        })
    }
}

/// The method of layers that name none: the one with companion objectives where something can only be said of them.
fn usual(layers: &[Table], preset: Option<&str>) -> Method {
    let asked = preset.is_some_and(is_published) || layers.iter().any(speaks_of_companions);
    if asked { Method::WITH_COMPANIONS } else { Method::USUAL }
}

/// Whether a preset of `dtkc` and `ddc` is the paper's, or that of its code.
pub fn is_published(preset: &str) -> bool {
    Preset::PUBLISHED.iter().any(|published| published.name() == preset)
}

fn speaks_of_companions(layer: &Table) -> bool {
    let weight = |value: &Value| value.as_float().or(value.as_integer().map(|n| n as f64)).is_none_or(|x| x != 0.0);
    let loss = layer.get("loss").and_then(Value::as_table);
    layer.contains_key(Method::WITH_COMPANIONS.name())
        || loss.is_some_and(|loss| loss.contains_key("companions") || loss.get("lambda").is_some_and(weight))
}

fn take(layer: &mut Table, name: &str) -> Result<Option<Table>, TrainError> {
    match layer.remove(name) {
        None => Ok(None),
        Some(Value::Table(table)) => Ok(Some(table)),
        Some(other) => Err(TrainError::Setting(format!("`{name}` must be a table ([{name}]), not {other}"))),
    }
}

/// Reads a settings file.
pub fn read_file(path: &Path) -> Result<Table, TrainError> {
    let text = fs_err::read_to_string(path)?;
    dtkc_settings::parse(&text).map_err(|reason| TrainError::ConfigFile { path: path.to_owned(), reason })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn companions_are_there_where_they_are_spoken_of() {
        let method =
            |text: &str| Split::new(&[Table::new(), dtkc_settings::parse(text).unwrap()]).unwrap().method.name();
        for text in [
            "",
            "preset = 'plus'",
            "[loss]\nlambda = 0",
            "[loss]\nlambda = 0.0\nsigma = 0.2",
            "[ddc.loss]\nsigma = 0.2",
        ] {
            assert_eq!(method(text), "ddc", "{text}");
        }
        for text in [
            "preset = 'paper'",
            "preset = 'authors'",
            "preset = 'tk-uco'",
            "[loss]\nlambda = 1",
            "[loss]\nlambda = 0.01",
            "[loss.companions]\nsigma = 0.5",
            "[dtkc.loss]\nsigma = 0.2",
        ] {
            assert_eq!(method(text), "dtkc", "{text}");
        }
        assert_eq!(method("method = 'ddc'\npreset = 'paper'"), "ddc", "a method that is named");
        assert_eq!(method("method = 'dec'\n[loss]\nlambda = 0.01"), "dec");
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        std::fs::write(&path, "a = 1\nb = = 2\n").unwrap();
        let error = read_file(&path).unwrap_err().to_string();
        assert!(error.contains("x.toml") && error.contains("line 2") && !error.contains('\n'), "{error}");
        assert!(read_file(&folder.path().join("no.toml")).unwrap_err().to_string().contains("no.toml"));
    }
}
