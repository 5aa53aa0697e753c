//! What lies inside a network of others, kept with its features and looked at by companion objectives. Needs ONNX Runtime.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use common::{Place, failure, program};
use dtkc_dataset::{Dataset, Writer, WriterOptions};
use dtkc_infer::ModelFile;
use dtkc_item::{FeatureShape, ImageShape, ItemShape, Items, TapShape, Taps};
use dtkc_onnx::testing::{COPIES, Foreign, WIDTH};
use dtkc_onnx::{TAP_CHANNELS, TAP_SIDE, TAP_VALUES, tap_sign};
use serde_json::Value;

/// Ten rows do not become four parts of equal size, nor do seven columns.
const SHAPE: ImageShape = ImageShape { height: 10, width: 7, channels: 3 };
const MEAN: [f32; 3] = [0.4, 0.5, 0.6];
const DEVIATION: [f32; 3] = [0.2, 0.25, 0.3];

/// Images of three colours with noise and labels.
fn colours(place: &Place, count: usize) -> PathBuf {
    let path = place.path("colours.h5");
    let mut writer = Writer::create(&path, WriterOptions::new(SHAPE, "colours", "test")).unwrap();
    let mut noise = 5u32;
    for i in 0..count {
        let pixels: Vec<u8> = (0..SHAPE.len())
            .map(|p| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (if p % 3 == i % 3 { 150 } else { 30 }) + (noise >> 25) as u8 / 2
            })
            .collect();
        writer.push_image(&pixels, Some((i % 3) as i64), None).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn network(place: &Place, foreign: Foreign) -> PathBuf {
    let path = place.path("net.onnx");
    std::fs::write(&path, foreign.file()).unwrap();
    path
}

fn features(data: &Path, network: &Path, out: &Path, taps: &str) -> assert_cmd::Command {
    let mut command = program();
    command.args(["features", "--threads", "1", "--backbone-views", "2", "--backbone-taps", taps]);
    command.args(["--backbone-mean", "0.4,0.5,0.6", "--backbone-std", "0.2,0.25,0.3"]);
    command.arg("--data").arg(data).arg("--backbone").arg(network).arg("--out").arg(out);
    command
}

/// The mean over the places of every part: part `i` of `n` goes from `i * size / n`, rounded down, to `(i + 1) * size / n`,
/// rounded up.
fn pooled(map: &[f64]) -> Vec<f64> {
    let border = |part: usize, size: usize| part as f64 * size as f64 / TAP_SIDE as f64;
    let mut means = Vec::new();
    for y in 0..TAP_SIDE {
        for x in 0..TAP_SIDE {
            let inside = |place: usize| {
                let (row, column) = ((place / SHAPE.width) as f64, (place % SHAPE.width) as f64);
                row >= border(y, SHAPE.height).floor()
                    && row < border(y + 1, SHAPE.height).ceil()
                    && column >= border(x, SHAPE.width).floor()
                    && column < border(x + 1, SHAPE.width).ceil()
            };
            let values: Vec<f64> = (0..map.len()).filter(|&place| inside(place)).map(|place| map[place]).collect();
            means.push(values.iter().sum::<f64>() / values.len() as f64);
        }
    }
    means
}

/// What is kept of the values `kept`, `many`, `turned` and `long` of an image.
fn expected(foreign: &Foreign, pixels: &[u8]) -> Vec<f64> {
    let maps = foreign.maps(pixels, SHAPE, &MEAN, &DEVIATION);
    let kept: Vec<f64> = maps.iter().flat_map(|map| pooled(map)).collect();
    let places = TAP_SIDE * TAP_SIDE;
    let mut many = vec![0.0; TAP_CHANNELS * places];
    for channel in 0..WIDTH * COPIES {
        for place in 0..places {
            let value = kept[channel % WIDTH * places + place];
            many[channel % TAP_CHANNELS * places + place] += f64::from(tap_sign(channel)) * value;
        }
    }
    let mut long = vec![0.0; TAP_VALUES];
    let all = (0..COPIES).flat_map(|_| maps.iter().flatten());
    for (place, value) in all.enumerate() {
        long[place % TAP_VALUES] += f64::from(tap_sign(place)) * value;
    }
    [kept, many.clone(), many, long].concat()
}

#[test]
fn what_is_kept_is_pooled_and_folded_as_defined() {
    let place = Place::new();
    let data = colours(&place, 12);
    let images = Dataset::open(&data).unwrap();
    for channels_last in [false, true] {
        let foreign = Foreign { channels_last, ..Foreign::default() };
        let out = place.path(&format!("{channels_last}.h5"));
        let told = features(&data, &network(&place, foreign), &out, "kept,many,turned,long").output().unwrap();
        let text = String::from_utf8(told.stderr).unwrap();
        assert!(told.status.success(), "{text}");
        assert!(text.contains("\"many\" (40 x 10 x 7 as 32 x 4 x 4)"), "what it takes is said before: {text}");
        assert!(text.contains("\"turned\" (10 x 7 x 40 as 32 x 4 x 4)") && text.contains("for each image"), "{text}");
        let maps = |channels| TapShape::Maps { channels, height: 4, width: 4 };
        let taps = Taps::new(&[maps(WIDTH), maps(32), maps(32), TapShape::Vector(512)]).unwrap();
        let shape = FeatureShape { dim: WIDTH, views: 2, taps };
        let found = Dataset::open(&out).unwrap();
        assert_eq!(found.shape(), ItemShape::Features(shape));
        for item in [0, 5, 11] {
            let Items::Features { values, .. } = found.items(&[item]).unwrap() else { panic!("features") };
            let pixels = images.read(&[item]).unwrap();
            let vector = foreign.vector(&pixels, SHAPE, &MEAN, &DEVIATION);
            assert!(
                vector.iter().zip(&values).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-5),
                "its own vector is first"
            );
            let inside = &values[shape.vectors()..];
            let expected = expected(&foreign, &pixels);
            assert_eq!(inside.len(), expected.len());
            let worst = inside.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(worst < 2e-4, "item {item}: off by {worst}");
        }
    }
}

