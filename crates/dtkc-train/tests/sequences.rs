//! Sequences through the whole program: trained, killed, resumed, evaluated, and what cannot be trained on.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::small::{self, run};
use common::{Place, assert_same, failure, program};
use dtkc_dataset::{Writer, WriterOptions};
use dtkc_infer::ModelFile;
use dtkc_item::ItemShape;
use dtkc_methods::Method;
use serde_json::Value;

/// Writes sequences of two values a step.
fn write(place: &Place, name: &str, sequences: impl Iterator<Item = Vec<f32>>) -> PathBuf {
    let path = place.path(name);
    let mut writer =
        Writer::create(&path, WriterOptions::new(ItemShape::Sequence { dim: 2 }, "waves", "test")).unwrap();
    sequences.enumerate().for_each(|(i, one)| writer.push_sequence(&one, Some((i % 3) as i64), None).unwrap());
    writer.finish().unwrap();
    path
}

/// Waves of three kinds with noise, 8 to 40 steps long, far from zero and of two sizes.
fn waves(count: usize) -> impl Iterator<Item = Vec<f32>> {
    let mut noise = 7u32;
    (0..count).map(move |i| {
        let length = 8 + i * 13 % 33;
        let step = |t: usize| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (way, small) = (t as f32 / length as f32, (noise >> 8) as f32 / (1 << 24) as f32 * 0.2);
            let (x, y) = match i % 3 {
                0 => ((6.0 * way).sin(), way),
                1 => (1.0 - 2.0 * way, (9.0 * way).cos()),
                _ => ((3.0 * way).cos(), -(3.0 * way).sin()),
            };
            [100.0 + x + small, 0.01 * (y - small)]
        };
        (0..length).flat_map(step).collect()
    })
}

fn fit(method: &str, data: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
    command.args(["fit", "--quiet", "--no-export", "--checkpoint-every", "0s", "--method", method]);
    for [flag, value] in
        [["--clusters", "3"], ["--threads", "1"], ["--batch", "24"], ["--runs", "2"], ["--epochs", "4"]]
    {
        if !more.contains(&flag) {
            command.args([flag, value]);
        }
    }
    command.args(["--set", "network.hidden=8", "--set", "run.comparison_batches=2"]);
    command.args(["--set", "network.recurrent={layers=2,units=6}"]);
    command.arg("--data").arg(data).arg("--out").arg(out).args(more);
    command
}

fn summary(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap()
}

