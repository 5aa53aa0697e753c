//! Networks of others: from images to features, to clusters, to one model file for images. Needs ONNX Runtime.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Place, failure, program};
use dtkc_dataset::{Dataset, Writer, WriterOptions};
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_item::{FeatureShape, ImageShape, ItemShape, Items, Taps};
use dtkc_observe::{Observer, Silent};
use dtkc_onnx::testing::{End, Foreign, WIDTH};
use dtkc_train::backbone::{BackboneOptions, Engine, inspect, make};
use serde_json::Value;

const SHAPE: ImageShape = ImageShape { height: 8, width: 6, channels: 3 };
const MEAN: [f32; 3] = [0.4, 0.5, 0.6];
const DEVIATION: [f32; 3] = [0.2, 0.25, 0.3];

/// Images of three colours with noise and labels.
fn colours(place: &Place, name: &str, count: usize, channels: usize) -> PathBuf {
    let path = place.path(name);
    let shape = ImageShape { channels, ..SHAPE };
    let mut writer = Writer::create(&path, WriterOptions::new(shape, "colours", "test")).unwrap();
    let mut noise = 5u32;
    for i in 0..count {
        let pixels: Vec<u8> = (0..shape.len())
            .map(|p| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (if p % channels == i % 3 { 170 } else { 40 }) + (noise >> 26) as u8
            })
            .collect();
        writer.push_image(&pixels, Some((i % 3) as i64), None).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn network(place: &Place, name: &str, foreign: Foreign) -> PathBuf {
    let path = place.path(name);
    std::fs::write(&path, foreign.file()).unwrap();
    path
}

fn features(data: &Path, network: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["features", "--threads", "1", "--quiet", "--backbone-views", "2"]);
    command.args(["--backbone-mean", "0.4,0.5,0.6", "--backbone-std", "0.2,0.25,0.3"]);
    command.arg("--data").arg(data).arg("--backbone").arg(network).arg("--out").arg(out).args(more);
    command
}

fn own(dataset: &Dataset, item: usize) -> Vec<f32> {
    let Items::Features { shape, values } = dataset.items_of(item..item + 1).unwrap() else { panic!("features") };
    values[..shape.dim].to_vec()
}

#[test]
fn features_are_those_of_the_definition_for_every_kind_of_network() {
    let place = Place::new();
    let (colour, gray) = (colours(&place, "colour.h5", 12, 3), colours(&place, "gray.h5", 12, 1));
    let plain = Foreign::default();
    let kinds = [
        ("plain", &colour, plain),
        ("last", &colour, Foreign { channels_last: true, ..plain }),
        ("bytes", &colour, Foreign { bytes: true, channels_last: true, ..plain }),
        ("older", &colour, Foreign { opset: 13, end: End::Maps, ..plain }),
        ("maps", &colour, Foreign { end: End::Maps, ..plain }),
        ("tokens", &colour, Foreign { end: End::Tokens, ..plain }),
        ("vector", &colour, Foreign { end: End::Vector, batch: Some(1), ..plain }),
        ("grays", &gray, plain),
    ];
    for (name, data, foreign) in kinds {
        let out = place.path(&format!("{name}.h5"));
        features(data, &network(&place, &format!("{name}.onnx"), foreign), &out, &[]).assert().success();
        let (images, found) = (Dataset::open(data).unwrap(), Dataset::open(&out).unwrap());
        assert_eq!(
            found.shape(),
            ItemShape::Features(FeatureShape { dim: WIDTH, views: 2, taps: Taps::NONE }),
            "{name}"
        );
        assert_eq!(found.labels().unwrap(), images.labels().unwrap());
        for item in 0..12 {
            let pixels = images.read(&[item]).unwrap();
            let expected = foreign.vector(&pixels, images.image_shape().unwrap(), &MEAN, &DEVIATION);
            let found = own(&found, item);
            let worst = expected.iter().zip(&found).map(|(a, b)| (a - f64::from(*b)).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-5, "{name}, item {item}: {found:?} instead of {expected:?}");
        }
        let Items::Features { values, .. } = found.items_of(0..12).unwrap() else { panic!("features") };
        let rows: Vec<&[f32]> = values.chunks_exact(WIDTH).collect();
        let lengths = rows.iter().map(|row| row.iter().map(|v| v * v).sum::<f32>());
        assert!(lengths.clone().all(|length| (length - 1.0).abs() < 1e-4), "vectors of the length 1");
        assert!(rows[0] != rows[1] && rows[1] != rows[2], "{name}: views are others");
    }
}

