//! Layers of settings: defaults, preset, file, flags. One engine for every table of every program.

use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;
use toml::{Table, Value};

/// A layer that cannot be used.
#[derive(Debug, Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum LayerError {
    /// A setting nobody knows.
    #[error("there is no setting `{name}`; {hint}")]
    Unknown {
        /// The setting's full name.
        name: String,
        /// The names that exist there.
        hint: String,
    },
    /// A value of the wrong kind.
    #[error("the settings cannot be used: {0}")]
    Value(String),
    /// A text that is no `KEY=VALUE`.
    #[error("'{0}' is no setting; write for example --set loss.consistency=0.5")]
    Assignment(String),
}

/// `defaults` with every layer put over it, table by table; lists are replaced as a whole. `name` is where the settings
/// stand in the file, for messages; empty at the top.
pub fn overlay<T: Serialize + DeserializeOwned>(name: &str, defaults: &T, layers: &[&Table]) -> Result<T, LayerError> {
    let mut all = table(defaults)?;
    for layer in layers {
        put(&mut all, layer, name, &|trial| T::deserialize(Value::Table(trial)).map(drop))?;
    }
    T::deserialize(Value::Table(all)).map_err(|e| LayerError::Value(first_line(&e)))
}

/// A struct as a table.
pub fn table(part: &impl Serialize) -> Result<Table, LayerError> {
    Table::try_from(part).map_err(|e| LayerError::Value(first_line(&e)))
}

/// What `table` says otherwise than `base`, table by table.
pub fn differences(table: &Table, base: &Table) -> Table {
    let mut found = Table::new();
    for (key, value) in table {
        match (value, base.get(key)) {
            (value, Some(old)) if value == old => {}
            (Value::Table(value), Some(Value::Table(old))) => {
                found.insert(key.clone(), Value::Table(differences(value, old)));
            }
            (value, _) => drop(found.insert(key.clone(), value.clone())),
        }
    }
    found
}

/// Puts `value` at `table.name` or `name`, whatever stood there.
pub fn insert(layer: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(layer.insert(key.to_owned(), value)),
        Some((table, rest)) => {
            let slot = layer.entry(table).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = slot {
                insert(inner, rest, value);
            }
        }
    }
}

/// Puts `key = value` (as given to `--set`) into a layer; a value that is not TOML is taken as a word.
pub fn set(layer: &mut Table, assignment: &str) -> Result<(), LayerError> {
    let bad = || LayerError::Assignment(assignment.to_owned());
    let (key, value) = assignment.split_once('=').ok_or_else(bad)?;
    let (key, value) = (key.trim(), value.trim());
    let parsed = format!("{key} = {value}").parse::<Table>();
    let parsed = parsed.or_else(|_| format!("{key} = {}", Value::String(value.to_owned())).parse::<Table>());
    join(layer, parsed.map_err(|_| bad())?);
    Ok(())
}

/// The text of a settings file; the error says in which line it is broken.
pub fn parse(text: &str) -> Result<Table, String> {
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
        format!("line {line} is not valid TOML ({})", error.message())
    })
}

fn join(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => join(inner, value),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

/// Whether a whole table can be read; given the part of it that is being changed, put in its place.
type Fits<'a> = dyn Fn(Table) -> Result<(), toml::de::Error> + 'a;

/// Puts `layer` over `all`. Values are tried one by one, so that a message can name the setting.
fn put(all: &mut Table, layer: &Table, path: &str, fits: &Fits<'_>) -> Result<(), LayerError> {
    for (key, value) in layer {
        let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let Some(old) = all.get(key) else {
            return Err(LayerError::Unknown { name, hint: hint(all, key, path) });
        };
        let around = all.clone();
        let within = |inner: Value| {
            let mut trial = around.clone();
            trial.insert(key.clone(), inner);
            fits(trial)
        };
        let new = match (old, value) {
            (Value::Table(inner), Value::Table(value)) => {
                let mut inner = inner.clone();
                put(&mut inner, value, &name, &|trial| within(Value::Table(trial)))?;
                Value::Table(inner)
            }
            (old, value) => {
                let value = as_float(old, value);
                within(value.clone()).map_err(|error| unfit(&name, old, &value, &error))?;
                value
            }
        };
        all.insert(key.clone(), new);
    }
    Ok(())
}

/// 1 is fine for 1.0.
fn as_float(old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Float(_), Value::Integer(whole)) => Value::Float(*whole as f64),
        _ => new.clone(),
    }
}