/// Stops a run after so many epochs, resumes it, and compares everything with a run that was never stopped.
fn is_resumed_to_the_same_bits(method: &str, preset: &str) {
    let place = Place::new();
    let data = write(&place, "a.h5", waves(60));
    let (whole, broken) = (place.path("whole"), place.path("broken"));
    run(&mut fit(method, &data, &whole, &["--preset", preset]));
    for kill in 0..4 {
        let mut command = match kill {
            0 => fit(method, &data, &broken, &["--preset", preset]),
            _ => {
                let mut again = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
                again.arg("resume").arg(&broken).args(["--quiet", "--no-export"]);
                again
            }
        };
        let mut child = command.spawn().unwrap();
        let lines = || std::fs::read_to_string(broken.join("log.jsonl")).unwrap_or_default().lines().count();
        while child.try_wait().unwrap().is_none() {
            if lines() > 2 * kill {
                child.kill().ok();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
    }
    let mut last = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
    run(last.arg("resume").arg(&broken).args(["--quiet", "--no-export"]));
    assert_same(&whole, &broken);
}

#[test]
fn rdtkc_is_resumed_to_the_same_bits() {
    is_resumed_to_the_same_bits("dtkc", "authors");
}

#[test]
fn plus_is_resumed_to_the_same_bits() {
    is_resumed_to_the_same_bits("ddc", "plus");
}

#[test]
fn the_number_of_threads_changes_no_weight() {
    let place = Place::new();
    let data = write(&place, "a.h5", waves(60));
    let checkpoint = |name: &str, more: &[&str]| {
        let out = place.path(name);
        run(&mut fit("dtkc", &data, &out, &[&["--preset", "tk-uco"], more].concat()));
        let scores = summary(&out)["restarts"].clone();
        (std::fs::read(out.join("checkpoints/restart-000.best.ckpt")).ok(), scores)
    };
    let one = checkpoint("one", &[]);
    assert_eq!(one, checkpoint("two", &["--threads", "2"]));
}

#[test]
fn waves_are_told_apart_and_evaluate_agrees() {
    let place = Place::new();
    let data = write(&place, "a.h5", waves(240));
    let out = place.path("run");
    let larger = ["--set", "network.hidden=20", "--set", "network.recurrent.units=24"];
    run(&mut fit("ddc", &data, &out, &[&["--epochs", "40", "--batch", "80"][..], &larger].concat()));
    let acc = summary(&out)["acc"]["best"].as_f64().unwrap();
    assert!(acc > 0.95, "{acc}");
    let json = program().arg("evaluate").arg(&out).arg("--data").arg(&data).arg("--json").output().unwrap();
    let found: Value = serde_json::from_slice(&json.stdout).unwrap();
    let found = found["acc"].as_f64().or(found["scores"]["acc"].as_f64()).unwrap();
    assert!((found - acc).abs() < 1e-9, "{found} {acc}");
}

#[test]
fn what_is_no_number_is_refused_in_one_sentence() {
    let place = Place::new();
    let missing = |(i, mut one): (usize, Vec<f32>)| {
        if i == 17 {
            one[3] = f32::NAN;
        }
        one
    };
    let data = write(&place, "nan.h5", waves(60).enumerate().map(missing));
    let command = fit("ddc", &data, &place.path("run"), &[]);
    let (code, text) = failure(&mut assert_cmd::Command::from_std(command));
    assert!(code == 1 && text.contains("not finite") && text.contains("--missing fill"), "{code} {text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn one_step_and_a_very_long_sequence_are_trained_on_together() {
    let place = Place::new();
    let odd = |(i, one): (usize, Vec<f32>)| match i {
        3 => one[..2].to_vec(),
        4 => one.iter().copied().cycle().take(2 * 60_000).collect(),
        _ => one,
    };
    let data = write(&place, "odd.h5", waves(30).enumerate().map(odd));
    for preset in ["authors", "plus"] {
        let out = place.path(preset);
        run(&mut fit("ddc", &data, &out, &["--preset", preset, "--epochs", "2", "--runs", "1"]));
        assert!(summary(&out)["restarts"][0]["loss"].as_f64().unwrap().is_finite());
    }
}

/// The model file of every method that takes sequences says what the trained network says; the program compares them.
#[test]
fn every_method_but_dbc_is_exported() {
    let place = Place::new();
    let data = write(&place, "a.h5", waves(60));
    for method in Method::ALL {
        let out = place.path(method.name());
        let mut command = small::fit(method, &data, &out, &["--epochs", "2"]);
        if matches!(method, Method::Dtkc | Method::Ddc | Method::Spectral) {
            command.args(["--set", "network.recurrent={layers=2,units=5}"]);
        }
        if method == Method::Dbc {
            let (code, text) = failure(&mut assert_cmd::Command::from_std(command));
            assert_eq!(text, "error: dbc takes images, but the set holds sequences of 2 values a step\n", "{code}");
            continue;
        }
        run(&mut command);
        program().arg("export").arg(&out).assert().success();
        let model = ModelFile::open(out.join("model.onnx")).unwrap();
        assert!(model.outlier().is_some());
        let metadata = model.metadata();
        assert_eq!(metadata.input.shape(), ItemShape::Sequence { dim: 2 }, "{method}");
        assert_eq!((metadata.k(), metadata.parity.unwrap().images), (3, 60), "{method}");
    }
}