#[test]
fn images_of_another_size_are_resized_in_the_graph() {
    let place = Place::new();
    // Every pixel of an image is the same, so that no way of resizing can change it.
    let data = place.path("flat.h5");
    let mut writer = Writer::create(&data, WriterOptions::new(SHAPE, "flat", "test")).unwrap();
    (0..3u8).for_each(|i| writer.push_image(&[60 * i + 50, 200, 90].repeat(48), None, None).unwrap());
    writer.finish().unwrap();
    for (name, foreign, more) in [
        ("fixed", Foreign { side: Some(5), ..Foreign::default() }, &[][..]),
        ("asked", Foreign { opset: 13, ..Foreign::default() }, &["--backbone-size", "16x3"]),
    ] {
        let out = place.path(&format!("{name}.h5"));
        features(&data, &network(&place, &format!("{name}.onnx"), foreign), &out, more).assert().success();
        let (images, found) = (Dataset::open(&data).unwrap(), Dataset::open(&out).unwrap());
        for item in 0..3 {
            let expected = foreign.vector(&images.read(&[item]).unwrap(), SHAPE, &MEAN, &DEVIATION);
            assert!(expected.iter().zip(own(&found, item)).all(|(a, b)| (a - f64::from(b)).abs() < 1e-5), "{name}");
        }
    }
    let fixed = place.path("fixed.onnx");
    let (code, text) = failure(&mut features(&data, &fixed, &place.path("no.h5"), &["--backbone-size", "9"]));
    assert!(code == 2 && text.contains("takes images of 5 pixels a side only"), "{text}");
}

/// Stops after so many questions.
struct Impatient(AtomicUsize);

