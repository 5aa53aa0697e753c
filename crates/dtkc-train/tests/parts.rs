//! A run in parts: processes that know nothing of each other make what one process makes.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Place, assert_same, failure, fit, program};

const MORE: [&str; 9] = ["--runs", "3", "--epochs", "3", "--preset", "plus", "--no-prune", "--checkpoint-every", "0s"];

/// The parts that are left.
fn parts(run: &Path) -> Vec<String> {
    let output = program().arg("parts").arg(run).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn part(run: &Path, name: &str) -> assert_cmd::Command {
    let mut command = program();
    command.arg("part").arg(run).args([name, "--quiet"]);
    command
}

fn finish(run: &Path) {
    program().arg("resume").arg(run).args(["--quiet", "--no-export"]).assert().success();
}

#[test]
fn restarts_in_parts_are_the_run_of_one_process() {
    let place = Place::new();
    let data = place.dataset("a.h5", 200, true);
    fit(&data, &place.path("whole"), &MORE).assert().success();
    let run = place.path("parts");
    fit(&data, &run, &MORE).arg("--prepare").assert().success();
    assert_eq!(parts(&run), ["restart-0", "restart-1", "restart-2"]);
    // The last one first, and one that is taken over before the others are begun.
    part(&run, "restart-2").assert().success();
    part(&run, "restart-1").assert().success();
    assert_eq!(parts(&run), ["restart-0"]);
    part(&run, "restart-0").assert().success();
    assert_eq!(parts(&run), Vec::<String>::new());
    finish(&run);
    assert_same(&place.path("whole"), &run);
}

#[test]
fn a_part_that_is_killed_goes_on_and_so_does_its_run() {
    let place = Place::new();
    let data = place.dataset("a.h5", 400, true);
    let more = ["--runs", "2", "--epochs", "8", "--preset", "plus", "--no-prune", "--checkpoint-every", "0s"];
    fit(&data, &place.path("whole"), &more).assert().success();
    let run = place.path("parts");
    fit(&data, &run, &more).arg("--prepare").assert().success();
    let checkpoint = run.join("parts/restart-1/checkpoints/restart-001.last.ckpt");
    kill_once(&run, "restart-1", || checkpoint.exists());
    assert!(checkpoint.exists());
    // Another process takes it up and is killed at once.
    kill_once(&run, "restart-1", || true);
    assert_eq!(parts(&run), ["restart-0", "restart-1"]);
    assert!(!run.join("parts").exists() && run.join("checkpoints/restart-001.last.ckpt").exists());
    part(&run, "restart-1").assert().success();
    finish(&run);
    let summary = std::fs::read_to_string(run.join("summary.json")).unwrap();
    assert!(summary.contains(std::env::consts::ARCH), "{summary}");
    // Restart 0 was trained last, by the run itself: its lines stand behind, and nothing else differs.
    let (whole, found) = (common::content(&place.path("whole")), common::content(&run));
    let differ: Vec<_> = whole.iter().zip(&found).filter(|(a, b)| a != b).map(|(a, _)| a.0.as_str()).collect();
    assert_eq!(differ, ["checkpoints/restart-000.last.ckpt", "checkpoints/restart-001.last.ckpt", "log.jsonl"]);
}

/// Starts a part and kills it as soon as `ready`.
fn kill_once(run: &Path, name: &str, ready: impl Fn() -> bool) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
    command.arg("part").arg(run).args([name, "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while !ready() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn restarts_of_machines_of_several_kinds_are_told() {
    let place = Place::new();
    let data = place.dataset("a.h5", 100, true);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "2", "--epochs", "1", "--no-prune", "--prepare"]).assert().success();
    ["restart-0", "restart-1"].iter().for_each(|name| drop(part(&run, name).assert().success()));
    // As if the second had been trained elsewhere.
    let log = run.join("parts/restart-1/log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replace("\"machine\":\"", "\"machine\":\"old ")).unwrap();
    finish(&run);
    let summary = std::fs::read_to_string(run.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let warnings: Vec<_> = summary["warnings"].as_array().unwrap().iter().filter_map(|text| text.as_str()).collect();
    assert!(warnings.iter().any(|text| text.contains("2 kinds (old ") && text.contains("other bits")), "{warnings:?}");
    assert!(summary["restarts"][1]["machines"][0].as_str().unwrap().starts_with("old "));
}

#[test]
fn the_number_of_clusters_is_found_in_parts_too() {
    let place = Place::new();
    let data = place.dataset("a.h5", 200, true);
    for (preset, kind) in [("authors", "clusters-2"), ("plus", "search")] {
        let more = [
            "--clusters",
            "auto",
            "--k-range",
            "2..4",
            "--runs",
            "2",
            "--epochs",
            "2",
            "--preset",
            preset,
            "--no-prune",
            "--set",
            "run.trial_steps=20",
        ];
        let (whole, run) = (place.path(&format!("whole-{preset}")), place.path(&format!("parts-{preset}")));
        fit(&data, &whole, &more).assert().success();
        fit(&data, &run, &more).arg("--prepare").assert().success();
        let first = parts(&run);
        assert_eq!(first[0], kind);
        assert!(failure(&mut part(&run, "restart-0")).1.contains("has no restart-0 now"));
        first.iter().rev().for_each(|name| drop(part(&run, name).assert().success()));
        let second = parts(&run);
        assert_eq!(second, ["restart-0", "restart-1"]);
        second.iter().for_each(|name| drop(part(&run, name).assert().success()));
        finish(&run);
        assert_same(&whole, &run);
    }
}

