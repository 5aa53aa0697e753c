//! Every method through the whole program: trained, killed, resumed, exported, evaluated. Needs ONNX Runtime.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::small::{fit, run};
use common::{Place, assert_same, failure, program};
use dtkc_infer::ModelFile;
use dtkc_methods::Method;

/// Kills a process (SIGKILL) once the log of its run has so many lines; whether it was still running.
fn kill_at(command: &mut Command, run: &Path, lines: usize) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let written = || std::fs::read_to_string(run.join("log.jsonl")).unwrap_or_default().lines().count();
    while child.try_wait().unwrap().is_none() {
        if written() >= lines {
            child.kill().ok();
            return child.wait().unwrap().code().is_none();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// Kills a run at several places of its log, one after the other; the files at the end are those of an unbroken one.
fn is_resumed_to_the_same_bits(method: Method) {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let (whole, broken) = (place.path("whole"), place.path("broken"));
    run(&mut fit(method, &data, &whole, &[]));
    let lines = std::fs::read_to_string(whole.join("log.jsonl")).unwrap().lines().count();
    let mut kills = usize::from(kill_at(&mut fit(method, &data, &broken, &[]), &broken, 1));
    let resume = || {
        let mut again = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
        again.arg("resume").arg(&broken).args(["--quiet", "--no-export"]);
        again
    };
    for at in [lines / 3, lines / 2, 3 * lines / 4] {
        kills += usize::from(kill_at(&mut resume(), &broken, at.max(2)));
    }
    assert!(kills > 0, "{method} was never killed in {lines} epochs");
    run(&mut resume());
    assert_same(&whole, &broken);
}

/// The model file says what `evaluate` says, and is told which method it comes from.
fn is_exported(method: Method) {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let out = place.path("run");
    run(&mut fit(method, &data, &out, &[]));
    program().arg("export").arg(&out).assert().success();
    let model = ModelFile::open(out.join("model.onnx")).unwrap();
    assert!(model.outlier().is_some());
    let metadata = model.metadata();
    assert_eq!(metadata.provenance.method, method.name());
    assert_eq!((metadata.k(), metadata.parity.unwrap().images), (3, 120));
    let json = program().arg("evaluate").arg(&out).arg("--data").arg(&data).arg("--json").output().unwrap();
    let found: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let acc = found["acc"].as_f64().or(found["scores"]["acc"].as_f64()).unwrap();
    assert!((acc - metadata.metrics["acc"]).abs() < 1e-9, "{method}: {found}");
}

macro_rules! each_method {
    ($($name:ident: $method:expr,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn is_resumed_to_the_same_bits() {
                super::is_resumed_to_the_same_bits($method);
            }

            #[test]
            fn is_exported() {
                super::is_exported($method);
            }
        })*

        #[test]
        fn every_method_is_tried_here() {
            assert_eq!([$($method),*].len(), Method::ALL.len());
        }
    };
}

each_method! {
    dtkc: Method::Dtkc,
    ddc: Method::Ddc,
    kmeans: Method::Kmeans,
    spectral: Method::Spectral,
    dec: Method::Dec,
    idec: Method::Idec,
    dcn: Method::Dcn,
    spectralnet: Method::Spectralnet,
    dbc: Method::Dbc,
}

#[test]
fn a_pretraining_serves_other_methods() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let first = place.path("dec");
    run(&mut fit(Method::Dec, &data, &first, &[]));
    let from = first.to_str().unwrap();
    for method in [Method::Idec, Method::Dcn, Method::Spectralnet] {
        let out = place.path(method.name());
        run(&mut fit(method, &data, &out, &["--pretrained", from, "--runs", "3"]));
        let log = std::fs::read_to_string(out.join("log.jsonl")).unwrap();
        assert!(!log.contains("\"pretraining\""), "{method} pretrained again: {log}");
        let same = |run: &Path| std::fs::read(run.join("checkpoints/restart-001.pretrained.ckpt")).unwrap();
        assert_eq!(same(&out), same(&first));
    }
    // Both restarts of the second run can be taken from it again, without the first.
    let second = place.path("idec");
    std::fs::remove_dir_all(&first).unwrap();
    run(&mut fit(Method::Dec, &data, &place.path("third"), &["--pretrained", second.to_str().unwrap()]));
}

