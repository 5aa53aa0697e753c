//! What is taken over, by whom, and what is refused.
#![allow(clippy::unwrap_used)]

use dtkc_core::Values;
use dtkc_item::{ImageShape, ItemShape};

use super::*;
use crate::config::Clusters;
use crate::run_dir::Existing;

/// A run of dec on images of 4 x 4 pixels.
fn config(restarts: usize, code: usize) -> RunConfig {
    let text = format!("method = 'dec'\nnetwork.hidden = [3]\nnetwork.code = {code}\nplan.restarts = {restarts}");
    let mut config = RunConfig::resolve(&[text.parse().unwrap()]).unwrap();
    config.data.input = ItemShape::Image(ImageShape { height: 4, width: 4, channels: 1 });
    config.run.clusters = Clusters::Fixed(2);
    config
}

/// A run that has pretrained so many restarts.
fn pretrained(root: &Path, restarts: usize) -> RunDir {
    let config = config(restarts, 2);
    let run = RunDir::create(root, Existing::Replace).unwrap();
    config.write(&run.config()).unwrap();
    pretrain(&run, &config, 0..restarts);
    run
}

fn pretrain(run: &RunDir, config: &RunConfig, restarts: std::ops::Range<usize>) {
    for restart in restarts {
        let learner = config.settings.learner(&config.task(2).unwrap(), restart as u64).unwrap();
        let identity = Identity { config_hash: "x".into(), data: String::new(), restart };
        write(run, &identity, &learner.pretrained()).unwrap();
    }
}

fn begin(run: &RunDir, restarts: std::ops::Range<usize>) {
    restarts.for_each(|restart| std::fs::write(run.last(restart), "x").unwrap());
}

/// A run that takes over what the one at `from` has.
fn taker(from: &Path, root: &Path, restarts: usize) -> (RunDir, RunConfig) {
    let mut config = config(restarts, 2);
    config.run.pretrained = from.to_string_lossy().into_owned();
    check(root, &config).unwrap();
    let run = RunDir::create(root, Existing::Refuse).unwrap();
    adopt(&run, &mut config).unwrap();
    (run, config)
}

#[test]
fn more_restarts_get_autoencoders_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let source = pretrained(&folder.path().join("dec"), 2);
    let (run, mut config) = taker(source.root(), &folder.path().join("idec"), 2);
    let hash = config.hash().unwrap();
    begin(&run, 0..2);
    assert!(!take_more(&run, &mut config).unwrap(), "there is nothing to take");

    pretrain(&source, &self::config(4, 2), 2..4);
    config.plan.restarts = 4;
    assert!(take_more(&run, &mut config).unwrap());
    assert_eq!(config.run.pretrained_restarts, [0, 1, 2, 3]);
    let file = |run: &RunDir, number: usize| std::fs::read(run.pretrained(number)).unwrap();
    (0..4).for_each(|number| assert!(file(&run, number) == file(&source, number), "{number}"));
    assert_eq!(config.hash().unwrap(), hash, "what was trained before stays valid");
    let (_, at_once) = taker(source.root(), &folder.path().join("once"), 4);
    assert_eq!(at_once.hash().unwrap(), hash, "growing leads to the same run");
    assert_eq!(at_once.run.pretrained_restarts, config.run.pretrained_restarts);
}

#[test]
fn restarts_that_have_begun_stay_with_what_they_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let source = pretrained(&folder.path().join("dec"), 2);
    let (run, mut config) = taker(source.root(), &folder.path().join("idec"), 5);
    assert_eq!(config.run.pretrained_restarts, [0, 1, 0, 1, 0], "in turn where there are too few");
    begin(&run, 0..4);
    // A run of a version that kept no list.
    config.run.pretrained_restarts.clear();
    assert_eq!(number_of(run.root(), &config, 3), Some(1));
    pretrain(&source, &self::config(6, 2), 2..6);
    assert!(take_more(&run, &mut config).unwrap());
    assert_eq!(config.run.pretrained_restarts, [0, 1, 0, 1, 4]);
    let task = |restart| {
        let task = with_pretraining(&config.task(2).unwrap(), run.root(), &config, restart).unwrap();
        task.pretrained.unwrap()
    };
    let first = |arrays: &[NamedArray]| match &arrays[0].values {
        Values::F32(values) => values[0],
        other => panic!("{other:?}"),
    };
    assert_eq!(first(&task(0)), first(&task(2)));
    assert_ne!(first(&task(0)), first(&task(4)));
}

#[test]
fn another_run_in_the_old_place_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("dec");
    let source = pretrained(&root, 1);
    let (run, mut config) = taker(&root, &folder.path().join("idec"), 1);
    begin(&run, 0..1);
    let other = Identity { config_hash: "other".into(), data: String::new(), restart: 0 };
    let learner = config.settings.learner(&config.task(2).unwrap(), 9).unwrap();
    pretrain(&source, &self::config(3, 2), 1..3);
    write(&source, &other, &learner.pretrained()).unwrap();
    config.plan.restarts = 3;
    assert!(take_more(&run, &mut config).unwrap());
    assert_eq!(config.run.pretrained_restarts, [0, 0, 0]);
    drop(source);
    std::fs::remove_dir_all(&root).unwrap();
    assert!(!take_more(&run, &mut config).unwrap(), "a run needs no other run");
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (root, out) = (folder.path().join("dec"), folder.path().join("new"));
    let source = pretrained(&root, 2);
    let said = |out: &Path, code: usize| {
        let mut config = config(1, code);
        config.run.pretrained = root.to_string_lossy().into_owned();
        check(out, &config).unwrap_err().to_string()
    };
    assert!(said(&out, 3).contains("the pretrained autoencoder does not fit"), "{}", said(&out, 3));
    assert!(said(&root, 2).contains("cannot take over its own pretraining"));
    let whole = std::fs::read(source.pretrained(1)).unwrap();
    std::fs::write(source.pretrained(1), &whole[..whole.len() / 2]).unwrap();
    assert!(said(&out, 2).contains("restart-001.pretrained.ckpt is damaged"), "{}", said(&out, 2));
    std::fs::remove_file(source.pretrained(0)).unwrap();
    assert!(said(&out, 2).contains("has no finished pretraining"));
    std::fs::remove_file(source.config()).unwrap();
    assert!(said(&out, 2).contains("holds no run"));
    assert!(!out.exists());
}