fn fit(data: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["fit", "--quiet", "--clusters", "3", "--threads", "1", "--runs", "1", "--no-report"]);
    command.arg("--data").arg(data).arg("--out").arg(out).args(more);
    command
}

#[test]
fn dtkc_learns_on_any_network_resumes_to_the_same_bits_and_exports_without_the_inside() {
    let place = Place::new();
    let data = colours(&place, 120);
    let net = network(&place, Foreign::default());
    let net = net.to_str().unwrap();
    let with = ["--method", "dtkc", "--backbone", net, "--backbone-views", "2", "--backbone-taps", "kept,many"];
    let (whole, parts) = (place.path("whole"), place.path("parts"));
    let with = [&with[..], &["--epochs", "12"]].concat();
    fit(&data, &whole, &with).assert().success();
    let log = std::fs::read_to_string(whole.join("log.jsonl")).unwrap();
    assert!(log.contains("companion_1") && log.contains("companion_2") && !log.contains("companion_3"), "{log}");
    let summary: Value = serde_json::from_slice(&std::fs::read(whole.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["acc"]["best"], 1.0, "{}", summary["acc"]);
    let model = ModelFile::open(whole.join("model.onnx")).unwrap();
    assert_eq!((model.shape(), model.metadata().parity.unwrap().images), (ItemShape::Image(SHAPE), 120));
    let bytes = std::fs::read(whole.join("model.onnx")).unwrap();
    let holds = |words: &[u8]| bytes.windows(words.len()).any(|part| part == words);
    assert!(holds(b"backbone/flat") && !holds(b"backbone/many"), "the model needs nothing of the inside");
    // Killed in between and gone on with: the same model.
    kill_at(fit(&data, &parts, &with), &parts, 4);
    assert!(!parts.join("model.onnx").exists(), "it was killed in time");
    program().args(["resume", "--quiet", "--no-report"]).arg(&parts).assert().success();
    assert!(bytes == std::fs::read(parts.join("model.onnx")).unwrap(), "the same bits");
}

/// Kills a process once the log of its run has so many lines.
fn kill_at(command: assert_cmd::Command, run: &Path, lines: usize) {
    let mut plain = std::process::Command::new(command.get_program());
    let mut child = plain.args(command.get_args()).spawn().unwrap();
    let written = || std::fs::read_to_string(run.join("log.jsonl")).unwrap_or_default().lines().count();
    while child.try_wait().unwrap().is_none() {
        if written() >= lines {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn what_cannot_be_looked_at_is_one_sentence() {
    let place = Place::new();
    let data = colours(&place, 30);
    let net = network(&place, Foreign::default());
    let out = place.path("out.h5");
    for (taps, words) in [
        ("kept,nothing", "has no value \"nothing\"; its values are \"mixed\", \"kept\""),
        ("kept,kept", "names \"kept\" twice"),
        ("kept,many,turned,long,mixed,pooled,flat,product,classes", "at most 8"),
    ] {
        let (code, text) = failure(features(&data, &net, &out, taps).arg("--quiet"));
        assert!(code == 2 && text.lines().count() == 1 && text.contains(words), "{code}: {text}");
    }
    let tokens = network(&place, Foreign { end: dtkc_onnx::testing::End::Tokens, ..Foreign::default() });
    let (code, text) = failure(features(&data, &tokens, &out, "tokens").arg("--quiet"));
    assert!(code == 2 && text.contains("[2, 2, 5]") && text.contains("maps (4 dimensions) or a vector (2)"), "{text}");
    let backbone = ["--method", "dtkc", "--backbone", tokens.to_str().unwrap()];
    let (_, text) = failure(&mut fit(&data, &place.path("run"), &backbone));
    assert!(text.contains("name values of it with --backbone-taps") && text.lines().count() == 1, "{text}");
    let detached = ["--backbone-taps", "kept", "--set", "loss.companions.detached=true"];
    let (_, text) = failure(&mut fit(&data, &place.path("run"), &[&backbone[..], &detached].concat()));
    assert!(text.contains("frozen") && text.lines().count() == 1, "{text}");
}
