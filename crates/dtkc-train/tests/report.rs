//! `dtkc-train report` as a user meets it: of finished and stopped runs, of every method, with and without labels.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Place, failure, fit, program, small};
use dtkc_dataset::{Writer, WriterOptions};
use dtkc_item::ItemShape;
use dtkc_methods::Method;
use serde_json::Value;

/// The facts of a run's report.
fn facts(run: &Path, more: &[&str]) -> Value {
    let out = run.with_extension("facts.json");
    let output = program()
        .arg("report")
        .arg(run)
        .arg("--out")
        .arg(&out)
        .args(["--force", "--quiet"])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap()
}

fn page(path: &Path) -> String {
    let html = std::fs::read_to_string(path).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "a whole page");
    // Packed numbers and pictures hold any letters, but no quote, no space and no colon.
    for wrong in ["\"NaN", " NaN", "http://", "https://"] {
        assert!(!html.contains(wrong), "{wrong} in the page");
    }
    html
}

#[test]
fn fit_writes_a_page_with_the_facts_of_its_run() {
    let place = Place::new();
    let data = place.dataset("a.h5", 300, true);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "3", "--epochs", "6", "--no-prune"]).assert().success();
    let html = page(&run.join("report.html"));
    for part in
        ["id=\"clusters\"", "id=\"map\"", "id=\"agreement\"", "id=\"training\"", "id=\"labels\"", "id=\"sheet-0\""]
    {
        assert!(html.contains(part), "{part} is missing");
    }
    let maps = html.matches("alt=\"importance\"").count();
    assert!(maps >= 3, "{maps} maps of what decides");
    let facts = facts(&run, &[]);
    let summary: Value = serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap();
    let sizes: Vec<&Value> = facts["clusters"].as_array().unwrap().iter().map(|cluster| &cluster["size"]).collect();
    assert_eq!(sizes, summary["cluster_sizes"].as_array().unwrap().iter().collect::<Vec<_>>());
    let best = summary["best_restart"].as_u64().unwrap() as usize;
    let acc = summary["restarts"][best]["acc"].as_f64().unwrap();
    assert!((facts["scores"]["acc"].as_f64().unwrap() - acc).abs() < 1e-12, "{}", facts["scores"]["acc"]);
    assert_eq!(facts["agreement"]["nmi"].as_array().unwrap().len(), 3);
    assert_eq!((&facts["agreement"]["items"], &facts["agreement"]["of"]), (&300.into(), &300.into()));
    let told = |report: &Value| {
        report["doubts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| format!("{}: {}", d["sign"].as_str().unwrap(), d["remedy"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    let warned: Vec<&str> =
        summary["warnings"].as_array().map_or(vec![], |all| all.iter().filter_map(|w| w.as_str()).collect());
    assert_eq!(told(&facts), warned, "the page warns as the table does");
    let names: Vec<&str> =
        facts["charts"].as_array().unwrap().iter().map(|chart| chart["name"].as_str().unwrap()).collect();
    for name in ["loss", "consistency", "used clusters", "learning rate", "ACC", "NMI"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert_eq!(names.iter().filter(|name| **name == "loss").count(), 1);
}

#[test]
fn the_same_run_gives_the_same_page_for_any_number_of_threads() {
    let place = Place::new();
    let data = place.dataset("a.h5", 150, true);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "2", "--epochs", "2"]).assert().success();
    let again = place.path("again.html");
    program().arg("report").arg(&run).arg("--out").arg(&again).args(["--threads", "2", "--quiet"]).assert().success();
    assert!(std::fs::read(run.join("report.html")).unwrap() == std::fs::read(&again).unwrap());
}