#[test]
fn a_pretraining_that_was_taken_over_reaches_the_parts() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let run = |method, name: &str, more: &[&str]| {
        let mut command = common::small::fit(method, &data, &place.path(name), more);
        common::small::run(&mut command);
    };
    use dtkc_methods::Method;
    run(Method::Dec, "dec", &["--runs", "2"]);
    let from = place.path("dec").to_string_lossy().into_owned();
    run(Method::Idec, "whole", &["--runs", "2", "--no-prune", "--pretrained", &from]);
    run(Method::Idec, "parts", &["--runs", "2", "--no-prune", "--pretrained", &from, "--prepare"]);
    parts(&place.path("parts")).iter().for_each(|name| drop(part(&place.path("parts"), name).assert().success()));
    finish(&place.path("parts"));
    assert_same(&place.path("whole"), &place.path("parts"));
}

#[test]
fn what_cannot_be_done_in_parts_is_refused_in_a_sentence() {
    let place = Place::new();
    let data = place.dataset("a.h5", 100, true);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "3", "--epochs", "2", "--prune", "--prepare"]).assert().success();
    let (code, text) = failure(program().arg("parts").arg(&run));
    assert!(code == 2 && text.contains("--no-prune"), "{text}");
    assert!(failure(&mut part(&run, "restart-0")).1.contains("--no-prune"));
    let (code, text) = failure(&mut part(&run, "restart"));
    assert!(code == 2 && text.contains("dtkc-train parts"), "{text}");
    assert!(failure(&mut part(&place.path("gone"), "restart-0")).1.contains("holds no run"));
    let run = place.path("other");
    fit(&data, &run, &["--runs", "1", "--epochs", "2", "--no-prune", "--prepare"]).assert().success();
    assert!(failure(&mut part(&run, "restart-1")).1.contains("has no restart-1 now"));
    finish(&run);
    assert_eq!(parts(&run), Vec::<String>::new(), "a finished run has nothing left");
}

#[test]
fn a_sweep_says_which_runs_can_be_made_now() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let small = [
        "--runs",
        "1",
        "--epochs",
        "2",
        "--set",
        "network.hidden=8",
        "--set",
        "run.comparison_batches=2",
        "--set",
        "plan.batch=24",
        "--set",
        "network.blocks=[{filters=4,kernel=3,convs=1},{filters=4,kernel=3,convs=1}]",
    ];
    let sweep = |out: &Path, more: &[&str]| {
        let mut command = program();
        command.args([
            "sweep",
            "--vary",
            "optim.lr=0.001,0.002",
            "--threads",
            "1",
            "--quiet",
            "--method",
            "ddc",
            "--preset",
            "paper",
        ]);
        command.args(small).arg("--data").arg(&data).arg("--out").arg(out).args(more);
        command
    };
    sweep(&place.path("whole"), &[]).assert().success();
    let out = place.path("apart");
    let ready = || -> Vec<serde_json::Value> {
        let output = sweep(&out, &["--ready"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let words = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let cells = ready();
    assert_eq!(cells.len(), 2);
    for cell in &cells {
        program().args(words(&cell["prepare"])).arg("--prepare").assert().success();
        let run = Path::new(cell["run"].as_str().unwrap());
        parts(run).iter().for_each(|name| drop(part(run, name).assert().success()));
    }
    // What was made meanwhile is known, and not made again.
    assert!(ready().iter().all(|cell| words(&cell["prepare"]).is_empty()));
    cells.iter().for_each(|cell| drop(program().args(words(&cell["finish"])).assert().success()));
    assert_eq!(ready(), Vec::<serde_json::Value>::new());
    sweep(&out, &["--tables"]).assert().success();
    let table = |name: &str| std::fs::read_to_string(place.path(name).join("sweep.csv")).unwrap();
    let untimed = |text: String| {
        text.lines().map(|line| line.split(',').take(6).collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    };
    assert_eq!(untimed(table("whole")), untimed(table("apart")));
    for cell in &cells {
        let name = cell["name"].as_str().unwrap();
        let network =
            |root: &str| std::fs::read(place.path(root).join(name).join("checkpoints/restart-000.best.ckpt")).unwrap();
        assert_eq!(network("whole"), network("apart"), "{name}");
    }
    assert!(failure(&mut sweep(&out, &["--ready", "--budget", "1h"])).1.contains("--budget"));
}