/// Why a value cannot stand where `old` stands.
fn unfit(name: &str, old: &Value, new: &Value, error: &toml::de::Error) -> LayerError {
    let kind = |value: &Value| match value {
        Value::Boolean(_) => "true or false",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::String(_) => "a name",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
        Value::Datetime(_) => "a time",
    };
    let text = match (old, new) {
        (Value::Integer(_), Value::Float(_) | Value::Integer(_)) => {
            format!("{name} must be a whole number of at least 0, not {new}")
        }
        (old, new) if kind(old) != kind(new) => {
            format!("{name} must be {}, not {new}: {}", kind(old), first_line(error))
        }
        _ => format!("{name} = {new}: {}", first_line(error)),
    };
    LayerError::Value(text)
}

fn first_line(error: &impl std::fmt::Display) -> String {
    error.to_string().trim().lines().next().unwrap_or_default().to_owned()
}

/// The name that was probably meant, or all names of the table.
fn hint(all: &Table, key: &str, path: &str) -> String {
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
    use serde::Deserialize;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Loss {
        lambda: f64,
        rule: Rule,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Rule {
        Wide,
        Narrow,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct All {
        loss: Loss,
        epochs: usize,
        sides: Vec<u32>,
    }

    fn all() -> All {
        All { loss: Loss { lambda: 0.5, rule: Rule::Wide }, epochs: 3, sides: vec![1, 2] }
    }

    fn with(layers: &[&str]) -> Result<All, String> {
        let layers: Vec<Table> = layers.iter().map(|text| text.parse().unwrap()).collect();
        overlay("", &all(), &layers.iter().collect::<Vec<_>>()).map_err(|e| e.to_string())
    }

    #[test]
    fn later_layers_win_and_lists_are_replaced() {
        let found = with(&["loss.lambda = 2\nepochs = 7", "loss.rule = 'narrow'\nepochs = 9\nsides = [5]"]).unwrap();
        assert_eq!(found, All { loss: Loss { lambda: 2.0, rule: Rule::Narrow }, epochs: 9, sides: vec![5] });
    }

    #[test]
    fn mistakes_are_named() {
        let fails = |layer: &str| with(&[layer]).unwrap_err();
        assert_eq!(fails("loss.lamda = 1"), "there is no setting `loss.lamda`; did you mean `lambda`?");
        assert!(fails("zebra = 1").contains("the names at the top are"), "{}", fails("zebra = 1"));
        assert!(fails("loss.lambda = 'fast'").contains("loss.lambda must be a number"));
        assert!(fails("epochs = 1.5").contains("epochs must be a whole number"));
        assert!(fails("epochs = -1").contains("epochs must be a whole number"));
        assert!(fails("loss = 3").contains("loss must be a table"));
        assert!(fails("loss.rule = 'wise'").contains("loss.rule") && fails("loss.rule = 'wise'").contains("wise"));
        assert!(!fails("loss.rule = 'wise'").contains('\n'));
    }

    #[test]
    fn only_differences_are_kept() {
        let base = table(&all()).unwrap();
        assert!(differences(&base, &base).is_empty());
        let other = with(&["loss.lambda = 2"]).unwrap();
        assert_eq!(differences(&table(&other).unwrap(), &base), "loss.lambda = 2.0".parse::<Table>().unwrap());
    }

    #[test]
    fn assignments_build_a_layer() {
        let mut layer = Table::new();
        for text in ["loss.sigma=0.3", "loss.bandwidth=squared", " plan.epochs = 4 ", "network.blocks=[{filters=8}]"] {
            set(&mut layer, text).unwrap();
        }
        insert(&mut layer, "plan.runs", Value::from(2));
        let expected: Table = "loss = { sigma = 0.3, bandwidth = 'squared' }\nplan = { epochs = 4, runs = 2 }\n\
                               network.blocks = [{ filters = 8 }]"
            .parse()
            .unwrap();
        assert_eq!(layer, expected);
        for bad in ["x", "=3", "a b=3"] {
            assert!(set(&mut layer, bad).unwrap_err().to_string().contains("--set"), "{bad}");
        }
    }
}
