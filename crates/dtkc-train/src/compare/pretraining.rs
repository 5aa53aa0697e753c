//! Which cells begin with what another cell of the same dataset has pretrained.

use std::path::Path;

use dtkc_methods::Method;
use toml::Value;

use super::asked::layer_of;
use super::{Cell, CellRecord, Record, State};
use crate::config::RunConfig;
use crate::run_dir;

/// The name of the pretraining that a method has in common with others, or with other variants of itself: what one of
/// them has pretrained on a dataset, the others of the same name take over (`fit --pretrained`). `None` for methods that
/// pretrain nothing.
pub fn shares_pretraining(method: Method) -> Option<&'static str> {
    match method.name() {
        "dec" | "idec" | "dcn" | "spectralnet" => Some("autoencoder"),
        "dbc" => Some("convolutional autoencoder"),
        _ => None,
    }
}

/// What the outcome of a pretraining depends on, dataset and number of the restart apart.
#[derive(Debug, Clone, PartialEq)]
struct Basis {
    name: &'static str,
    /// The tables `network` and `pretraining` of the method, resolved.
    tables: [Option<Value>; 2],
    /// The batch where somebody chose it. Methods whose presets have different ones share all the same: that was decided
    /// when they got a pretraining in common.
    batch: Option<Value>,
    seed: u64,
}

impl Basis {
    /// Of a cell that is begun with these flags of `fit`; `None` where nothing is shared.
    fn of(method: Method, settings: &[String]) -> Option<Self> {
        let name = shares_pretraining(method)?;
        let layer = layer_of(method, settings).ok()?;
        let batch = layer.get("plan").and_then(|plan| plan.get("batch")).cloned();
        let config = RunConfig::resolve(&[layer]).ok()?;
        let table = config.settings.table().ok()?;
        Some(Self {
            name,
            tables: ["network", "pretraining"].map(|key| table.get(key).cloned()),
            batch,
            seed: config.run.seed,
        })
    }
}

/// The cell whose pretraining `cell` begins with: one of the same dataset that is done and would pretrain the same. Those
/// that pretrained themselves go first, because they can be given more.
pub(super) fn source<'a>(root: &Path, record: &'a Record, cell: &Cell) -> Option<&'a CellRecord> {
    let basis = Basis::of(cell.variant.method(), &cell.settings)?;
    let is_like = |known: &&CellRecord| {
        (known.set == cell.set && known.variant != cell.variant && known.state == State::Done)
            && Basis::of(known.variant.method(), &known.settings).as_ref() == Some(&basis)
            && run_dir::pretrained_path(&known.folder(root), 0).is_file()
    };
    let like: Vec<&CellRecord> = record.cells.iter().filter(is_like).collect();
    like.iter().copied().find(|known| known.pretrained_by.is_none()).or(like.first().copied())
}

/// Whether a new cell would begin with what an earlier one of `cells` has not pretrained yet.
pub(super) fn waits(root: &Path, record: &Record, cells: &[Cell], number: usize) -> bool {
    let cell = &cells[number];
    let Some(basis) = Basis::of(cell.variant.method(), &cell.settings) else { return false };
    let is_like = |other: &&Cell| {
        other.set == cell.set && Basis::of(other.variant.method(), &other.settings).as_ref() == Some(&basis)
    };
    let is_done =
        |other: &Cell| record.cell(&other.set, &other.variant).is_some_and(|known| known.state == State::Done);
    source(root, record, cell).is_none() && cells[..number].iter().filter(is_like).any(|other| !is_done(other))
}

