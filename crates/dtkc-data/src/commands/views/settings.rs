//! The settings of the views: the defaults of training, a file, flags.

use std::path::Path;

use dtkc_cli::Usage;
use dtkc_item::{ImageShape, ItemKind};
use dtkc_settings::{differences, insert, overlay, parse, set, table};
use dtkc_views::{AugmentConfig, Reduction, SequenceViewConfig};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// What decides how views look, under the names that `dtkc-train fit --set` has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The views of images.
    pub augment: AugmentConfig,
    /// Those of sequences.
    pub sequence_views: SequenceViewConfig,
    network: Network,
}

/// What is said about the network and can be seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Network {
    reduce: usize,
}

/// Methods of `dtkc-train` that use random views. A file that names none is of the first where it has a table of it, else of
/// the second, as `fit` has it.
const METHODS: [&str; 2] = ["dtkc", "ddc"];
/// The preset that `dtkc-train fit` starts from, and the only one that makes views.
const PRESET: &str = "plus";
/// The smallest side that the usual network can take.
const LEAST_SIDE: usize = 20;

impl Settings {
    /// What `fit` starts from with the preset `plus`.
    fn plus() -> Self {
        let (augment, sequence_views) = (AugmentConfig::strong(), SequenceViewConfig::strong());
        Self { augment, sequence_views, network: Network { reduce: 0 } }
    }

    /// The same with the other presets.
    fn published() -> Self {
        let (augment, sequence_views) = (AugmentConfig::off(), SequenceViewConfig::default());
        Self { augment, sequence_views, network: Network { reduce: 1 } }
    }

    /// By how much images of this size are averaged down.
    pub fn factor(&self, shape: ImageShape) -> Result<usize, Usage> {
        let factor = match self.network.reduce {
            0 => Reduction(shape).usual(|seen| seen.height.min(seen.width) >= LEAST_SIDE),
            given => given,
        };
        match factor <= shape.height.min(shape.width) {
            true => Ok(factor),
            false => Err(Usage(format!("network.reduce = {factor} leaves nothing of images of {shape}; set it lower"))),
        }
    }

    /// Refuses numbers that would change nothing of such items.
    pub fn check(&self, kind: ItemKind) -> Result<(), Usage> {
        let (is_off, such_as) = match kind {
            ItemKind::Images => (self.augment.is_off(), "augment.rotation=10"),
            ItemKind::Sequences => (self.sequence_views.is_off(), "sequence_views.warp=0.2"),
            ItemKind::Features => {
                return Err(Usage("features have no views that can be drawn; name their images instead".into()));
            }
        };
        match is_off {
            true => Err(Usage(format!(
                "every number of the views is 0, so that they would all be equal to their original; set one, such as --set \
                 {such_as}"
            ))),
            false => Ok(()),
        }
    }

