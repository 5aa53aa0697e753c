//! What a comparison is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use dtkc_methods::Method;
use toml::{Table, Value};

use super::Variant;
use crate::config::RunConfig;
use crate::device::DeviceName;
use crate::error::TrainError;

/// Tables of config.toml that belong to every run, whatever its method.
const EVERYBODYS: [&str; 3] = ["plan", "run", "prune"];

/// What a comparison is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The dataset files.
    pub data: Vec<PathBuf>,
    /// The methods, and variants of them.
    pub variants: Vec<Variant>,
    /// Numbers of clusters where they are not the numbers of classes.
    pub clusters: Vec<ClustersFor>,
    /// Restarts of each cell.
    pub restarts: usize,
    /// Which cells.
    pub selection: Selection,
    /// What the runs are told.
    pub passed_on: PassedOn,
    /// The time of all cells together.
    pub budget: Option<Duration>,
    /// Begin cells anew that were begun with other settings.
    pub force: bool,
}

/// A number of clusters: for one dataset (`coil=100`), or for all that are not named (`10`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClustersFor {
    /// The dataset; `None` for all others.
    pub set: Option<String>,
    /// How many.
    pub clusters: usize,
}

impl FromStr for ClustersFor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (set, number) = match text.split_once('=') {
            Some((set, number)) => (Some(set.trim().to_owned()), number.trim()),
            None => (None, text.trim()),
        };
        match number.parse() {
            Ok(clusters) if clusters >= 2 => Ok(Self { set, clusters }),
            _ => Err(format!("'{text}' is no number of clusters; write for example 10, or mnist=10,coil=100")),
        }
    }
}

/// Which cells: names of variants, of datasets, or `DATASET/VARIANT`.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only those that one of these names; all where there is none.
    pub only: Vec<String>,
    /// None of those that one of these names.
    pub skip: Vec<String>,
}

impl Selection {
    /// Whether a cell is wanted.
    pub fn wants(&self, set: &str, variant: &Variant) -> bool {
        let named = |name: &String| names(name, set, variant);
        (self.only.is_empty() || self.only.iter().any(named)) && !self.skip.iter().any(named)
    }

    /// Every name, to be checked.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.only.iter().chain(&self.skip)
    }
}

/// Whether `name` names the cell.
pub(super) fn names(name: &str, set: &str, variant: &Variant) -> bool {
    let is_variant = |name: &str| name.parse::<Variant>().is_ok_and(|named| named == *variant);
    match name.rsplit_once('/') {
        Some((a, b)) => a == set && is_variant(b),
        None => name == set || is_variant(name),
    }
}

/// What the runs are told.
#[derive(Debug, Clone, Default)]
pub struct PassedOn {
    /// `METHOD=NAME`: the preset of a method.
    pub presets: Vec<String>,
    /// `METHOD.key=value`, or `plan.key=value`, `run.key=value`, `prune.key=value` for all methods.
    pub sets: Vec<String>,
    /// Most epochs of a restart.
    pub epochs: Option<u32>,
    /// Seed of every run: restart i of each method has the same.
    pub seed: Option<u64>,
    /// Where to train.
    pub device: Option<DeviceName>,
    /// Threads.
    pub threads: Option<u32>,
    /// Whether restarts that are behind may be dropped early.
    pub prune: bool,
    /// Leave model.onnx out.
    pub no_export: bool,
    /// The ONNX Runtime library.
    pub onnxruntime: Option<PathBuf>,
}

impl PassedOn {
    /// Refuses what no run would take, before any of them begins.
    pub fn check(&self, variants: &[Variant]) -> Result<(), TrainError> {
        for word in &self.presets {
            split_preset(word)?;
        }
        for word in &self.sets {
            owner(word)?;
        }
        for variant in variants {
            // The number of clusters is no setting of a method: any will do.
            let resolved =
                layer_of(variant.method(), &self.deciding(variant, 2)).and_then(|l| RunConfig::resolve(&[l]));
            resolved.map_err(|error| match variant.is_plain() {
                true => error,
                false => TrainError::Setting(format!("{variant}: {error}")),
            })?;
        }
        Ok(())
    }

    /// The flags of `fit` that decide what a restart of a variant becomes. What it changes itself wins: `fit` lets flags win
    /// over `--set`, so that those are left out whose setting it changes.
    pub fn deciding(&self, variant: &Variant, clusters: usize) -> Vec<String> {
        let method = variant.method();
        let mut words = vec!["--clusters".to_owned(), clusters.to_string()];
        let mut flag =
            |name: &str, value: Option<String>| words.extend(value.map(|v| [name.to_owned(), v]).into_iter().flatten());
        flag("--preset", variant.preset().or_else(|| self.preset(method)).map(str::to_owned));
        let has_own_epochs = variant.changes("plan.epochs") || self.changes_of(method, "plan.epochs");
        flag("--epochs", self.epochs.filter(|_| !has_own_epochs).map(|n| n.to_string()));
        flag("--seed", self.seed.map(|n| n.to_string()));
        for setting in self.sets(method) {
            flag("--set", Some(setting.to_owned()));
        }
        variant.sets().for_each(|setting| flag("--set", Some(setting)));
        if !variant.changes("plan.prune") {
            words.push(if self.prune { "--prune" } else { "--no-prune" }.to_owned());
        }
        words
    }

