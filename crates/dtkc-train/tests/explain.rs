//! `explain` through the program: every method's network, datasets and folders, and what is refused. Needs ONNX Runtime.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::small::{fit, run};
use common::{Place, SIDE, failure, program};
use dtkc_methods::Method;
use serde_json::Value;

fn explain(model: &Path, input: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["explain", "--quiet", "--threads", "1"]).args(more);
    command.arg("--model").arg(model).arg("--input").arg(input).arg("--out").arg(out);
    command
}

fn json(command: &mut assert_cmd::Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The numbers of a NumPy file, after its head of 128 bytes.
fn maps(out: &Path) -> Vec<f32> {
    let bytes = std::fs::read(out.join("maps.npy")).unwrap();
    bytes[128..].chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn every_method_can_be_explained() {
    for method in Method::ALL {
        let place = Place::new();
        let data = place.dataset("a.h5", 120, true);
        let (trained, out) = (place.path("run"), place.path("why"));
        run(&mut fit(method, &data, &trained, &["--runs", "1", "--epochs", "2"]));
        let flags = ["--count", "4", "--samples", "480", "--of", "score"];
        let made = json(&mut explain(&trained, &data, &out, &flags));
        assert_eq!((made["images"].as_u64(), made["samples"].as_u64()), (Some(4), Some(480)), "{method}");
        let number = |key: &str| made["completeness"][key].as_f64().unwrap();
        assert!(number("mean_error") < 0.2 * number("mean_difference"), "{method}: {made}");
        let maps = maps(&out);
        assert_eq!(maps.len(), 4 * SIDE * SIDE);
        assert!(maps.iter().all(|value| value.is_finite()) && maps.iter().any(|value| *value != 0.0), "{method}");
        let table = std::fs::read_to_string(out.join("explanations.csv")).unwrap();
        for (row, map) in table.lines().skip(1).zip(maps.chunks_exact(SIDE * SIDE)) {
            let cells: Vec<&str> = row.split(',').collect();
            let sum: f64 = map.iter().map(|value| f64::from(*value)).sum();
            assert!((cells[6].parse::<f64>().unwrap() - sum).abs() < 1e-9, "{row}");
            assert!(cells[1].contains("a.h5#") && cells[8].ends_with(".png") && out.join(cells[8]).exists(), "{row}");
        }
    }
}

#[test]
fn the_run_and_its_model_file_say_the_same() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let trained = place.path("run");
    run(&mut fit(Method::Dtkc, &data, &trained, &["--runs", "1", "--epochs", "2"]));
    program().arg("export").arg(&trained).assert().success();
    let flags = ["--count", "3", "--samples", "20", "--of", "score"];
    explain(&trained, &data, &place.path("by-run"), &flags).assert().success();
    let model = trained.join("model.onnx");
    explain(&model, &data, &place.path("by-file"), &flags).assert().success();
    let read = |folder: &str, name: &str| std::fs::read(place.path(folder).join(name)).unwrap();
    for name in ["maps.npy", "images.npy", "explanations.csv", "00002.png", "sheet.png"] {
        assert!(read("by-run", name) == read("by-file", name), "{name}");
    }
    let other = place.dataset("b.h5", 9, false);
    explain(&model, &data, &place.path("other"), &flags).arg("--background").arg(&other).assert().success();
    assert_ne!(maps(&place.path("other")), maps(&place.path("by-file")));
}

#[test]
fn files_of_images_are_brought_to_size_and_bad_ones_left_out() {
    let place = Place::new();
    let model = place.path("model.onnx");
    std::fs::write(&model, dtkc_testing::model::model(1)).unwrap();
    let folder = place.path("photos");
    std::fs::create_dir(&folder).unwrap();
    for name in ["1.png", "2.png", "10.png"] {
        let image = image::GrayImage::from_fn(30, 20, |x, y| image::Luma([(x * 8 + y * name.len() as u32) as u8]));
        image.save(folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("3.png"), b"no image").unwrap();
    let out = place.path("why");
    let said = explain(&model, &folder, &out, &["--samples", "5"]).output().unwrap();
    assert!(said.status.success());
    let warned = String::from_utf8(said.stderr).unwrap();
    assert!(warned.contains("3.png is left out: "), "{warned}");
    let table = std::fs::read_to_string(out.join("explanations.csv")).unwrap();
    let names: Vec<&str> = table.lines().skip(1).map(|row| row.split(',').nth(1).unwrap()).collect();
    let ends = |name: &&str, end: &str| name.ends_with(end);
    assert!(names.iter().zip(["1.png", "2.png", "10.png"]).all(|(name, end)| ends(name, end)), "{names:?}");
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("3 images explained with 5 draws each") && said.contains("completeness: "), "{said}");
}

#[test]
fn what_cannot_be_explained_is_said_in_one_sentence() {
    let place = Place::new();
    let data = place.dataset("a.h5", 6, false);
    let (model, sequences, out) = (place.path("model.onnx"), place.path("sequences.onnx"), place.path("why"));
    std::fs::write(&model, dtkc_testing::model::model(1)).unwrap();
    std::fs::write(&sequences, dtkc_testing::model::sequence_model(1, 2)).unwrap();
    let steps = dtkc_testing::write_sequences(&place.path("s.h5"), 4);
    let folder = place.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let full = place.path("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("letter.txt"), "mine").unwrap();
    for (model, input, out, more, code, words) in [
        (&sequences, &data, &out, vec![], 1, "it takes sequences"),
        (&model, &steps, &out, vec![], 1, "s.h5 holds sequences"),
        (&model, &data, &out, vec!["--cluster", "5"], 2, "no cluster 5; its clusters are 0 to 4"),
        (&model, &data, &out, vec!["--samples", "0"], 2, "--samples"),
        (&model, &folder, &out, vec![], 1, "no image that can be read"),
        (&model, &place.path("gone.h5"), &out, vec![], 1, "gone.h5 does not exist"),
        (&place.path("gone.onnx"), &data, &out, vec![], 1, "there is no model"),
        (&folder, &data, &out, vec![], 1, "holds no run"),
        (&model, &folder, &folder.join("why"), vec![], 2, "which is read"),
        (&model, &data, &full, vec![], 2, "is not empty"),
        (&model, &data, &data, vec!["--force"], 2, "is one of the inputs"),
    ] {
        let (status, text) = failure(&mut explain(model, input, out, &more));
        assert!(text.contains(words) && text.lines().count() == 1, "{words}: {text}");
        assert_eq!(status, code, "{text}");
    }
    assert_eq!(std::fs::read_to_string(full.join("letter.txt")).unwrap(), "mine");
    assert!(!out.exists());
    explain(&model, &data, &full, &["--force", "--samples", "2"]).assert().success();
    assert!(full.join("letter.txt").exists() && full.join("maps.npy").exists());
}
