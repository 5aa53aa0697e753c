//! A method with changes to its settings: what a cell is called, and what it is told beside what all cells are.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use dtkc_methods::Method;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// Letters of a name beside ASCII letters and digits: those that every file system takes.
const MARKS: &str = "._-=+";
/// Longer folder names are refused by some systems once files stand below them.
const LONGEST: usize = 120;
/// The change that names a preset and no setting.
const PRESET: &str = "preset";

/// A method and what is changed about it: `dec`, `dec+loss.lambda=0.01`, `ddc+preset=authors`.
///
/// The text as it was given is its name. Two are equal when they change the same, in whatever order and spelling.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Variant {
    method: Method,
    /// Values by the full names of settings.
    changes: BTreeMap<String, String>,
    name: String,
}

impl Variant {
    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Its name: the text that it was given as.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing is changed about the method.
    pub fn is_plain(&self) -> bool {
        self.changes.is_empty()
    }

    /// The preset that it names.
    pub fn preset(&self) -> Option<&str> {
        self.changes.get(PRESET).map(String::as_str)
    }

    /// Its settings, as `fit --set` takes them.
    pub fn sets(&self) -> impl Iterator<Item = String> {
        self.changes.iter().filter(|(key, _)| *key != PRESET).map(|(key, value)| format!("{key}={value}"))
    }

    /// Whether it changes the setting of this name.
    pub fn changes(&self, key: &str) -> bool {
        self.changes.contains_key(key)
    }
}

/// The methods of variants, each once.
pub fn methods_of(variants: &[Variant]) -> Vec<Method> {
    let mut methods: Vec<Method> = variants.iter().map(Variant::method).collect();
    methods.sort_unstable_by_key(|method| method.name());
    methods.dedup();
    methods
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method && self.changes == other.changes
    }
}

impl Eq for Variant {}