/// Puts cells that have pretrained themselves before the other cells of their dataset: whoever takes that over then finds as
/// many restarts there as are asked for.
pub(super) fn sources_first(record: &Record, cells: &mut [Cell]) {
    let is_source = |cell: &Cell| {
        let pretrained = |known: &CellRecord| known.state != State::Waiting && known.pretrained_by.is_none();
        shares_pretraining(cell.variant.method()).is_some()
            && record.cell(&cell.set, &cell.variant).is_some_and(pretrained)
    };
    for of_set in cells.chunk_by_mut(|one, other| one.set == other.set) {
        of_set.sort_by_key(|cell| !is_source(cell));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::compare::{PassedOn, SetRecord, Variant};

    fn cell(name: &str, told: &PassedOn) -> Cell {
        let variant: Variant = name.parse().unwrap();
        let settings = told.deciding(&variant, 3);
        Cell { set: "a".into(), variant, data: "a.h5".into(), settings, restarts: 2 }
    }

    /// A record in which these cells are done, each with a pretrained restart.
    fn done(root: &Path, names: &[&str], told: &PassedOn) -> Record {
        let mut record = Record::default();
        record.add_sets(&[SetRecord::named("a")]).unwrap();
        let cells: Vec<Cell> = names.iter().map(|name| cell(name, told)).collect();
        record.add_cells(&cells);
        for cell in &cells {
            record.change(cell, |known| known.state = State::Done);
            let path = run_dir::pretrained_path(&cell.folder(root), 0);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        record
    }

    fn told(sets: &[&str]) -> PassedOn {
        PassedOn { sets: sets.iter().map(|&set| set.to_owned()).collect(), ..PassedOn::default() }
    }

    fn found(known: &[&str], name: &str, told: &PassedOn) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let record = done(folder.path(), known, told);
        source(folder.path(), &record, &cell(name, told)).map(|known| known.variant.to_string())
    }

    #[test]
    fn pretraining_is_taken_from_whoever_would_pretrain_the_same() {
        let plain = told(&[]);
        for (known, name, expected) in [
            ("dec", "idec", Some("dec")),
            ("dec", "spectralnet", Some("dec")),
            ("dec", "dec+lambda=0.01", Some("dec")),
            ("dec+lambda=0.01", "dec", Some("dec+lambda=0.01")),
            ("dec+lambda=0.01", "dcn+starts=3", Some("dec+lambda=0.01")),
            ("dbc", "dbc+lambda=0.01", Some("dbc")),
            ("dec+pretraining.epochs=7", "idec+pretraining.epochs=7", Some("dec+pretraining.epochs=7")),
            ("dec", "dec", None),
            ("dec", "dbc", None),
            ("dtkc", "ddc", None),
            ("dec", "dec+pretraining.epochs=7", None),
            ("dec", "dec+pretraining.optim.lr=0.1", None),
            ("dec", "dec+network.code=5", None),
            ("dec+network.code=5", "idec", None),
            ("dec", "dec+preset=mnist", None),
            ("dec", "dec+plan.batch=64", None),
        ] {
            assert_eq!(found(&[known], name, &plain).as_deref(), expected, "{name} after {known}");
        }
        assert_eq!(found(&["kmeans", "dcn", "dec"], "idec", &plain).as_deref(), Some("dcn"), "the first");
    }

    #[test]
    fn settings_of_a_method_count_for_its_variants() {
        let one = told(&["dec.network.code=5"]);
        assert_eq!(found(&["dec"], "dec+lambda=1", &one).as_deref(), Some("dec"));
        assert_eq!(found(&["dec"], "idec", &one), None);
        let both = told(&["dec.network.code=5", "idec.network.code=5", "plan.batch=24"]);
        assert_eq!(found(&["dec"], "idec", &both).as_deref(), Some("dec"));
        // A cell that was begun with other settings, by another command.
        let folder = tempfile::tempdir().unwrap();
        let record = done(folder.path(), &["dec"], &one);
        assert!(source(folder.path(), &record, &cell("dec+lambda=1", &told(&[]))).is_none());
        let seed = PassedOn { seed: Some(3), ..told(&["dec.network.code=5"]) };
        assert!(source(folder.path(), &record, &cell("dec+lambda=1", &seed)).is_none());
    }

    #[test]
    fn whoever_takes_over_a_pretraining_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let plain = told(&[]);
        let cells: Vec<Cell> = ["dec", "idec", "dtkc", "dcn"].iter().map(|name| cell(name, &plain)).collect();
        let waiting = |record: &Record| (0..4).map(|n| waits(folder.path(), record, &cells, n)).collect::<Vec<_>>();
        assert_eq!(waiting(&Record::default()), [false, true, false, true]);
        assert_eq!(waiting(&done(folder.path(), &["dec"], &plain)), [false; 4]);
    }

    #[test]
    fn whoever_pretrained_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let plain = told(&[]);
        let mut record = done(folder.path(), &["dec", "idec", "dcn"], &plain);
        for name in ["dec", "dcn"] {
            record.change(&cell(name, &plain), |known| known.pretrained_by = Some("idec".parse().unwrap()));
        }
        let taken = source(folder.path(), &record, &cell("dec+lambda=1", &plain)).unwrap();
        assert_eq!(taken.variant.name(), "idec");
        std::fs::remove_dir_all(folder.path().join("a/idec")).unwrap();
        let taken = source(folder.path(), &record, &cell("dec+lambda=1", &plain)).unwrap();
        assert_eq!(taken.variant.name(), "dec", "what was taken over is as good");

        let mut cells: Vec<Cell> =
            ["dtkc", "dec", "idec", "spectralnet"].iter().map(|name| cell(name, &plain)).collect();
        sources_first(&Record::default(), &mut cells);
        let names = |cells: &[Cell]| cells.iter().map(|cell| cell.variant.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&cells), ["dtkc", "dec", "idec", "spectralnet"], "a new comparison goes as it is asked for");
        sources_first(&record, &mut cells);
        assert_eq!(names(&cells), ["idec", "dtkc", "dec", "spectralnet"]);
    }
}
