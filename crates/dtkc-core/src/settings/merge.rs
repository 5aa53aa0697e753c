//! Layers of settings: preset, file, flags.

use super::{Method, Preset, Settings};
use crate::ConfigError;
use serde::Serialize;
use serde_json::{Map, Value};

/// Keys that say where to start from.
const CHOICES: [&str; 2] = ["preset", "method"];

pub(super) fn resolve<T: Serialize>(layers: &[T]) -> Result<Settings, ConfigError> {
    let layers = layers.iter().map(table).collect::<Result<Vec<_>, _>>()?;
    let chosen = |key: &str| -> Result<Option<String>, ConfigError> {
        match layers.iter().rev().find_map(|layer| layer.get(key).filter(|value| !value.is_null())) {
            None => Ok(None),
            Some(Value::String(name)) => Ok(Some(name.clone())),
            Some(other) => Err(ConfigError::Value(format!("{key} must be a name, not {other}"))),
        }
    };
    let preset = chosen("preset")?.map_or(Ok(Preset::Plus), |name| name.parse())?;
    let method = chosen("method")?.map_or(Ok(Method::Dtkc), |name| name.parse())?;
    let mut settings = Settings::preset(preset, method);
    for mut layer in layers {
        CHOICES.iter().for_each(|key| drop(layer.remove(*key)));
        settings = merged(&settings, &layer)?;
    }
    Ok(settings)
}

pub(super) fn merged(settings: &Settings, partial: &impl Serialize) -> Result<Settings, ConfigError> {
    let mut all = table(settings)?;
    let partial = table(partial)?;
    if let Some(key) = CHOICES.iter().find(|key| partial.contains_key(**key)) {
        return Err(ConfigError::Conflict(format!("`{key}` chooses where to start from, it cannot be merged")));
    }
    overlay(&mut all, partial, "")?;
    serde_json::from_value(Value::Object(all)).map_err(|e| ConfigError::Value(e.to_string()))
}

fn table(layer: &impl Serialize) -> Result<Map<String, Value>, ConfigError> {
    match serde_json::to_value(layer).map_err(|e| ConfigError::Value(e.to_string()))? {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        other => Err(ConfigError::Value(format!("expected a table of settings, found {other}"))),
    }
}

/// Puts `partial` over `all`, table by table. Absent values (null) leave what is there.
fn overlay(all: &mut Map<String, Value>, partial: Map<String, Value>, path: &str) -> Result<(), ConfigError> {
    for (key, value) in partial {
        let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let Some(slot) = all.get_mut(&key) else {
            return Err(ConfigError::Unknown { name, hint: hint(all, &key, path) });
        };
        match (slot, value) {
            (_, Value::Null) => {}
            (Value::Object(inner), Value::Object(value)) => overlay(inner, value, &name)?,
            (slot, value) => *slot = fitted(slot, value, &name)?,
        }
    }
    Ok(())
}

/// A value of the kind that stands there now; 1 is fine for 1.0.
fn fitted(old: &Value, new: Value, name: &str) -> Result<Value, ConfigError> {
    let kind = |value: &Value| match value {
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a name",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
        Value::Null => "nothing",
    };
    if std::mem::discriminant(old) != std::mem::discriminant(&new) {
        return Err(ConfigError::Value(format!("{name} must be {}, not {new}", kind(old))));
    }
    match (old.is_u64(), new.is_u64()) {
        (true, false) if old.is_number() => {
            Err(ConfigError::Value(format!("{name} must be a whole number of at least 0, not {new}")))
        }
        _ => Ok(new),
    }
}

/// The name that was probably meant, or all names of the table.
fn hint(all: &Map<String, Value>, key: &str, path: &str) -> String {
    let nearest = all.keys().map(|known| (edits(known, key), known)).min();
    match nearest {
        Some((distance, known)) if distance <= 2 => format!("did you mean `{known}`?"),
        _ => {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            let place = if path.is_empty() { "at the top" } else { "there" };
            format!("the names {place} are {}", names.join(", "))
        }
    }
}

/// Edit distance between two short names.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plus() -> Settings {
        Settings::preset(Preset::Plus, Method::Dtkc)
    }

    #[test]
    fn flags_win_over_file_and_file_over_preset() {
        let file = json!({"preset": "authors", "loss": {"sigma": 0.2, "lambda": 0.5}, "plan": {"epochs": 7}});
        let flags = json!({"loss": {"sigma": 0.4}, "method": null, "plan": {"epochs": null}});
        let settings = Settings::resolve(&[file, flags]).unwrap();
        assert_eq!(settings.preset, Preset::Authors);
        assert_eq!((settings.loss.sigma, settings.loss.lambda, settings.plan.epochs), (0.4, 0.5, 7));
        assert_eq!(settings.optim.clip_norm, 10.0);
    }

    #[test]
    fn the_saved_settings_resolve_to_themselves() {
        for preset in Preset::ALL {
            for method in Method::ALL {
                let settings = Settings::preset(preset, method);
                settings.check().unwrap();
                let text = serde_json::to_string(&settings).unwrap();
                let saved: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(Settings::resolve(&[saved]).unwrap(), settings);
                assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let fails = |partial: Value| plus().merged(&partial).unwrap_err().to_string();
        assert_eq!(fails(json!({"loss": {"lamda": 1.0}})), "there is no setting `loss.lamda`; did you mean `lambda`?");
        assert!(fails(json!({"zebra": 1})).contains("the names at the top are"));
        assert!(fails(json!({"optim": {"lr": "fast"}})).contains("optim.lr must be a number"));
        assert!(fails(json!({"plan": {"epochs": 1.5}})).contains("plan.epochs must be a whole number"));
        assert!(fails(json!({"plan": {"epochs": -1}})).contains("plan.epochs must be a whole number"));
        assert!(fails(json!({"loss": 3})).contains("loss must be a table"));
        assert!(fails(json!({"loss": {"bandwidth": "wide"}})).contains("wide"));
        assert!(fails(json!({"preset": "paper"})).contains("preset"));
        let error = Settings::resolve(&[json!({"preset": "papr"})]).unwrap_err().to_string();
        assert_eq!(error, "`papr` is no preset; there are paper, authors, tk-uco, plus");
    }

    #[test]
    fn whole_numbers_are_fine_for_fractions() {
        assert_eq!(plus().merged(&json!({"loss": {"lambda": 1}})).unwrap().loss.lambda, 1.0);
    }

    #[test]
    fn blocks_are_replaced_as_a_whole() {
        let settings = plus().merged(&json!({"network": {"blocks": [{"filters": 64}]}})).unwrap();
        assert_eq!(settings.network.blocks.len(), 1);
        assert_eq!((settings.network.blocks[0].filters, settings.network.blocks[0].kernel), (64, 3));
    }

    #[test]
    fn comparing_views_without_augmentation_is_refused() {
        let off = serde_json::to_value(crate::AugmentConfig::off()).unwrap();
        let settings = plus().merged(&json!({"augment": off})).unwrap();
        assert!(settings.check().unwrap_err().to_string().contains("augment"));
    }
}
