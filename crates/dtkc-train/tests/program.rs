//! The program as a user meets it: results, files, mistakes.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Place, SIDE, failure, fit, program};
use dtkc_dataset::{Writer, WriterOptions};
use dtkc_item::ImageShape;
use serde_json::Value;

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

#[test]
fn fit_writes_a_run_that_can_be_evaluated() {
    let place = Place::new();
    let data = place.dataset("a.h5", 300, true);
    let run = place.path("run");
    let output = fit(&data, &run, &["--runs", "3", "--epochs", "30", "--no-prune"]).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = json(&output.stdout);
    assert_eq!(summary["restarts"].as_array().unwrap().len(), 3);
    let best = summary["acc"]["best"].as_f64().unwrap();
    assert!(best > 0.8, "three plain shapes are found: {summary}");
    let lines = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
    let first = json(lines.lines().next().unwrap().as_bytes());
    for key in ["restart", "epoch", "loss", "terms", "used_clusters", "entropy", "smallest_share", "acc", "seconds"] {
        assert!(!first[key].is_null(), "{key} is missing: {first}");
    }
    // At first only fine clusters are learnt; in the end every term is.
    let last = json(lines.lines().last().unwrap().as_bytes());
    assert!(last["terms"]["separation"].is_number() && last["terms"]["companion_1"].is_null(), "{last}");
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    for part in ["hidden = 8", "method = \"ddc\"", "preset = \"plus\""] {
        assert!(config.contains(part), "{part}: {config}");
    }

    let output = program().args(["evaluate", "--json", "--data"]).arg(&data).arg(&run).output().unwrap();
    let evaluation = json(&output.stdout);
    assert!((evaluation["acc"].as_f64().unwrap() - best).abs() < 1e-12, "{evaluation}");
    let sizes: Vec<u64> =
        evaluation["clusters"].as_array().unwrap().iter().map(|c| c["images"].as_u64().unwrap()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "cluster 0 is the largest: {sizes:?}");
    assert_eq!(sizes.iter().sum::<u64>(), 300);
}

#[test]
fn labels_are_optional() {
    let place = Place::new();
    let data = place.dataset("a.h5", 90, false);
    let run = place.path("run");
    let output = fit(&data, &run, &["--runs", "1", "--epochs", "2"]).arg("--json").output().unwrap();
    let summary = json(&output.stdout);
    assert!(summary["acc"].is_null() && summary["restarts"][0]["loss"].is_number(), "{summary}");
    let output = program().arg("evaluate").arg(&run).arg("--data").arg(&data).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("share") && !text.contains("ACC"), "{text}");
}

#[test]
fn every_preset_and_method_trains() {
    let place = Place::new();
    let data = place.dataset("a.h5", 61, true);
    for (i, preset) in ["paper", "authors", "tk-uco", "plus"].into_iter().enumerate() {
        for method in ["dtkc", "ddc"] {
            let run = place.path(&format!("{method}{i}"));
            // 61 images leave a last batch of one or two.
            fit(
                &data,
                &run,
                &["--runs", "1", "--epochs", "1", "--batch", "20", "--preset", preset, "--method", method],
            )
            .assert()
            .success();
            let log = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
            assert_eq!(log.contains("companion_1"), method == "dtkc", "{preset} {method}: {log}");
            assert_eq!(log.contains("consistency"), preset == "plus", "{preset}: {log}");
            assert_eq!(log.contains("overclustering"), preset == "plus", "{preset}: {log}");
        }
    }
}

