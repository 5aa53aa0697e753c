//! The exported file against the network that it comes from. Needs ONNX Runtime (scripts/setup.sh gets it).
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, fit, program};
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};

#[test]
fn the_exported_model_gives_the_clusters_of_evaluate() {
    let place = Place::new();
    let data = place.dataset("a.h5", 200, true);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "2", "--epochs", "4"]).assert().success();
    program().arg("export").arg(&run).assert().success();
    let model = ModelFile::open(run.join("model.onnx")).unwrap();
    let metadata = model.metadata();
    let parity = metadata.parity.unwrap();
    assert!(parity.images == 200 && parity.max_difference < 1e-5, "{parity:?}");
    assert_eq!((metadata.provenance.method.as_str(), metadata.provenance.preset.as_str()), ("ddc", "plus"));
    assert!(metadata.clusters.is_sorted_by(|a, b| a.size >= b.size), "{:?}", metadata.clusters);
    assert!(metadata.metrics.contains_key("acc"));

    let dataset = dtkc_dataset::Dataset::open(&data).unwrap();
    let mut session = Session::new(&Runtime::find(None).unwrap(), &model, &SessionOptions::default()).unwrap();
    let found = session.run(&dataset.read_range(0..200).unwrap(), 200).unwrap();
    let sizes: Vec<u64> =
        (0..3).map(|cluster| found.clusters.iter().filter(|&&c| c == cluster).count() as u64).collect();
    assert_eq!(sizes, metadata.clusters.iter().map(|c| c.size).collect::<Vec<_>>());
    let acc = dtkc_metrics::accuracy(&dataset.labels().unwrap().unwrap(), &found.clusters).unwrap();
    assert!((acc - metadata.metrics["acc"]).abs() < 1e-12);
}

#[test]
fn exporting_twice_gives_the_same_bytes_and_fit_exports_too() {
    let place = Place::new();
    let data = place.dataset("a.h5", 100, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "2", "--epochs", "2"]).assert().success();
    let bytes = |name: &str, more: &[&str]| {
        program().arg("export").arg(&run).arg("--out").arg(place.path(name)).args(more).assert().success();
        std::fs::read(place.path(name)).unwrap()
    };
    assert_eq!(bytes("a.onnx", &[]), bytes("b.onnx", &[]));
    assert_ne!(bytes("c.onnx", &["--restart", "0"]), bytes("d.onnx", &["--restart", "1"]));
    program().arg("resume").arg(&run).arg("--quiet").assert().success();
    assert_eq!(std::fs::read(run.join("model.onnx")).unwrap(), bytes("e.onnx", &[]));
}

#[test]
fn a_missing_runtime_is_named_and_training_is_kept() {
    let place = Place::new();
    let data = place.dataset("a.h5", 100, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1"]).assert().success();
    let (code, text) =
        common::failure(program().arg("resume").arg(&run).args(["--quiet", "--onnxruntime", "/no/such/lib.so"]));
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("/no/such/lib.so") && text.contains("dtkc-train export"), "{text}");
    assert!(run.join("summary.json").exists() && !run.join("model.onnx").exists());
}

#[test]
fn the_model_resizes_as_the_import_did() {
    let place = Place::new();
    let data = place.dataset_resized("a.h5", 60, Some(dtkc_item::Resize::Crop));
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1"]).assert().success();
    let rule = |name: &str, more: &[&str]| {
        program().arg("export").arg(&run).arg("--out").arg(place.path(name)).args(more).assert().success();
        ModelFile::open(place.path(name)).unwrap().image().unwrap().resize
    };
    assert_eq!(rule("a.onnx", &[]), dtkc_item::Resize::Crop);
    assert_eq!(rule("b.onnx", &["--resize", "stretch"]), dtkc_item::Resize::Stretch);
}

#[test]
fn an_export_replaces_nothing_that_it_reads_and_the_rest_only_when_asked() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1"]).assert().success();
    let refused = |out: &std::path::Path, more: &[&str], words: &str| {
        let before = std::fs::read(out).unwrap();
        let (code, text) = common::failure(program().arg("export").arg(&run).arg("--out").arg(out).args(more));
        assert!(code == 2 && text.contains(words), "{code}: {text}");
        assert!(std::fs::read(out).unwrap() == before, "{text}");
    };
    std::fs::hard_link(&data, place.path("link.h5")).unwrap();
    let best = run.join("checkpoints/restart-000.best.ckpt");
    for out in [data, place.path("link.h5"), run.join("config.toml"), run.join("checkpoints/../config.toml"), best] {
        refused(&out, &["--force"], "is one of the inputs");
    }
    let model = place.path("model.onnx");
    std::fs::write(&model, "precious").unwrap();
    refused(&model, &[], "exists already; add --force");
    program().arg("export").arg(&run).arg("--out").arg(&model).arg("--force").assert().success();
}

/// What `fit` and `export` measured, and what the command measures on the file itself.
#[test]
fn outliers_are_told_by_new_files_and_by_old_ones_that_were_given_it() {
    let place = Place::new();
    let data = place.dataset("a.h5", 200, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "4"]).assert().success();
    let exported = place.path("exported.onnx");
    program().arg("export").arg(&run).arg("--out").arg(&exported).assert().success();
    let bytes = std::fs::read(&exported).unwrap();
    let (old, again) = (place.path("old.onnx"), place.path("again.onnx"));
    std::fs::write(&old, dtkc_onnx::without_outlier(&bytes).unwrap()).unwrap();
    let outliers = |out: &std::path::Path| {
        let mut command = program();
        command.arg("outliers").arg(&old).arg("--data").arg(&data).arg("--out").arg(out);
        command
    };
    outliers(&again).assert().success();
    let dataset = dtkc_dataset::Dataset::open(&data).unwrap();
    let pixels = dataset.read_range(0..200).unwrap();
    let values = |path: &std::path::Path| {
        let model = ModelFile::open(path).unwrap();
        let info = model.outlier().unwrap();
        assert_eq!((info.threshold, info.items), (0.99, 50));
        let mut session = Session::new(&Runtime::find(None).unwrap(), &model, &SessionOptions::default()).unwrap();
        session.run(&pixels, 200).unwrap().outliers
    };
    let (first, second) = (values(&exported), values(&again));
    assert!(first.iter().zip(&second).all(|(a, b)| (a - b).abs() < 0.02), "burn and ONNX Runtime see the same");
    assert!(first.iter().filter(|&&value| value > 0.99).count() <= 20, "{first:?}");
    assert!(first.iter().any(|&value| value < 0.5) && first.iter().all(|value| (0.0..=1.0).contains(value)));
    // The file that is read is never the one that is written, and nothing is replaced unasked.
    assert_eq!(common::failure(&mut outliers(&old)).0, 2);
    assert_eq!(common::failure(&mut outliers(&again)).0, 2);
    let other = place.path("other.h5");
    dtkc_testing::write_images(
        &other,
        "other",
        dtkc_item::ImageShape { height: 5, width: 5, channels: 1 },
        std::iter::once((vec![0; 25], None)),
    );
    let (code, text) = common::failure(
        program().arg("outliers").arg(&old).arg("--data").arg(&other).arg("--out").arg(place.path("x.onnx")),
    );
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("other.h5 holds images of 5x5x1, but the model takes"), "{text}");
}
