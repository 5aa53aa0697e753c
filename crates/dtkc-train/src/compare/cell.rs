//! One variant of a method on one dataset, in the words of the program that makes it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{PassedOn, STOP_WITH_INPUT, Variant};

/// One variant of a method on one dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The dataset's name.
    pub set: String,
    /// The method with its changes.
    pub variant: Variant,
    /// The dataset's file.
    pub data: PathBuf,
    /// The flags of `fit` that decide what a restart becomes.
    pub settings: Vec<String>,
    /// How many restarts.
    pub restarts: usize,
}

/// How a cell's process begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// There is no run yet.
    New,
    /// A run is there that was begun with other settings; it is replaced.
    Anew,
    /// A run is there, and goes on.
    Resume,
}

/// What a cell's process is told beside what the cell is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    /// How it begins.
    pub begin: Begin,
    /// What all cells are told.
    pub told: &'a PassedOn,
    /// Its part of the time.
    pub budget: Option<Duration>,
    /// A run of another variant with the same pretraining.
    pub pretrained: Option<&'a Path>,
}

impl Cell {
    /// Its name: `DATASET/VARIANT`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.set, self.variant)
    }

    /// Its run directory.
    pub fn folder(&self, root: &Path) -> PathBuf {
        folder(root, &self.set, &self.variant)
    }

    /// The arguments of its process.
    pub(super) fn arguments(&self, root: &Path, start: &Start<'_>) -> Vec<OsString> {
        let mut words = match start.begin {
            Begin::Resume => flag("resume", self.folder(root)).to_vec(),
            Begin::New | Begin::Anew => self.fit(root, start),
        };
        words.extend(flag("--data", &self.data));
        words.extend(start.told.threads.iter().flat_map(|n| flag("--threads", n.to_string())));
        words.extend(start.told.after());
        // A table of many cells is what was asked for; any of them has its report by `dtkc-train report`.
        words.push("--no-report".into());
        words.push(STOP_WITH_INPUT.into());
        words
    }

    fn fit(&self, root: &Path, start: &Start<'_>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["fit".into()];
        words.extend(flag("--out", self.folder(root)));
        words.extend(flag("--method", self.variant.method().name()));
        words.extend(flag("--restarts", self.restarts.to_string()));
        words.extend(self.settings.iter().map(OsString::from));
        words.extend(start.told.device.iter().flat_map(|device| flag("--device", device.to_string())));
        words.extend(start.budget.iter().flat_map(|time| flag("--budget", format!("{:.3}s", time.as_secs_f64()))));
        words.extend(start.pretrained.iter().flat_map(|run| flag("--pretrained", run)));
        words.extend((start.begin == Begin::Anew).then(|| "--force".into()));
        words
    }
}

/// The run directory of a variant on a dataset.
pub(super) fn folder(root: &Path, set: &str, variant: &Variant) -> PathBuf {
    root.join(set).join(variant.name())
}

fn flag(name: &str, value: impl AsRef<std::ffi::OsStr>) -> [OsString; 2] {
    [name.into(), value.as_ref().to_owned()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_made_by_fit_and_goes_on_by_resume() {
        let cell = Cell {
            set: "usps".into(),
            variant: "ddc+preset=paper".parse().unwrap(),
            data: "usps.h5".into(),
            settings: vec!["--clusters".into(), "10".into(), "--no-prune".into()],
            restarts: 20,
        };
        let told = PassedOn { threads: Some(2), no_export: true, ..PassedOn::default() };
        let start = |begin, budget, pretrained| Start { begin, told: &told, budget, pretrained };
        let words = |start: Start<'_>| {
            let words = cell.arguments(Path::new("cmp"), &start);
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ").replace('\\', "/")
        };
        let end = "--data usps.h5 --threads 2 --no-export --no-report --stop-with-input";
        let fit = "fit --out cmp/usps/ddc+preset=paper --method ddc --restarts 20 --clusters 10 --no-prune";
        assert_eq!(words(start(Begin::New, None, None)), format!("{fit} {end}"));
        let (time, other) = (Some(Duration::from_millis(90_500)), Some(Path::new("cmp/usps/dec")));
        let more = format!("{fit} --budget 90.500s --pretrained cmp/usps/dec --force {end}");
        assert_eq!(words(start(Begin::Anew, time, other)), more);
        assert_eq!(words(start(Begin::Resume, time, other)), format!("resume cmp/usps/ddc+preset=paper {end}"));
    }
}