#[test]
fn the_number_of_clusters_can_be_found() {
    let place = Place::new();
    let data = place.dataset("a.h5", 240, false);
    let run = place.path("run");
    let auto = ["--clusters", "auto", "--k-range", "2..6", "--set", "run.trial_steps=300"];
    // Fine clusters are counted in pairs of views: with a few images a step there would be next to none.
    let steps = ["--runs", "1", "--epochs", "100", "--batch", "160", "--lr", "0.003"];
    let blocks = "network.blocks=[{filters=8,kernel=3,convs=1},{filters=8,kernel=3,convs=1}]";
    let network = ["--set", "network.hidden=32", "--set", blocks];
    let more = [auto.as_slice(), steps.as_slice(), network.as_slice()].concat();
    fit(&data, &run, &more).assert().success();
    let trials = std::fs::read_to_string(run.join("clusters.jsonl")).unwrap();
    let trials: Vec<_> = trials.lines().map(|line| json(line.as_bytes())).collect();
    let tried: Vec<u64> = trials.iter().map(|trial| trial["clusters"].as_u64().unwrap()).collect();
    assert_eq!(tried, [2, 3, 4, 5, 6]);
    assert!(trials.iter().all(|trial| trial["apart"].is_f64()), "from one network: {trials:?}");
    let summary = json(&std::fs::read(run.join("summary.json")).unwrap());
    assert_eq!(summary["clusters"], 3, "bars across, bars down, blobs: {trials:?}");
    let chosen = &summary["chosen"];
    assert_eq!(chosen["clusters"], 3);
    assert!(chosen["score"].as_f64() > chosen["second_score"].as_f64(), "{chosen}");
    assert!(std::fs::read_to_string(run.join("config.toml")).unwrap().contains("clusters = 3"));
}

#[test]
fn what_does_not_begin_with_fine_clusters_is_tried_number_by_number() {
    let place = Place::new();
    let data = place.dataset("a.h5", 240, false);
    let run = place.path("run");
    let auto =
        ["--clusters", "auto", "--k-range", "2..4", "--set", "run.trial_steps=20", "--runs", "1", "--epochs", "1"];
    fit(&data, &run, &auto).args(["--preset", "authors"]).assert().success();
    let trials = std::fs::read_to_string(run.join("clusters.jsonl")).unwrap();
    assert!(trials.lines().count() == 3 && trials.contains("silhouette"), "{trials}");
}

#[test]
fn a_budget_limits_the_work() {
    let place = Place::new();
    let data = place.dataset("a.h5", 300, false);
    let run = place.path("run");
    let begin = std::time::Instant::now();
    fit(&data, &run, &["--runs", "50", "--epochs", "100000", "--patience", "0", "--budget", "2s"]).assert().success();
    assert!(begin.elapsed().as_secs() < 30);
    assert!(run.join("summary.json").exists() && run.join("budget.json").exists());
}

#[test]
fn mistakes_get_one_sentence() {
    let place = Place::new();
    let data = place.dataset("a.h5", 30, true);
    let run = place.path("run");
    let cases: [(&[&str], i32, &[&str]); 9] = [
        (&["--set", "loss.lamda=1"], 2, &["loss.lamda", "lambda"]),
        (&["--set", "run.sead=1"], 2, &["run.sead"]),
        (&["--set", "nonsense"], 2, &["--set"]),
        (&["--lr", "-1"], 2, &["optim.lr"]),
        (&["--clusters", "31"], 1, &["30 images", "31 clusters"]),
        (&["--config", "no-such.toml"], 1, &["no-such.toml"]),
        (&["--device", "cuda:0"], 2, &["cuda", "not compiled in", "cpu"]),
        (&["--set", "network.blocks=[{kernel=9,filters=4}]"], 2, &["12x12", "--size"]),
        (&["--batch", "1"], 2, &["plan.batch"]),
    ];
    for (flags, code, words) in cases {
        let (found, text) = failure(&mut fit(&data, &run, flags));
        assert_eq!((found, text.lines().count()), (code, 1), "{flags:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{flags:?}: {text}");
        assert!(!run.exists(), "{flags:?} left a run directory behind");
    }
    for flags in [["--clusters", "1"], ["--device", "gpu"], ["--preset", "papr"], ["--budget", "soon"]] {
        assert_eq!(failure(&mut fit(&data, &run, &flags)).0, 2, "{flags:?}");
    }
}