impl From<Method> for Variant {
    fn from(method: Method) -> Self {
        Self { method, changes: BTreeMap::new(), name: method.name().to_owned() }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl FromStr for Variant {
    type Err = TrainError;

    fn from_str(text: &str) -> Result<Self, TrainError> {
        let mut parts = text.split('+');
        let method: Method = parts.next().unwrap_or_default().parse()?;
        check_name(text)?;
        let mut changes = BTreeMap::new();
        for part in parts {
            let (key, value) = change(text, part)?;
            if changes.insert(key.clone(), value).is_some() {
                return Err(refused(text, &format!("says twice what {key} is"), "leave one of them out"));
            }
        }
        Ok(Self { method, changes, name: text.to_owned() })
    }
}

impl TryFrom<String> for Variant {
    type Error = TrainError;

    fn try_from(text: String) -> Result<Self, TrainError> {
        text.parse()
    }
}

impl From<Variant> for String {
    fn from(variant: Variant) -> Self {
        variant.name
    }
}

fn refused(text: &str, cause: &str, remedy: &str) -> TrainError {
    TrainError::Setting(format!("'{text}' {cause}; {remedy}"))
}

/// Refuses what could not be the name of a folder on every system.
fn check_name(text: &str) -> Result<(), TrainError> {
    if let Some(bad) = text.chars().find(|&c| !c.is_ascii_alphanumeric() && !MARKS.contains(c)) {
        return Err(refused(
            text,
            &format!("has {bad:?}, which is no letter of a folder's name on every system"),
            "use letters, digits, . _ and -, and give lists to all variants with --set METHOD.KEY=VALUE",
        ));
    }
    if text.ends_with('.') {
        return Err(refused(text, "ends with a dot, as no folder may on every system", "leave the dot out"));
    }
    match text.len() > LONGEST {
        true => Err(refused(
            text,
            &format!("is longer than the {LONGEST} letters of a folder's name"),
            "give what all variants have in common with --set METHOD.KEY=VALUE",
        )),
        false => Ok(()),
    }
}

/// The setting and the value of one change, `KEY=VALUE`.
fn change(text: &str, part: &str) -> Result<(String, String), TrainError> {
    let split = part.split_once('=').filter(|(key, value)| is_key(key) && !value.is_empty() && !value.contains('='));
    let Some((key, value)) = split else {
        let remedy = "write for example dec+loss.lambda=0.01, and 1e3 for 1e+3";
        return Err(refused(text, &format!("has '{part}' where a change +KEY=VALUE should be"), remedy));
    };
    // As `fit --lambda` has it.
    let key = if key == "lambda" { "loss.lambda" } else { key };
    let first = key.split('.').next().unwrap_or_default();
    if Method::ALL.iter().any(|method| method.name() == first) {
        let remedy = "write the setting without it, as in dec+loss.lambda=0.01";
        return Err(refused(text, &format!("has the name of a method in the setting {key}"), remedy));
    }
    if matches!(first, "data" | "run" | "method") || key == "plan.restarts" {
        let remedy = "use a flag of compare, or another comparison";
        return Err(refused(text, &format!("changes {key}, which all cells of a comparison have in common"), remedy));
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn is_key(key: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    key.split('.').all(is_word)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn variant(text: &str) -> Variant {
        text.parse().unwrap()
    }

    #[test]
    fn a_variant_is_a_method_with_changes() {
        let made = variant("dtkc+loss.sigma=0.5+loss.kernel=naive+preset=authors");
        assert_eq!((made.method(), made.preset(), made.is_plain()), (Method::Dtkc, Some("authors"), false));
        assert_eq!(made.sets().collect::<Vec<_>>(), ["loss.kernel=naive", "loss.sigma=0.5"]);
        assert_eq!(made.to_string(), "dtkc+loss.sigma=0.5+loss.kernel=naive+preset=authors");
        let plain = variant("dec");
        assert!(plain.is_plain() && plain == Variant::from(Method::Dec) && plain.preset().is_none());
        for value in ["-1", "1e-3", "true", "0.01", "tk-uco", "mean_square"] {
            assert_eq!(variant(&format!("dec+a.b={value}")).sets().next().unwrap(), format!("a.b={value}"));
        }
    }

    #[test]
    fn the_same_changes_are_the_same_variant() {
        assert_eq!(variant("dec+lambda=0.1+tolerance=0"), variant("dec+tolerance=0+loss.lambda=0.1"));
        assert_ne!(variant("dec+lambda=0.1"), variant("dec+lambda=0.2"));
        assert_ne!(variant("dec+lambda=0.1"), variant("idec+lambda=0.1"));
        assert_ne!(variant("dec+lambda=0.1"), variant("dec"));
        assert_eq!(variant("dec+lambda=0.1").name(), "dec+lambda=0.1", "the name stays as it was given");
    }

    #[test]
    fn in_files_it_is_a_text() {
        for text in ["dec", "ddc+preset=authors"] {
            let json = serde_json::to_string(&variant(text)).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Variant>(&json).unwrap(), variant(text));
        }
        assert!(serde_json::from_str::<Variant>("\"dec+x\"").unwrap_err().to_string().contains("+KEY=VALUE"));
    }

    #[test]
    fn mistakes_get_one_sentence() {
        let long = format!("dec+a={}", "x".repeat(LONGEST));
        for (text, words) in [
            ("dctk+lambda=1", "`dctk` is no method"),
            ("+lambda=1", "is no method"),
            ("dec+", "has '' where"),
            ("dec+lambda", "has 'lambda' where"),
            ("dec+lambda=", "has 'lambda=' where"),
            ("dec+=1", "has '=1' where"),
            ("dec+a..b=1", "has 'a..b=1' where"),
            ("dec+a=b=c", "has 'a=b=c' where"),
            ("dec+lambda=1e+3", "1e3 for 1e+3"),
            ("dec+network.hidden=[5]", "'[', which is no letter"),
            ("dec+a=b/c", "'/', which is no letter"),
            ("dec+a=b c", "' ', which is no letter"),
            ("dec+a=ä", "which is no letter"),
            ("dec+lambda=1.", "ends with a dot"),
            (&long, "longer than the 120"),
            ("dec+lambda=1+loss.lambda=2", "says twice what loss.lambda is"),
            ("dec+ddc.loss.sigma=1", "the name of a method"),
            ("dec+run.seed=1", "which all cells"),
            ("dec+plan.restarts=1", "which all cells"),
            ("dec+data.path=x", "which all cells"),
            ("dec+method=ddc", "which all cells"),
        ] {
            let error = text.parse::<Variant>().unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("; ") && !error.contains('\n'), "{text}: {error}");
        }
    }
}