    /// The numbers of the views of such items that are not 0, in one line.
    pub fn described(&self, kind: ItemKind) -> String {
        let (config, off) = match kind {
            ItemKind::Images => (table(&self.augment), table(&AugmentConfig::off())),
            ItemKind::Sequences => (table(&self.sequence_views), table(&SequenceViewConfig::default())),
            ItemKind::Features => return String::new(),
        };
        let (Ok(config), Ok(off)) = (config, off) else { return String::new() };
        let changed = differences(&config, &off);
        let parts: Vec<String> = changed.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
        format!("views: {}", parts.join(", "))
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Float(number) => number.to_string(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    }
}

/// Flags win over the file, the file wins over the defaults.
pub fn resolve(file: Option<&Path>, sets: &[String]) -> anyhow::Result<Settings> {
    let usage = |error: &dyn std::fmt::Display| Usage(error.to_string());
    let (defaults, from_file) = match file {
        Some(path) => read(path)?,
        None => (Settings::plus(), Table::new()),
    };
    let mut flags = Table::new();
    for assignment in sets {
        set(&mut flags, assignment).map_err(|error| usage(&error))?;
    }
    let settings = overlay("", &defaults, &[&from_file, &flags]).map_err(|error| usage(&error))?;
    settings.augment.check().and(settings.sequence_views.check()).map_err(|error| usage(&error))?;
    Ok(settings)
}

/// What a settings file starts from, and what it says about views.
fn read(path: &Path) -> anyhow::Result<(Settings, Table)> {
    let text = fs_err::read_to_string(path)?;
    let all = parse(&text).map_err(|reason| Usage(format!("{}: {reason}", path.display())))?;
    let word = |key: &str, usual: &'static str| all.get(key).and_then(Value::as_str).unwrap_or(usual).to_owned();
    let method = word("method", METHODS.into_iter().find(|&method| all.contains_key(method)).unwrap_or(METHODS[1]));
    if !METHODS.contains(&method.as_str()) {
        let text = format!("{} is of the method {method}, which makes no random views", path.display());
        return Err(Usage(format!("{text}; name a file of dtkc or ddc, or leave --config out")).into());
    }
    let defaults = match word("preset", PRESET).as_str() {
        PRESET => Settings::plus(),
        _ => Settings::published(),
    };
    let inner = all.get(&method).and_then(Value::as_table);
    let mut layer = Table::new();
    // As `fit` has it: the method's own table, and what stands at the top.
    for found in inner.into_iter().chain([&all]) {
        for views in ["augment", "sequence_views"] {
            if let Some(told) = found.get(views) {
                merge(&mut layer, views, told);
            }
        }
        if let Some(reduce) = found.get("network").and_then(|network| network.get("reduce")) {
            insert(&mut layer, "network.reduce", reduce.clone());
        }
    }
    Ok((defaults, layer))
}

fn merge(layer: &mut Table, name: &str, told: &Value) {
    match (layer.get_mut(name), told) {
        (Some(Value::Table(before)), Value::Table(new)) => before.extend(new.clone()),
        _ => drop(layer.insert(name.into(), told.clone())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_views::Fill;

    fn all(file: &str, sets: &[&str]) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, file).unwrap();
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        resolve(Some(&path), &sets).map_err(|error| error.to_string())
    }

    fn with(file: &str, sets: &[&str]) -> Result<AugmentConfig, String> {
        all(file, sets).map(|settings| settings.augment)
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_preset() {
        let strong = AugmentConfig::strong();
        assert_eq!(resolve(None, &[]).unwrap().augment, strong);
        let file = "method = 'ddc'\n[dtkc.augment]\nscale = 0\n[ddc.augment]\nrotation = 3\nflip = 0.5\nfill = 'edge'";
        let expected = AugmentConfig { rotation: 7.0, flip: 0.5, fill: Fill::Edge, ..strong.clone() };
        assert_eq!(with(file, &["augment.rotation=7"]), Ok(expected));
        assert_eq!(with("augment.flip = 1", &[]), Ok(AugmentConfig { flip: 1.0, ..strong }));
        let paper = AugmentConfig { noise: 0.1, ..AugmentConfig::off() };
        assert_eq!(with("preset = 'paper'", &["augment.noise=0.1"]), Ok(paper));
    }

    #[test]
    fn mistakes_are_one_sentence() {
        let fails = |file: &str, set: &[&str]| with(file, set).unwrap_err();
        assert!(fails("", &["augment.rotatoin=7"]).contains("did you mean `rotation`?"));
        assert!(
            fails("", &["loss.lambda=7"])
                .contains("there is no setting `loss`; the names at the top are augment, network, sequence_views")
        );
        assert!(fails("", &["augment.rotation=700"]).contains("augment.rotation = 700 is out of range"));
        assert!(fails("", &["rotation"]).contains("'rotation' is no setting"));
        assert!(fails("method = 'dec'", &[]).contains("the method dec, which makes no random views"));
        let paper = all("preset = 'paper'", &["augment.noise=0.1"]).unwrap();
        paper.check(ItemKind::Images).unwrap();
        assert!(paper.check(ItemKind::Sequences).unwrap_err().0.contains("such as --set sequence_views.warp=0.2"));
        assert!(fails("", &["sequence_views.warp=9"]).contains("sequence_views.warp = 9 is out of range"));
        assert!(fails("augment = 3", &[]).contains("augment must be a table"));
        assert!(fails("a = = 1", &[]).contains("line 1 is not valid TOML"));
    }

    #[test]
    fn large_images_are_seen_as_training_sees_them() {
        let shape = |height, width| ImageShape { height, width, channels: 3 };
        let factor =
            |file, sets: &[&str], shape| all(file, sets).unwrap().factor(shape).map_err(|error| error.to_string());
        assert_eq!([28, 64, 256].map(|side| factor("", &[], shape(side, side)).unwrap()), [1, 2, 8]);
        assert_eq!(factor("", &[], shape(640, 40)), Ok(2));
        assert_eq!(factor("[dtkc.network]\nreduce = 3\nhidden = 9", &[], shape(256, 256)), Ok(3));
        assert_eq!(factor("[dtkc.network]\nreduce = 3", &["network.reduce=1"], shape(256, 256)), Ok(1));
        assert_eq!(factor("preset = 'paper'\naugment.flip = 1", &[], shape(256, 256)), Ok(1));
        assert!(
            factor("", &["network.reduce=9"], shape(8, 8)).unwrap_err().contains("leaves nothing of images of 8x8")
        );
    }

    #[test]
    fn what_is_not_off_is_told() {
        let config = AugmentConfig { rotation: 25.0, fill: Fill::Edge, both: true, ..AugmentConfig::off() };
        let settings = Settings { augment: config, ..Settings::plus() };
        let text = settings.described(ItemKind::Images);
        assert!(["rotation 25", "fill edge", "both true"].iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains("scale"), "{text}");
        assert!(settings.described(ItemKind::Sequences).contains("warp 0.4"));
    }
}