#[test]
fn missing_and_wrong_files_are_named() {
    let place = Place::new();
    let data = place.dataset("a.h5", 30, true);
    let (code, text) = failure(&mut fit(&place.path("no.h5"), &place.path("run"), &[]));
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("no.h5"), "{text}");
    std::fs::write(place.path("text.h5"), "hello").unwrap();
    let (_, text) = failure(&mut fit(&place.path("text.h5"), &place.path("run"), &[]));
    assert!(text.contains("text.h5") && text.contains("HDF5"), "{text}");
    for command in ["resume", "export"] {
        let (_, text) = failure(program().arg(command).arg(place.path("nowhere")));
        assert!(text.contains("nowhere") && text.contains("config.toml"), "{text}");
    }
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "1"]).assert().success();
    let (code, text) = failure(&mut fit(&data, &run, &[]));
    assert_eq!(code, 1);
    assert!(text.contains("resume") && text.contains("--force"), "{text}");
    fit(&data, &run, &["--runs", "1", "--epochs", "1", "--force"]).assert().success();
    let (_, text) = failure(program().arg("evaluate").arg(&run).arg("--data").arg(other_size(&place)));
    assert!(text.contains("12x12x1"), "{text}");
    let (_, text) = failure(program().arg("evaluate").arg(&run).args(["--restart", "7", "--data"]).arg(&data));
    assert!(text.contains("restart 7"), "{text}");
}

fn other_size(place: &Place) -> std::path::PathBuf {
    let path = place.path("other.h5");
    let shape = ImageShape { height: SIDE + 2, width: SIDE, channels: 1 };
    let mut writer = Writer::create(&path, WriterOptions::new(shape, "other", "test")).unwrap();
    writer.push_image(&vec![3; shape.len()], None, None).unwrap();
    writer.finish().unwrap();
    path
}

#[test]
fn a_run_that_is_in_use_is_refused() {
    let place = Place::new();
    let data = place.dataset("a.h5", 300, true);
    let run = place.path("run");
    let long = fit(&data, &run, &["--runs", "1", "--epochs", "100000", "--patience", "0"]);
    let mut child = std::process::Command::new(long.get_program()).args(long.get_args()).spawn().unwrap();
    while !run.join("log.jsonl").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let (code, text) = failure(program().arg("resume").arg(&run));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("another process"), "{text}");
}

#[test]
fn devices_and_bench_answer() {
    let output = program().args(["devices", "--json"]).output().unwrap();
    let devices = json(&output.stdout);
    assert_eq!((&devices[0]["device"], &devices[0]["present"]), (&Value::from("cpu"), &Value::from(true)));
    let bench = ["bench", "--batch", "16", "--size", "20", "--steps", "2", "--threads", "1", "--json"];
    let output = program().args(bench).output().unwrap();
    let measured = json(&output.stdout);
    assert!(measured["ms"].as_f64().unwrap() > 0.0 && measured["parts_ms"]["kernels"].is_number(), "{measured}");
}

#[test]
fn a_run_that_never_was_finite_can_be_read_by_every_command() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, true);
    let run = place.path("run");
    // A rate at which the first step leaves nothing finite.
    let wild =
        ["--runs", "2", "--epochs", "2", "--lr", "10", "--set", "optim.clip_norm=0", "--set", "optim.epsilon=1e-12"];
    let more = ["--set", "optim.weight_decay=10", "--set", "loss.orthogonality=1000000"];
    let output = fit(&data, &run, &wild).args(more).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.lines().count() <= 20 && !text.contains("panicked"), "{text}");
    let log = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
    assert!(!log.contains("null"), "{log}");
    let (_, text) = {
        let output = program().arg("resume").arg(&run).args(["--quiet", "--no-export"]).output().unwrap();
        (output.status, String::from_utf8(output.stderr).unwrap())
    };
    assert!(!text.contains("damaged") && !text.contains("invalid type"), "{text}");
}

