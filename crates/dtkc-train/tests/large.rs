//! Images that are larger than a network needs: looked at in less detail, in training and in the model file.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;

use common::{Place, assert_same, failure, fit, program};
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_item::ImageShape;

const SHAPE: ImageShape = ImageShape { height: 131, width: 128, channels: 3 };
const SHORT: [&str; 6] = ["--runs", "2", "--epochs", "2", "--checkpoint-every", "0s"];

/// Bright bars across, down, or a spot, in noise that averaging takes away.
fn large(place: &Place, count: usize) -> PathBuf {
    let mut noise = 7u32;
    let image = |i: usize| {
        let pixel = |at: usize| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (y, x) = (at / 3 / SHAPE.width, at / 3 % SHAPE.width);
            let bright = match i % 3 {
                0 => (y / 16 + i / 3).is_multiple_of(3),
                1 => (x / 16 + i / 3).is_multiple_of(3),
                _ => y.abs_diff(64) + x.abs_diff(64) < 40,
            };
            (if bright { 150 } else { 20 }) + (noise >> 25) as u8 / 2
        };
        ((0..SHAPE.len()).map(pixel).collect(), Some((i % 3) as i64))
    };
    dtkc_testing::write_images(&place.path("large.h5"), "large", SHAPE, (0..count).map(image).collect::<Vec<_>>())
}

#[test]
fn large_images_are_reduced_and_the_model_file_takes_them_whole() {
    let place = Place::new();
    let data = large(&place, 60);
    let run = place.path("run");
    let output = fit(&data, &run, &SHORT).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("reduce = 4\n"), "{config}");
    program().arg("export").arg(&run).assert().success();
    let model = ModelFile::open(run.join("model.onnx")).unwrap();
    assert_eq!(model.image().unwrap().shape(), SHAPE);
    let parity = model.metadata().parity.unwrap();
    assert!(parity.images == 60 && parity.max_difference < 1e-5, "{parity:?}");
    let dataset = dtkc_dataset::Dataset::open(&data).unwrap();
    let mut session = Session::new(&Runtime::find(None).unwrap(), &model, &SessionOptions::default()).unwrap();
    let found = session.run(&dataset.read_range(0..60).unwrap(), 60).unwrap();
    let acc = dtkc_metrics::accuracy(&dataset.labels().unwrap().unwrap(), &found.clusters).unwrap();
    assert!((acc - model.metadata().metrics["acc"]).abs() < 1e-12);
}

#[test]
fn a_run_on_large_images_goes_on_to_the_same_bits() {
    let place = Place::new();
    let data = large(&place, 60);
    fit(&data, &place.path("whole"), &SHORT).assert().success();
    let broken = place.path("broken");
    // Standard input ends at once, so the first session makes one step.
    fit(&data, &broken, &SHORT).arg("--stop-with-input").write_stdin("").assert().failure();
    program().arg("resume").arg(&broken).args(["--quiet", "--no-export"]).assert().success();
    assert_same(&place.path("whole"), &broken);
}

#[test]
fn the_program_says_what_it_looks_at_and_refuses_what_leaves_too_little() {
    let place = Place::new();
    let data = large(&place, 12);
    let mut loud = program();
    loud.args(["fit", "--no-export", "--clusters", "3", "--batch", "8", "--runs", "1", "--epochs", "1"]);
    let output = loud.arg("--data").arg(&data).arg("--out").arg(place.path("run")).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let line = "images of 131x128 are looked at in 32x32 (network.reduce = 4); --set network.reduce=2 shows the network \
                more detail";
    assert!(output.status.success() && text.contains(line), "{text}");
    assert!(text.contains("; about ") && text.contains(" of memory"), "{text}");
    let mut much = program();
    much.args(["fit", "--clusters", "3", "--set", "network.reduce=9", "--data"]).arg(&data);
    let (code, text) = failure(much.arg("--out").arg(place.path("much")));
    assert_eq!((code, text.lines().count()), (2, 1), "{text}");
    assert!(text.contains("network.reduce = 9 leaves 14x14") && text.contains("at most 6"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_no_machine_has_the_memory_for_is_refused_at_once() {
    let place = Place::new();
    let data = large(&place, 12);
    let mut huge = program();
    huge.args(["fit", "--clusters", "3", "--set", "network.padding=same", "--set", "network.reduce=1", "--set"]);
    huge.args(["network.blocks=[{filters=16384,kernel=3,convs=16}]", "--data"]).arg(&data);
    let (code, text) = failure(huge.arg("--out").arg(place.path("huge")));
    assert_eq!((code, text.lines().count()), (2, 1), "{text}");
    assert!(text.contains("of memory") && text.contains("are free") && text.contains("--batch"), "{text}");
    assert!(!place.path("huge").exists(), "nothing was begun");
}
