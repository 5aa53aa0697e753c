#![allow(clippy::unwrap_used)]

use super::*;
use dtkc_methods::dtkc::Settings;

fn resolve(file: &str, flags: &str) -> Result<RunConfig, TrainError> {
    RunConfig::resolve(&[file.parse().unwrap(), flags.parse().unwrap()])
}

fn settings(config: &RunConfig) -> &Settings {
    match &config.settings {
        MethodSettings::Dtkc(settings) => settings,
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_win_over_file_and_file_over_preset() {
    let file = "preset = 'authors'\nplan.epochs = 7\nloss.sigma = 0.2\nrun.seed = 5\nrun.threads = 3";
    let config = resolve(file, "plan.epochs = 9\nrun.seed = 6\nrun.clusters = 4").unwrap();
    assert_eq!(config.preset, "authors");
    assert_eq!((config.plan.epochs, settings(&config).loss.sigma), (9, 0.2));
    assert_eq!((config.run.seed, config.run.threads, config.run.clusters), (6, 3, Clusters::Fixed(4)));
    assert_eq!(settings(&config).optim.clip_norm, 10.0, "the preset's own number");
    assert!(!settings(&config).refresh_statistics, "the published presets use running averages");
    assert!(settings(&resolve("preset = 'authors'", "preset = 'plus'").unwrap()).refresh_statistics);
}

#[test]
fn a_methods_settings_stand_in_its_own_table_or_at_the_top() {
    let table = resolve("dtkc.loss.sigma = 0.2\nddc.loss.sigma = 0.9", "").unwrap();
    assert_eq!(settings(&table).loss.sigma, 0.2, "the table of another method says nothing");
    let flag = resolve("dtkc.loss.sigma = 0.2", "loss.sigma = 0.3").unwrap();
    assert_eq!(settings(&flag).loss.sigma, 0.3);
    assert!(table.to_toml().unwrap().contains("[dtkc.loss]"), "{}", table.to_toml().unwrap());
}

#[test]
fn the_saved_file_resolves_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let mut config = resolve("", "run.clusters = 'auto'\nrun.k_range = '3..9'\noptim.lr = 0.1").unwrap();
    let input = ItemShape::Image(ImageShape { height: 28, width: 28, channels: 1 });
    config.data = DataConfig { path: "/x/y.h5".into(), items: 7, input, ..config.data };
    for clusters in [Clusters::Auto, Clusters::Fixed(5)] {
        config.run.clusters = clusters;
        config.write(&path).unwrap();
        assert_eq!(RunConfig::read(&path).unwrap(), config);
        assert_eq!(RunConfig::resolve(&[read_file(&path).unwrap()]).unwrap(), config, "as a start for another run");
    }
}

#[test]
fn the_hash_knows_what_matters() {
    let hash = |flags: &str| resolve("run.clusters = 4", flags).unwrap().hash().unwrap();
    let base = hash("");
    assert_eq!(base.len(), 64);
    for same in ["run.threads = 7", "plan.restarts = 3", "run.device = 'cuda'", "run.budget_seconds = 3.0"] {
        assert_eq!(hash(same), base, "{same}");
    }
    for other in [
        "run.seed = 1",
        "run.clusters = 5",
        "optim.lr = 0.5",
        "method = 'dtkc'",
        "plan.epochs = 3",
        "data.fingerprint = 'x'",
    ] {
        assert_ne!(hash(other), base, "{other}");
    }
}

#[test]
fn a_setting_that_came_later_does_not_orphan_a_run() {
    // A run of a version that did not know these settings: their names are missing from its file.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let config = resolve("preset = 'paper'", "run.clusters = 4").unwrap();
    config.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let older: String = text
        .lines()
        .filter(|line| {
            !["balance", "ramp", "refresh_statistics", "trial_steps"].iter().any(|new| line.starts_with(new))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(older.len() < text.len());
    std::fs::write(&path, older).unwrap();
    let read = RunConfig::read(&path).unwrap();
    assert_eq!(read.hash().unwrap(), config.hash().unwrap());
    assert_eq!(read, config);
}

#[test]
fn what_a_file_does_not_name_is_neutral_and_not_what_the_preset_says_today() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, "method = 'ddc'\npreset = 'plus'\nrun.clusters = 4\n").unwrap();
    let read = RunConfig::read(&path).unwrap();
    assert_eq!(settings(&read).loss.consistency, 0.0);
    assert_eq!(settings(&resolve("preset = 'plus'", "").unwrap()).loss.consistency, 1.0);
}

#[test]
fn mistakes_are_one_sentence() {
    let error = |flags: &str| resolve("", flags).unwrap_err().to_string();
    assert!(error("run.sead = 1").contains("run.sead"), "{}", error("run.sead = 1"));
    assert!(error("run.seed = 'x'").contains("run.seed"), "{}", error("run.seed = 'x'"));
    assert!(error("prune.keep = 2.0").contains("prune.keep"));
    assert!(error("loss.lamda = 2.0").contains("did you mean `lambda`"));
    assert!(error("run.clusters = 'many'").contains("auto"), "{}", error("run.clusters = 'many'"));
    assert!(error("run.budget_seconds = -1.0").contains("budget_seconds"));
    assert!(error("optim.lr = 0.0").contains("optim.lr"));
    assert!(error("run = 3").contains("run"));
    assert!(error("method = 'dctk'").contains("dtkc, ddc"));
    assert!(error("preset = 'papr'").contains("plus, paper, authors, tk-uco"));
    assert!(error("method = 'ddc'\nloss.lambda = 0.01").contains("ddc has no companion objectives"));
}