#[test]
fn no_labels_one_restart_and_two_clusters_are_enough() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1", "--clusters", "2", "--no-report"]).assert().success();
    assert!(!run.join("report.html").exists(), "nobody asked for it");
    let facts = facts(&run, &[]);
    assert!(facts["scores"].is_null() && facts["agreement"].is_null(), "{facts}");
    assert!(facts["about"]["why"].as_str().unwrap().contains("only one restart"));
    assert!(!facts["charts"].to_string().contains("ACC"));
    program().arg("report").arg(&run).arg("--quiet").assert().success();
    let html = page(&run.join("report.html"));
    assert!(!html.contains("id=\"labels\"") && !html.contains("id=\"agreement\""));
}

#[test]
fn a_run_that_was_stopped_shows_what_it_has() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, true);
    let run = place.path("run");
    let long = ["--runs", "2", "--epochs", "3", "--set", "neighbours.count=0", "--stop-with-input"];
    fit(&data, &run, &long).write_stdin("").assert().code(130);
    assert!(!run.join("report.html").exists());
    let before = common::content(&run);
    let facts = facts(&run, &[]);
    assert!(before == common::content(&run), "a report changes nothing in the run");
    assert!(facts["notes"][0].as_str().unwrap().contains("training is not finished"), "{}", facts["notes"]);
    assert_eq!(facts["restarts"][0]["ended"]["text"], "not finished");
    std::fs::remove_file(run.join("checkpoints/restart-000.last.ckpt")).unwrap();
    let (code, text) = failure(program().arg("report").arg(&run));
    assert!(code == 1 && text.contains("has no clusters yet") && text.contains("dtkc-train resume"), "{text}");
}

#[test]
fn a_run_that_was_stopped_before_it_had_clusters_shows_its_curves() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, true);
    let run = place.path("run");
    let long = ["--set", "pretraining.epochs=100000"];
    let mut child = small::fit(Method::Dec, &data, &run, &long).spawn().unwrap();
    let log = run.join("log.jsonl");
    let epochs = || std::fs::read_to_string(&log).ok().filter(|text| text.lines().count() >= 4);
    dtkc_testing::wait_for("some epochs of pretraining", epochs);
    child.kill().unwrap();
    child.wait().unwrap();
    program().arg("report").arg(&run).assert().success();
    let html = page(&run.join("report.html"));
    assert!(html.contains("<b>pretraining: loss</b>") && html.contains("has no clusters yet"));
    for part in ["clusters", "pairs", "map", "agreement", "labels"] {
        assert!(!html.contains(&format!("<section id=\"{part}\"")), "{part}");
    }
    assert!(!html.contains("found by"), "nothing was found");
    assert_eq!(facts(&run, &[])["clusters"], serde_json::json!([]));
    let notes = place.path("notes.md");
    program().arg("report").arg(&run).arg("--out").arg(&notes).assert().success();
    assert!(std::fs::read_to_string(&notes).unwrap().contains("to be sorted into 3 clusters by dec"));
    let (code, text) =
        failure(program().arg("report").arg(&run).arg("--out").arg(&data).arg("--format").arg("md").arg("--force"));
    assert_eq!((code, text.lines().count()), (2, 1), "{text}");
}

#[test]
fn many_clusters_some_of_them_empty() {
    let place = Place::new();
    let data = place.dataset("a.h5", 240, true);
    let run = place.path("run");
    small::run(&mut small::fit(Method::Kmeans, &data, &run, &["--clusters", "100", "--runs", "2"]));
    let html = page(&run.join("report.html"));
    assert!(html.contains("id=\"cluster-99\""));
    assert_eq!(facts(&run, &[])["clusters"].as_array().unwrap().len(), 100);
}

#[test]
fn every_method_has_a_report() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    for method in Method::ALL {
        let run = place.path(method.name());
        small::run(&mut small::fit(method, &data, &run, &["--epochs", "2"]));
        let html = page(&run.join("report.html"));
        assert!(html.contains(&format!("found by <b>{}</b>", method.name())), "{method}");
        let pretrained = matches!(method, Method::Dec | Method::Idec | Method::Dcn | Method::Dbc | Method::Spectralnet);
        assert_eq!(html.contains("<b>pretraining: loss</b>"), pretrained, "{method}");
    }
}