impl Observer for Impatient {
    fn stop(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

#[test]
fn work_that_was_stopped_goes_on_to_the_same_features() {
    let place = Place::new();
    let data = colours(&place, "a.h5", 200, 3);
    let options = BackboneOptions {
        network: network(&place, "net.onnx", Foreign::default()),
        layer: None,
        taps: Vec::new(),
        size: None,
        mean: None,
        deviation: None,
        views: 2,
        engine: Engine { threads: 1, ..Engine::default() },
    };
    let plan = inspect(&data, &options, &Silent).unwrap();
    let (whole, parts) = (place.path("whole.h5"), place.path("parts.h5"));
    make(&plan, &whole, &Silent).unwrap();
    let text = make(&plan, &parts, &Impatient(AtomicUsize::new(3))).unwrap_err().to_string();
    assert!(text.contains("stopped after 128 of 200 images"), "{text}");
    assert!(!parts.exists() && place.path("parts.h5.rows").exists());
    make(&plan, &parts, &Silent).unwrap();
    assert!(!place.path("parts.h5.rows").exists());
    let fingerprint = |path: &Path| Dataset::open(path).unwrap().fingerprint().unwrap();
    assert_eq!(fingerprint(&whole), fingerprint(&parts));
}

fn summary(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap()
}

fn fit(data: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["fit", "--quiet", "--clusters", "3", "--threads", "1"]);
    command.arg("--data").arg(data).arg("--out").arg(out).args(more);
    command
}

#[test]
fn one_command_goes_from_images_and_a_network_to_a_model_for_images() {
    let place = Place::new();
    let data = colours(&place, "a.h5", 150, 3);
    let net = network(&place, "net.onnx", Foreign::default());
    let run = place.path("runs/one");
    let with = |more: &[&'static str]| {
        [&["--backbone", net.to_str().unwrap(), "--backbone-views", "2", "--epochs", "8", "--runs", "1"], more].concat()
    };
    std::fs::create_dir(place.path("runs")).unwrap();
    fit(&data, &run, &with(&[])).assert().success();
    assert_eq!(summary(&run)["acc"]["best"], 1.0, "{}", summary(&run)["acc"]);
    let model = ModelFile::open(run.join("model.onnx")).unwrap();
    assert_eq!((model.shape(), model.metadata().parity.unwrap().images), (ItemShape::Image(SHAPE), 150));
    let images = Dataset::open(&data).unwrap();
    let mut session = Session::new(&Runtime::find(None).unwrap(), &model, &SessionOptions::default()).unwrap();
    let found = session.run(&images.read_range(0..150).unwrap(), 150).unwrap();
    let acc = dtkc_metrics::accuracy(&images.labels().unwrap().unwrap(), &found.clusters).unwrap();
    assert!((acc - 1.0).abs() < 1e-12, "{acc}");
    // Clusters of a joined file are edited as those of any other: 0 is cut, 1 and 2 are one.
    let edited = place.path("edited.onnx");
    let mut edit = program();
    edit.arg("clusters").arg(run.join("model.onnx")).args(["--merge", "1,2", "--split", "0", "--data"]).arg(&data);
    edit.arg("--out").arg(&edited).assert().success();
    let other = ModelFile::open(&edited).unwrap();
    let mut session = Session::new(&Runtime::find(None).unwrap(), &other, &SessionOptions::default()).unwrap();
    let after = session.run(&images.read_range(0..150).unwrap(), 150).unwrap();
    for (before, after) in found.probabilities.rows().into_iter().zip(after.probabilities.rows()) {
        let parts = [(after[0] + after[after.len() - 1], before[0]), (after[1], before[1] + before[2])];
        assert!(parts.iter().all(|(found, expected)| (found - expected).abs() < 1e-5), "{parts:?}");
    }
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("id=\"sheet-0\"") && page.contains("id=\"clusters\""), "pictures of the images");
    // The next run takes the same features; another network needs others.
    let made = |place: &Place| {
        let names = std::fs::read_dir(place.path("runs")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".features.h5")).count()
    };
    fit(&data, &place.path("runs/two"), &with(&["--method", "kmeans", "--no-export", "--no-report"]))
        .assert()
        .success();
    assert_eq!(made(&place), 1);
    fit(&data, &place.path("runs/three"), &with(&["--backbone-layer", "kept", "--no-export", "--no-report"]))
        .assert()
        .success();
    assert_eq!(made(&place), 2);
    // The images may go; pictures go with them.
    std::fs::remove_file(&data).unwrap();
    program().arg("report").arg(&run).args(["--quiet", "--force"]).assert().success();
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("There are no pictures") && !page.contains("id=\"sheet-0\""));
}