    /// The flags of `fit` and `resume` about what happens after training.
    pub(super) fn after(&self) -> Vec<OsString> {
        let library = self.onnxruntime.iter().flat_map(|path| ["--onnxruntime".into(), path.clone().into_os_string()]);
        self.no_export.then(|| "--no-export".into()).into_iter().chain(library).collect()
    }

    fn preset(&self, method: Method) -> Option<&str> {
        self.presets
            .iter()
            .rev()
            .filter_map(|word| split_preset(word).ok())
            .find(|(of, _)| *of == method)
            .map(|(_, name)| name)
    }

    /// Whether a setting is changed for this method, and not for all.
    fn changes_of(&self, method: Method, key: &str) -> bool {
        let names =
            |word: &str| word.split_once('=').map_or(word, |(name, _)| name).trim() == format!("{method}.{key}");
        self.sets.iter().any(|word| names(word))
    }

    /// The settings of a method, as `fit --set` takes them: those of all first, so that its own win.
    fn sets(&self, method: Method) -> impl Iterator<Item = &str> {
        let all = self.sets.iter().filter(|word| matches!(owner(word), Ok(None))).map(String::as_str);
        let own = self.sets.iter().filter(move |word| matches!(owner(word), Ok(Some(of)) if of == method));
        all.chain(own.filter_map(|word| word.split_once('.').map(|(_, rest)| rest)))
    }
}

/// The layer of settings that flags made by [`PassedOn::deciding`] are to `fit`, as far as methods are concerned.
pub(super) fn layer_of(method: Method, words: &[String]) -> Result<Table, TrainError> {
    let mut layer = Table::new();
    dtkc_settings::insert(&mut layer, "method", Value::from(method.name()));
    let pairs = || words.iter().zip(words.iter().skip(1));
    for (_, setting) in pairs().filter(|(flag, _)| *flag == "--set") {
        dtkc_settings::set(&mut layer, setting)?;
    }
    for (flag, value) in pairs() {
        let number = || value.parse::<i64>().map_or_else(|_| Value::from(value.as_str()), Value::from);
        match flag.as_str() {
            "--preset" => dtkc_settings::insert(&mut layer, "preset", Value::from(value.as_str())),
            "--epochs" => dtkc_settings::insert(&mut layer, "plan.epochs", number()),
            "--seed" => dtkc_settings::insert(&mut layer, "run.seed", number()),
            _ => {}
        }
    }
    Ok(layer)
}

fn split_preset(word: &str) -> Result<(Method, &str), TrainError> {
    let (method, name) = word.split_once('=').ok_or_else(|| {
        TrainError::Setting(format!(
            "'{word}' does not say whose preset it is; write for example --preset dtkc=authors"
        ))
    })?;
    Ok((method.trim().parse()?, name.trim()))
}

/// A setting that means all of `methods`, in the words that [`PassedOn`] takes.
pub fn of_all(word: &str, methods: &[Method]) -> Vec<String> {
    let first = word.split(['.', '=']).next().unwrap_or_default().trim();
    match EVERYBODYS.contains(&first) {
        true => vec![word.to_owned()],
        false => methods.iter().map(|method| format!("{method}.{word}")).collect(),
    }
}