#[test]
fn sequences_are_drawn() {
    let place = Place::new();
    let data = place.path("s.h5");
    let options = WriterOptions { paths: true, ..WriterOptions::new(ItemShape::Sequence { dim: 2 }, "pens", "test") };
    let mut writer = Writer::create(&data, options).unwrap();
    for i in 0..60 {
        let steps: Vec<f32> =
            (0..10 + i % 7).flat_map(|t| [(t as f32 * (1.0 + (i % 3) as f32)).sin(), t as f32]).collect();
        writer.push_sequence(&steps, None, Some(&format!("pen {i}"))).unwrap();
    }
    writer.finish().unwrap();
    let run = place.path("run");
    small::run(&mut small::fit(Method::Kmeans, &data, &run, &[]));
    let html = page(&run.join("report.html"));
    for part in ["10 to 16 steps", "alt=\"pen 1", "src=\"data:image/png;base64,"] {
        assert!(html.contains(part), "{part} is missing");
    }
}

#[test]
fn other_data_is_named_and_what_is_only_known_of_the_training_set_is_left_out() {
    let place = Place::new();
    let (data, other) = (place.dataset("a.h5", 90, false), place.dataset("b.h5", 45, true));
    let run = place.path("run");
    fit(&data, &run, &["--runs", "2", "--epochs", "1", "--no-prune"]).assert().success();
    let facts = facts(&run, &["--data", other.to_str().unwrap()]);
    assert_eq!(facts["about"]["items"], 45);
    assert!(facts["notes"][0].as_str().unwrap().contains("was trained on"), "{}", facts["notes"]);
    assert!(facts["scores"]["acc"].is_number());
    assert_eq!(facts["agreement"]["of"], 90);
}

#[test]
fn outputs_are_refused_where_they_would_do_harm() {
    let place = Place::new();
    let data = place.dataset("a.h5", 45, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1"]).assert().success();
    for input in [data.clone(), run.join("summary.json")] {
        let (code, text) = failure(program().arg("report").arg(&run).arg("--out").arg(&input).arg("--force"));
        assert_eq!((code, text.lines().count()), (2, 1), "{text}");
    }
    // With --no-export there is none yet, and a file of that name still is the run's.
    std::fs::write(run.join("model.onnx"), "mine").unwrap();
    let model = || std::fs::read_to_string(run.join("model.onnx")).unwrap();
    for more in [&[][..], &["--format", "html"]] {
        let (code, text) = failure(
            program().arg("report").arg(&run).arg("--out").arg(run.join("model.onnx")).arg("--force").args(more),
        );
        assert_eq!((code, text.lines().count(), model().as_str()), (2, 1, "mine"), "{text}");
    }
    let notes = place.path("notes.md");
    program().arg("report").arg(&run).arg("--out").arg(&notes).assert().success();
    assert!(std::fs::read_to_string(&notes).unwrap().starts_with("# shapes: clusters"));
    let (code, text) = failure(program().arg("report").arg(&run).arg("--out").arg(&notes));
    assert!(code == 2 && text.contains("--force"), "{text}");
    let (code, text) = failure(program().arg("report").arg(&run).args(["--format", "pdf"]));
    assert!(code == 2 && text.contains("html, md or json"), "{text}");
    std::fs::remove_file(&data).unwrap();
    let (code, text) = failure(program().arg("report").arg(&run));
    assert!(code == 1 && text.contains("--data"), "{text}");
}

/// Training is worth more than its page.
#[test]
fn a_page_that_cannot_be_written_is_a_warning() {
    let place = Place::new();
    let data = place.dataset("a.h5", 45, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1", "--no-report"]).assert().success();
    std::fs::create_dir(run.join("report.html")).unwrap();
    let output = program().arg("resume").arg(&run).args(["--quiet", "--no-export"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && text.contains("the run is complete") && text.contains("dtkc-train report"),
        "{text}"
    );
}