#[test]
fn every_method_that_makes_sense_takes_features_and_exports() {
    let place = Place::new();
    let data = colours(&place, "a.h5", 90, 3);
    let features_file = place.path("f.h5");
    features(&data, &network(&place, "net.onnx", Foreign { opset: 13, ..Foreign::default() }), &features_file, &[])
        .assert()
        .success();
    for method in ["kmeans", "spectral", "dec", "idec", "dcn", "spectralnet"] {
        let run = place.path(method);
        let mut more = vec!["--method", method, "--runs", "1", "--epochs", "3", "--no-report"];
        if !["kmeans", "spectral"].contains(&method) {
            more.extend(["--set", "pretraining.epochs=3"]);
        }
        if method == "spectralnet" {
            more.extend(["--set", "siamese.epochs=2"]);
        }
        fit(&features_file, &run, &more).assert().success();
        let model = ModelFile::open(run.join("model.onnx")).unwrap();
        assert!(model.outlier().is_some());
        assert_eq!(model.metadata().parity.unwrap().images, 90, "{method}");
        if method == "kmeans" || method == "spectral" {
            assert_eq!(summary(&run)["acc"]["best"], 1.0, "{method}");
        }
    }
    for (method, words) in [("dtkc", "use --method ddc"), ("dbc", "dbc takes images, but the set holds features")] {
        let (_, text) = failure(&mut fit(&features_file, &place.path("no"), &["--method", method]));
        assert!(text.contains(words) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let place = Place::new();
    let data = colours(&place, "a.h5", 30, 3);
    let net = network(&place, "net.onnx", Foreign::default());
    let out = place.path("out.h5");
    let refused = |more: &[&str], words: &str| {
        let (code, text) = failure(&mut features(&data, &net, &out, more));
        assert!(code == 2 && text.lines().count() == 1 && text.contains(words), "{code}: {text}");
    };
    refused(&["--backbone-layer", "nothing"], "has no value \"nothing\"");
    refused(&["--backbone-layer", "w"], "has no value \"w\"");
    refused(&["--backbone-device", "abacus"], "abacus");
    // The ONNX Runtime of the tests has no GPU.
    let (code, text) = failure(&mut features(&data, &net, &out, &["--backbone-device", "cuda:3"]));
    assert!(code == 1 && text.lines().count() == 1 && text.contains("cuda:3"), "{code}: {text}");
    let (code, text) = failure(&mut features(&data, &place.path("gone.onnx"), &out, &[]));
    assert!(code == 1 && text.contains("gone.onnx"), "{text}");
    std::fs::write(place.path("text.onnx"), "hello").unwrap();
    let (code, text) = failure(&mut features(&data, &place.path("text.onnx"), &out, &[]));
    assert!(code == 2 && text.contains("no ONNX file"), "{text}");
    let (code, text) = failure(&mut features(&data, &net, &net, &["--force"]));
    assert!(code == 2 && text.contains("net.onnx"), "an input is never an output: {text}");
    let (code, text) = failure(&mut fit(&data, &place.path("run"), &["--backbone-size", "9"]));
    assert!(code == 2 && text.contains("need --backbone FILE"), "{text}");
    features(&data, &net, &out, &[]).assert().success();
    let other = ["--backbone", net.to_str().unwrap(), "--features", out.to_str().unwrap()];
    let (code, text) = failure(&mut fit(&data, &place.path("run"), &other));
    assert!(code == 2 && text.contains("holds other features"), "{text}");
    let own = ["--backbone", net.to_str().unwrap(), "--features", data.to_str().unwrap()];
    let (code, text) = failure(&mut fit(&data, &place.path("run"), &own));
    assert!(code == 2 && text.contains("a.h5 is one of the inputs"), "{text}");
    let (code, text) = failure(&mut features(&data, &net, &place.path("nowhere/f.h5"), &[]));
    assert!(code == 1 && text.contains("nowhere/f.h5"), "{text}");
    // Nothing is described for a run that cannot be.
    let names = |place: &Place| std::fs::read_dir(place.path("")).unwrap().count();
    let before = names(&place);
    for (more, words) in [
        (&["--method", "dtkc"][..], "use --method ddc"),
        (&["--method", "dbc"], "dbc takes images"),
        (&["--clusters", "50"], "holds 30 images, too few for 50 clusters"),
    ] {
        let more = [&["--backbone", net.to_str().unwrap()], more].concat();
        let mut command = program();
        command.args(["fit", "--quiet"]).arg("--data").arg(&data).arg("--out").arg(place.path("run")).args(more);
        if !words.contains("50") {
            command.args(["--clusters", "3"]);
        }
        let (_, text) = failure(&mut command);
        assert!(text.contains(words) && text.lines().count() == 1, "{text}");
        assert_eq!(names(&place), before, "{words}");
    }
    std::fs::create_dir(place.path("mine")).unwrap();
    std::fs::write(place.path("mine/thesis.tex"), "x").unwrap();
    let (_, text) = failure(&mut fit(&data, &place.path("mine"), &["--backbone", net.to_str().unwrap()]));
    assert!(text.contains("other files") && !text.contains("features"), "{text}");
    let (code, text) = failure(&mut features(&out, &net, &place.path("twice.h5"), &[]));
    assert!(code == 1 && text.contains("features"), "{text}");
}
