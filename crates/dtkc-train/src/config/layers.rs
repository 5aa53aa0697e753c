//! Layers of a run's settings taken apart: what the run knows, and what belongs to the method.

use std::path::Path;

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
        let method = chosen("method")?.map_or(Ok(Method::Dtkc), |name| name.parse())?;
        let preset = chosen("preset")?;
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
    fn a_broken_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        std::fs::write(&path, "a = 1\nb = = 2\n").unwrap();
        let error = read_file(&path).unwrap_err().to_string();
        assert!(error.contains("x.toml") && error.contains("line 2") && !error.contains('\n'), "{error}");
        assert!(read_file(&folder.path().join("no.toml")).unwrap_err().to_string().contains("no.toml"));
    }
}