/// The method that a setting belongs to; `None` for all.
fn owner(word: &str) -> Result<Option<Method>, TrainError> {
    let first = word.split(['.', '=']).next().unwrap_or_default().trim();
    if EVERYBODYS.contains(&first) {
        return Ok(None);
    }
    first.parse().map(Some).map_err(|_| {
        let known: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
        let text = format!(
            "'{word}' does not say whose setting it is; begin with plan., run. or prune. (all methods), or with one of {}, such as --set dtkc.loss.lambda=0.1",
            known.join(", ")
        );
        TrainError::Setting(text)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn variant(name: &str) -> Variant {
        name.parse().unwrap()
    }

    #[test]
    fn clusters_are_for_one_or_for_all() {
        assert_eq!("10".parse(), Ok(ClustersFor { set: None, clusters: 10 }));
        assert_eq!("coil=100".parse(), Ok(ClustersFor { set: Some("coil".into()), clusters: 100 }));
        for bad in ["", "x", "1", "coil=", "coil=1", "=x", "3.5", "auto"] {
            assert!(bad.parse::<ClustersFor>().unwrap_err().contains("mnist=10"), "{bad}");
        }
    }

    #[test]
    fn names_choose_methods_datasets_and_cells() {
        let wants = |only: &[&str], skip: &[&str]| {
            let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let selection = Selection { only: list(only), skip: list(skip) };
            let cells = [("usps", "dtkc"), ("usps", "ddc"), ("coil", "dtkc"), ("coil", "ddc+preset=paper+lambda=0")];
            cells.map(|(set, name)| selection.wants(set, &variant(name)))
        };
        assert_eq!(wants(&[], &[]), [true; 4]);
        assert_eq!(wants(&["usps"], &[]), [true, true, false, false]);
        assert_eq!(wants(&["ddc"], &[]), [false, true, false, false], "no variants of it");
        let other_words = "coil/ddc+loss.lambda=0+preset=paper";
        assert_eq!(wants(&["ddc", "coil"], &[other_words]), [false, true, true, false]);
        assert_eq!(wants(&["usps/dtkc", "coil"], &[]), [true, false, true, true]);
        assert_eq!(wants(&[], &["dtkc"]), [false, true, false, true]);
    }

    #[test]
    fn settings_go_to_the_method_that_they_name() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let told = PassedOn {
            presets: words(&["dtkc=authors", "dtkc=paper"]),
            sets: words(&["dtkc.loss.lambda=0.1", "plan.batch=24", "ddc.plan.patience=3"]),
            epochs: Some(7),
            ..PassedOn::default()
        };
        told.check(&Method::ALL.map(Variant::from)).unwrap();
        let expected = "--clusters 10 --preset paper --epochs 7 --set plan.batch=24 --set loss.lambda=0.1 --no-prune";
        assert_eq!(told.deciding(&variant("dtkc"), 10).join(" "), expected);
        let expected = "--clusters 3 --epochs 7 --set plan.batch=24 --set plan.patience=3 --no-prune";
        assert_eq!(told.deciding(&variant("ddc"), 3).join(" "), expected);
        let longer =
            PassedOn { sets: words(&["spectral.plan.epochs=3", "plan.epochs=5"]), epochs: Some(7), ..told.clone() };
        let expected = "--clusters 3 --set plan.epochs=5 --set plan.epochs=3 --no-prune";
        assert_eq!(longer.deciding(&variant("spectral"), 3).join(" "), expected, "its own epochs win over the flag");
        assert!(longer.deciding(&variant("dec"), 3).join(" ").contains("--epochs 7"));
        let expected = "--clusters 3 --preset authors --set plan.batch=24 --set loss.lambda=0.1 --set loss.kernel=naive \
                        --set loss.lambda=0.2 --set plan.epochs=9 --set plan.prune=true";
        let own = variant("dtkc+plan.prune=true+preset=authors+lambda=0.2+plan.epochs=9+loss.kernel=naive");
        assert_eq!(told.deciding(&own, 3).join(" "), expected, "its own changes come last and win");
        told.check(&[own]).unwrap();
    }

    #[test]
    fn mistakes_are_found_before_any_run() {
        let said = |preset: &str, set: &str| {
            let list = |word: &str| if word.is_empty() { vec![] } else { vec![word.to_owned()] };
            let told = PassedOn { presets: list(preset), sets: list(set), ..PassedOn::default() };
            told.check(&[Method::Dtkc.into()]).unwrap_err().to_string()
        };
        assert!(said("authors", "").contains("--preset dtkc=authors"));
        assert!(said("dctk=authors", "").contains("dctk"));
        assert!(said("dtkc=autors", "").contains("autors"));
        assert!(said("", "loss.lambda=1").contains("whose setting"));
        assert!(said("", "dtkc.loss.lamda=1").contains("lambda"));
        assert!(said("", "plan.bach=1").contains("plan.bach"));
        for (name, words) in [
            ("dec+loss.lamda=1", "did you mean `lambda`"),
            ("dec+lambda=-1", "loss.lambda = -1"),
            ("dec+lambda=much", "loss.lambda must be a number"),
            ("ddc+lambda=0.1", "ddc has no companion objectives"),
            ("ddc+preset=autors", "autors"),
        ] {
            let text = PassedOn::default().check(&[variant("dec"), variant(name)]).unwrap_err().to_string();
            assert!(text.starts_with(&format!("{name}: ")) && text.contains(words), "{text}");
        }
    }

    #[test]
    fn flags_are_read_as_fit_reads_them() {
        let told =
            PassedOn { epochs: Some(7), seed: Some(3), sets: vec!["plan.epochs=2".into()], ..PassedOn::default() };
        let layer = layer_of(Method::Dec, &told.deciding(&variant("dec+preset=usps+lambda=1"), 3)).unwrap();
        let config = RunConfig::resolve(&[layer]).unwrap();
        assert_eq!((config.method, config.preset.as_str()), (Method::Dec, "usps"));
        assert_eq!((config.plan.epochs, config.run.seed), (7, 3));
    }
}
