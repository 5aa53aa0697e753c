//! Tables over tables: preset, file, flags.

use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use crate::error::TrainError;

/// A layer taken apart: what the method knows, and what the trainer knows.
pub(super) struct Split {
    pub method: Table,
    pub data: Table,
    pub run: Table,
    pub prune: Table,
}

/// Takes the trainer's own tables out of a layer.
pub(super) fn split(mut layer: Table) -> Result<Split, TrainError> {
    let mut take = |name: &str| match layer.remove(name) {
        None => Ok(Table::new()),
        Some(Value::Table(table)) => Ok(table),
        Some(other) => Err(TrainError::Setting(format!("`{name}` must be a table ([{name}]), not {other}"))),
    };
    let (data, run, prune) = (take("data")?, take("run")?, take("prune")?);
    Ok(Split { method: layer, data, run, prune })
}

/// `defaults` with every layer put over it.
pub(super) fn overlay<'a, T: Serialize + DeserializeOwned>(
    name: &str,
    defaults: &T,
    layers: impl Iterator<Item = &'a Table>,
) -> Result<T, TrainError> {
    let mut all = table(defaults)?;
    for layer in layers {
        for (key, value) in layer {
            if !all.contains_key(key) {
                let known: Vec<&str> = all.keys().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(TrainError::Setting(format!(
                    "there is no setting `{name}.{key}`; the names there are {known}"
                )));
            }
            // Checked one by one, so that a message can name the setting.
            let mut trial = all.clone();
            trial.insert(key.clone(), value.clone());
            if let Err(error) = T::deserialize(Value::Table(trial.clone())) {
                let reason = error.to_string();
                let reason = reason.trim().lines().next().unwrap_or_default();
                return Err(TrainError::Setting(format!("{name}.{key} = {value} cannot be used: {reason}")));
            }
            all = trial;
        }
    }
    T::deserialize(Value::Table(all)).map_err(|e| TrainError::Setting(format!("[{name}] cannot be used: {e}")))
}

/// A struct as a table.
pub(super) fn table(part: &impl Serialize) -> Result<Table, TrainError> {
    Table::try_from(part).map_err(|e| TrainError::Setting(e.to_string()))
}

/// Reads a settings file.
pub fn read_file(path: &Path) -> Result<Table, TrainError> {
    let text = fs_err::read_to_string(path)?;
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let reason = format!("line {line} is not valid TOML ({})", error.message());
        TrainError::ConfigFile { path: path.to_owned(), reason }
    })
}

/// Puts `key = value` (as given to `--set`) into a layer; a value that is not TOML is taken as a word.
pub fn set(layer: &mut Table, assignment: &str) -> Result<(), TrainError> {
    let bad =
        || TrainError::Setting(format!("'{assignment}' is no setting; write for example --set loss.consistency=0.5"));
    let (key, value) = assignment.split_once('=').ok_or_else(bad)?;
    let (key, value) = (key.trim(), value.trim());
    let parsed = format!("{key} = {value}").parse::<Table>();
    let parsed = parsed.or_else(|_| format!("{key} = {}", Value::String(value.to_owned())).parse::<Table>());
    merge(layer, parsed.map_err(|_| bad())?);
    Ok(())
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn assignments_build_a_layer() {
        let mut layer = Table::new();
        for text in ["loss.sigma=0.3", "loss.bandwidth=squared", " plan.epochs = 4 ", "network.blocks=[{filters=8}]"] {
            set(&mut layer, text).unwrap();
        }
        let expected: Table = "loss = { sigma = 0.3, bandwidth = 'squared' }\nplan.epochs = 4\n\
                               network.blocks = [{ filters = 8 }]"
            .parse()
            .unwrap();
        assert_eq!(layer, expected);
        for bad in ["x", "=3", "a b=3"] {
            assert!(set(&mut layer, bad).unwrap_err().to_string().contains("--set"), "{bad}");
        }
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