#[test]
fn no_epochs_is_a_mistake_and_few_images_narrow_the_range() {
    let place = Place::new();
    let data = place.dataset("few.h5", 8, false);
    let (code, text) = failure(&mut fit(&data, &place.path("none"), &["--epochs", "0"]));
    assert_eq!((code, text.lines().count()), (2, 1), "{text}");
    assert!(text.contains("--epochs"), "{text}");
    let run = place.path("run");
    let more = ["--clusters", "auto", "--set", "run.trial_steps=2", "--runs", "1", "--epochs", "1"];
    fit(&data, &run, &more).assert().success();
    let trials = std::fs::read_to_string(run.join("clusters.jsonl")).unwrap();
    assert_eq!(trials.lines().count(), 7, "2 to 8 clusters for 8 images: {trials}");
    let (code, text) = failure(&mut fit(&data, &place.path("no"), &["--clusters", "auto", "--k-range", "9..12"]));
    assert_eq!(code, 1);
    assert!(text.contains("8 images") && text.contains("--k-range"), "{text}");
}

#[test]
fn a_moved_dataset_is_named_on_resume_and_the_plan_names_the_budget() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let run = place.path("run");
    let command = fit(&data, &run, &["--runs", "1", "--epochs", "1", "--budget", "1h"]);
    let output = std::process::Command::new(command.get_program())
        .args(command.get_args().filter(|arg| *arg != "--quiet"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && text.contains("1 restart of 1 epoch, 24 rows a step, as much of it as fits 1 h"),
        "{text}"
    );
    let moved = place.path("elsewhere.h5");
    std::fs::rename(&data, &moved).unwrap();
    let resume = || {
        let mut command = program();
        command.arg("resume").arg(&run).args(["--quiet", "--no-export"]);
        command
    };
    let (code, text) = failure(&mut resume());
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("a.h5") && text.contains("--data"), "{text}");
    let other = place.dataset("other.h5", 61, false);
    let (_, text) = failure(resume().arg("--data").arg(&other));
    assert!(text.contains("not the dataset"), "{text}");
    resume().arg("--data").arg(&moved).assert().success();
    // From now on the run knows the new place.
    resume().assert().success();
}

#[test]
fn clusters_that_look_wrong_are_told_below_the_table_and_in_the_summary() {
    let place = Place::new();
    let data = place.dataset("a.h5", 60, false);
    let run = place.path("run");
    // Three kinds of images in twelve clusters, hardly trained.
    let more = ["--clusters", "12", "--runs", "1", "--epochs", "1", "--lr", "1e-6"];
    fit(&data, &run, &more).assert().success();
    let summary = json(&std::fs::read(run.join("summary.json")).unwrap());
    let warnings: Vec<&str> = summary["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(warnings.iter().any(|warning| warning.contains("mean confidence")), "{warnings:?}");
    let output = program().arg("resume").arg(&run).arg("--no-export").output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(warnings.iter().all(|warning| table.contains(&format!("warning: {warning}"))), "{table}");
}

#[test]
fn many_clusters_enlarge_a_step_unless_somebody_chose_it() {
    let place = Place::new();
    let data = place.dataset("a.h5", 200, false);
    let run = |name: &str, more: &[&str]| {
        let mut command = program();
        command.args(["fit", "--no-export", "--clusters", "40", "--runs", "1", "--epochs", "1", "--set"]);
        command
            .args(["start.from=fine", "--set", "network.blocks=[{filters=4,kernel=3,convs=1}]", "--data"])
            .arg(&data)
            .arg("--out");
        let output = command.arg(place.path(name)).args(more).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{text}");
        (text, std::fs::read_to_string(place.path(name).join("config.toml")).unwrap())
    };
    // Forty clusters want 240 images, and there are 200.
    let (text, config) = run("open", &[]);
    assert!(text.contains("200 items a step (400 rows) instead of 120") && config.contains("batch = 400\n"), "{text}");
    let (text, config) = run("chosen", &["--batch", "240"]);
    assert!(!text.contains("instead of") && config.contains("batch = 240\n"), "{text}");
}
