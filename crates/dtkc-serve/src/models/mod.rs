//! The models that are served, each under its name.

mod edits;
mod names;
mod points;
mod slot;

use std::path::Path;

pub use edits::Change;
pub use names::clean as clean_name;
pub use points::Points;
pub use slot::{Reloaded, Served, Slot, queue_full};

use crate::metrics::Metrics;

/// Splits what `--model` says into a name and where the file comes from: `NAME=PATH`, a path (named after its
/// file), or the name of a bundled model.
fn name_and_source(given: &str) -> Result<(String, String), String> {
    let (name, source) = match given.split_once('=') {
        Some((name, path)) if !name.contains(['/', '\\']) => (name.to_owned(), path.to_owned()),
        _ => {
            let stem = Path::new(given).file_stem().map(|s| s.to_string_lossy().into_owned());
            (stem.unwrap_or_default(), given.to_owned())
        }
    };
    // The name becomes part of addresses and of a file name.
    let good = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(good) {
        return Err(format!(
            "--model {given}: '{name}' cannot be a model's name; write --model NAME=PATH with letters, digits, '-' or '_'"
        ));
    }
    if source.is_empty() {
        return Err(format!("--model {given}: the path is missing; write --model NAME=PATH"));
    }
    Ok((name, source))
}

/// Opens every model of `--model`; nothing runs yet.
pub fn open_all(given: &[String], state_dir: Option<&Path>, metrics: &Metrics) -> Result<Vec<Slot>, String> {
    let mut slots: Vec<Slot> = Vec::new();
    for given in given {
        let (name, source) = name_and_source(given)?;
        if slots.iter().any(|slot| slot.name() == name) {
            return Err(format!("two models are named '{name}'; give one of them another name with --model NAME=PATH"));
        }
        slots.push(Slot::open(name, source, state_dir, metrics)?);
    }
    Ok(slots)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_after_their_files_or_as_told() {
        let pair = |given: &str| name_and_source(given).unwrap();
        assert_eq!(pair("mnist"), ("mnist".into(), "mnist".into()));
        assert_eq!(pair("runs/a/shoes.onnx"), ("shoes".into(), "runs/a/shoes.onnx".into()));
        assert_eq!(pair("shoes=runs/a=b/model.onnx"), ("shoes".into(), "runs/a=b/model.onnx".into()));
        assert_eq!(pair("runs/a=b/model.onnx"), ("model".into(), "runs/a=b/model.onnx".into()));
    }

    #[test]
    fn names_that_cannot_be_in_an_address_are_refused() {
        for given in ["my model=a.onnx", "a b.onnx", "..", "", "x=", "é=a.onnx"] {
            let error = name_and_source(given).unwrap_err();
            assert!(error.contains("NAME=PATH"), "{given}: {error}");
        }
    }
}
