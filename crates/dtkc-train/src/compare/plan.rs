//! The datasets of a comparison, and the cells that are wanted.

use std::collections::HashSet;
use std::path::Path;

use dtkc_dataset::Dataset;

use super::asked::names;
use super::{Asked, Cell, ClustersFor, SetRecord, Variant};
use crate::error::TrainError;

/// Looks at every dataset: what it holds, and how many clusters are asked for.
pub fn look_at(asked: &Asked) -> Result<Vec<SetRecord>, TrainError> {
    let mut sets: Vec<SetRecord> = Vec::with_capacity(asked.data.len());
    for path in &asked.data {
        let name = name_of(path)?;
        if let Some(twin) = sets.iter().find(|set| set.name == name) {
            let (path, twin) = (path.display(), twin.path.display());
            let text = format!("{twin} and {path} would both be called {name}; give the files different names");
            return Err(TrainError::Setting(text));
        }
        sets.push(look_at_one(path, name, &asked.clusters)?);
    }
    for unknown in asked.clusters.iter().filter_map(|one| one.set.as_ref()) {
        if !sets.iter().any(|set| set.name == *unknown) {
            return Err(unknown_name("--clusters", unknown, &known_sets(&sets)));
        }
    }
    Ok(sets)
}

/// The cells that are asked for, dataset by dataset.
pub fn cells(asked: &Asked, sets: &[SetRecord]) -> Result<Vec<Cell>, TrainError> {
    for name in asked.selection.names() {
        if !sets.iter().any(|set| asked.variants.iter().any(|variant| names(name, &set.name, variant))) {
            let variants = asked.variants.iter().map(Variant::name);
            let known: Vec<&str> = known_sets(sets).into_iter().chain(variants).collect();
            return Err(unknown_name("--only and --skip", name, &known));
        }
    }
    let all = sets.iter().flat_map(|set| asked.variants.iter().map(move |variant| (set, variant)));
    let wanted = all.filter(|(set, variant)| asked.selection.wants(&set.name, variant));
    let cells: Vec<Cell> = wanted
        .map(|(set, variant)| Cell {
            set: set.name.clone(),
            variant: variant.clone(),
            data: set.path.clone(),
            settings: asked.passed_on.deciding(variant, set.clusters),
            restarts: asked.restarts,
        })
        .collect();
    match cells.is_empty() {
        true => Err(TrainError::Setting("--only and --skip leave nothing to do".into())),
        false => Ok(cells),
    }
}

fn name_of(path: &Path) -> Result<String, TrainError> {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    match name.is_empty() || name.starts_with('.') {
        true => Err(TrainError::Setting(format!(
            "{} has no name that a folder could be called by; give the file one, such as usps.h5",
            path.display()
        ))),
        false => Ok(name),
    }
}

fn look_at_one(path: &Path, name: String, clusters: &[ClustersFor]) -> Result<SetRecord, TrainError> {
    let dataset = Dataset::open(path)?;
    let classes = dataset.labels()?.map(|labels| classes(&labels)).filter(|&classes| classes > 0);
    let given = clusters.iter().rev().find(|one| one.set.as_deref() == Some(&name));
    let given = given.or_else(|| clusters.iter().rev().find(|one| one.set.is_none())).map(|one| one.clusters);
    let Some(clusters) = given.or(classes.filter(|&classes| classes > 1)) else {
        let has = classes.map_or("no labels", |_| "one class only");
        let text = format!("{} has {has}; say how many clusters to look for with --clusters {name}=K", path.display());
        return Err(TrainError::Setting(text));
    };
    Ok(SetRecord {
        path: std::path::absolute(path)?,
        title: dataset.name().to_owned(),
        fingerprint: dataset.fingerprint()?,
        items: dataset.len(),
        kind: dataset.kind(),
        name,
        classes,
        clusters,
    })
}

/// Different labels; a negative one is none.
fn classes(labels: &[i64]) -> usize {
    labels.iter().filter(|&&label| label >= 0).collect::<HashSet<_>>().len()
}

fn known_sets(sets: &[SetRecord]) -> Vec<&str> {
    sets.iter().map(|set| set.name.as_str()).collect()
}

fn unknown_name(flag: &str, name: &str, known: &[&str]) -> TrainError {
    TrainError::Setting(format!("{flag}: nothing here is called {name}; there are {}", known.join(", ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;

    use dtkc_item::ImageShape;
    use dtkc_testing::Set;

    use super::*;
    use crate::compare::{PassedOn, Selection};

    const SHAPE: ImageShape = ImageShape { height: 4, width: 4, channels: 1 };

    fn asked(data: Vec<PathBuf>, clusters: &[&str]) -> Asked {
        Asked {
            data,
            variants: ["dtkc", "ddc"].map(|name| name.parse().unwrap()).to_vec(),
            clusters: clusters.iter().map(|text| text.parse().unwrap()).collect(),
            restarts: 3,
            selection: Selection::default(),
            passed_on: PassedOn::default(),
            budget: None,
            force: false,
        }
    }

    fn said<T: std::fmt::Debug>(result: Result<T, TrainError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn clusters_are_the_classes_unless_somebody_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let five = Set::new(SHAPE, 20).numbered(5).write(&path("five.h5"));
        let bare = Set::new(SHAPE, 20).write(&path("bare.h5"));
        let one = Set::new(SHAPE, 20).numbered(1).write(&path("one.h5"));
        let clusters = |data: &[&PathBuf], given: &[&str]| {
            let sets = look_at(&asked(data.iter().map(|path| (*path).clone()).collect(), given));
            sets.map(|sets| sets.iter().map(|set| (set.classes, set.clusters)).collect::<Vec<_>>())
        };
        assert_eq!(clusters(&[&five], &[]).unwrap(), [(Some(5), 5)]);
        assert_eq!(clusters(&[&five, &bare], &["7", "five=4"]).unwrap(), [(Some(5), 4), (None, 7)]);
        let text = said(clusters(&[&five, &bare], &[]));
        assert!(text.contains("bare.h5 has no labels") && text.contains("--clusters bare=K"), "{text}");
        assert!(said(clusters(&[&one], &[])).contains("one class only"));
        assert!(said(clusters(&[&five], &["fife=3"])).contains("nothing here is called fife; there are five"));
        assert!(said(clusters(&[&five, &five], &[])).contains("would both be called five"));
    }

    #[test]
    fn cells_go_dataset_by_dataset() {
        let sets = [SetRecord::named("a"), SetRecord::named("b")];
        let mut asked = asked(Vec::new(), &[]);
        let found = |asked: &Asked| cells(asked, &sets).map(|cells| cells.iter().map(Cell::name).collect::<Vec<_>>());
        assert_eq!(found(&asked).unwrap(), ["a/dtkc", "a/ddc", "b/dtkc", "b/ddc"]);
        asked.selection.skip = vec!["a/ddc".into(), "b".into()];
        assert_eq!(found(&asked).unwrap(), ["a/dtkc"]);
        asked.selection.only = vec!["b".into()];
        assert!(said(found(&asked)).contains("nothing to do"));
        asked.selection.only = vec!["c/dtkc".into()];
        assert!(said(found(&asked)).contains("nothing here is called c/dtkc; there are a, b, dtkc, ddc"));
    }

    #[test]
    fn negative_labels_are_no_class() {
        assert_eq!(classes(&[3, -1, 0, 3, -7]), 2);
    }
}