#[test]
fn a_pretraining_that_does_not_fit_is_refused_in_one_sentence() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let first = place.path("dec");
    run(&mut fit(Method::Dec, &data, &first, &["--runs", "1"]));
    let from = first.to_str().unwrap();
    let fails = |method: Method, from: &str, set: &str| {
        let command = fit(method, &data, &place.path("bad"), &["--pretrained", from, "--force", "--set", set]);
        let failed = failure(&mut assert_cmd::Command::from_std(command));
        assert!(!place.path("bad").exists(), "something was left behind: {failed:?}");
        failed
    };
    let (code, text) = fails(Method::Dec, from, "network.code=5");
    assert!(code == 1 && text.contains("does not fit") && text.lines().count() == 1, "{code} {text}");
    let (code, text) = fails(Method::Kmeans, from, "run.seed=0");
    assert!(code == 2 && text.contains("kmeans has no pretraining") && text.lines().count() == 1, "{code} {text}");
    let empty = place.path("nothing");
    let (_, text) = fails(Method::Dec, empty.to_str().unwrap(), "run.seed=0");
    assert!(text.contains("holds no run") && text.lines().count() == 1, "{text}");

    // A run that would be replaced is still there, also when it is the one that is named.
    let before = common::content(&first);
    let set = ["--pretrained", from, "--force", "--set", "network.code=5"];
    let (_, text) = failure(&mut assert_cmd::Command::from_std(fit(Method::Dec, &data, &first, &set)));
    assert!(text.contains("its own pretraining") && text.lines().count() == 1, "{text}");
    assert!(before == common::content(&first));

    let file = first.join("checkpoints/restart-000.pretrained.ckpt");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let (code, text) = fails(Method::Idec, from, "run.seed=0");
    assert!(code == 1 && text.contains("is damaged") && text.lines().count() == 1, "{code} {text}");
    std::fs::remove_file(&file).unwrap();
    let (code, text) = fails(Method::Idec, from, "run.seed=0");
    assert!(code == 1 && text.contains("no finished pretraining") && text.lines().count() == 1, "{code} {text}");
}

#[test]
fn another_methods_preset_is_refused_with_the_names_that_exist() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let command = fit(Method::Dec, &data, &place.path("bad"), &["--preset", "plus"]);
    let (code, text) = failure(&mut assert_cmd::Command::from_std(command));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("`plus` is no preset of dec; there are any, mnist, usps"), "{text}");
}

#[test]
fn the_number_of_clusters_can_be_looked_for_with_other_methods() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    for method in [Method::Kmeans, Method::Dec, Method::Dcn, Method::Spectralnet] {
        let out = place.path(method.name());
        let auto = ["--clusters", "auto", "--k-range", "2..3", "--set", "run.trial_steps=6", "--runs", "1"];
        run(&mut fit(method, &data, &out, &auto));
        let trials = std::fs::read_to_string(out.join("clusters.jsonl")).unwrap();
        assert_eq!(trials.lines().count(), 2, "{method}: {trials}");
        assert!(out.join("summary.json").exists());
    }
}

#[test]
fn more_clusters_than_images_are_refused_before_any_work() {
    let place = Place::new();
    let data = place.dataset("a.h5", 20, false);
    for method in Method::ALL {
        let out = place.path(method.name());
        let command = fit(method, &data, &out, &["--clusters", "21"]);
        let (_, text) = failure(&mut assert_cmd::Command::from_std(command));
        assert!(text.contains("20 images, too few for 21 clusters") && text.lines().count() == 1, "{method}: {text}");
        assert!(!out.join("config.toml").exists());
    }
}

/// Restarts of DEC set themselves their own targets: the one is kept that others agree with.
#[test]
fn where_losses_cannot_be_compared_agreement_decides() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let summary = |method: Method| -> serde_json::Value {
        let out = place.path(method.name());
        run(&mut fit(method, &data, &out, &["--runs", "4"]));
        serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap()
    };
    assert!(summary(Method::Ddc)["best_by"].is_null(), "the loss decides");
    let dec = summary(Method::Dec);
    assert_eq!(dec["best_by"], "agreement");
    let kept = &dec["restarts"][dec["best_restart"].as_u64().unwrap() as usize];
    assert_eq!(kept["acc"], dec["acc"]["best"]);
    let out =
        program().args(["evaluate", "--json", "--data"]).arg(&data).arg(place.path("dec")).output().unwrap().stdout;
    let found: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert!((found["acc"].as_f64().unwrap() - kept["acc"].as_f64().unwrap()).abs() < 1e-12, "{found}");
}
