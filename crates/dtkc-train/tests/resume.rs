//! Stopping and going on: real processes, killed at arbitrary moments.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Place, assert_same, failure, fit, program};

/// Long enough for several kills, short enough for a test; with everything that a restart can have beside its weights.
const MORE: [&str; 10] = [
    "--runs",
    "2",
    "--epochs",
    "8",
    "--preset",
    "plus",
    "--checkpoint-every",
    "0s",
    "--set",
    "loss.companions.share=0.2",
];

#[test]
fn the_same_seed_gives_the_same_files_and_another_seed_does_not() {
    let place = Place::new();
    let data = place.dataset("a.h5", 150, true);
    let short = ["--runs", "2", "--epochs", "2"];
    fit(&data, &place.path("one"), &short).assert().success();
    fit(&data, &place.path("two"), &short).assert().success();
    fit(&data, &place.path("threads"), &short).args(["--set", "run.checkpoint_seconds=0"]).assert().success();
    assert_same(&place.path("one"), &place.path("two"));
    let model = |name: &str| std::fs::read(place.path(name).join("checkpoints/restart-000.best.ckpt")).unwrap();
    assert_eq!(model("one"), model("threads"), "saving often changes nothing");
    fit(&data, &place.path("other"), &short).args(["--seed", "1"]).assert().success();
    assert_ne!(model("one"), model("other"));
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_in_the_same_files() {
    let place = Place::new();
    let data = place.dataset("a.h5", 400, true);
    fit(&data, &place.path("whole"), &MORE).assert().success();
    let broken = place.path("broken");
    let mut first = std_command(&fit(&data, &broken, &MORE));
    let mut kills = kill_on_the_way(&mut first, &broken, 2);
    for round in 0..12 {
        if broken.join("summary.json").exists() || !broken.join("config.toml").exists() {
            break;
        }
        let mut again = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
        again.arg("resume").arg(&broken).args(["--quiet", "--no-export"]);
        kills += kill_on_the_way(&mut again, &broken, 1 + round % 3);
    }
    assert!(kills >= 2, "the process was too fast to be killed: {kills}");
    program().arg("resume").arg(&broken).args(["--quiet", "--no-export"]).assert().success();
    assert_same(&place.path("whole"), &broken);
}

/// A search for the number of clusters that takes some seconds.
const SEARCH: [&str; 12] = [
    "--clusters",
    "auto",
    "--k-range",
    "2..5",
    "--runs",
    "1",
    "--epochs",
    "6",
    "--set",
    "run.trial_steps=120",
    "--checkpoint-every",
    "0s",
];

#[test]
fn a_search_for_the_number_of_clusters_that_is_killed_ends_in_the_same_files() {
    let place = Place::new();
    let data = place.dataset("a.h5", 240, true);
    fit(&data, &place.path("whole"), &SEARCH).assert().success();
    let broken = place.path("broken");
    let mut kills = kill_on_the_way(&mut std_command(&fit(&data, &broken, &SEARCH)), &broken, 2);
    for round in 0..4 {
        if broken.join("clusters.jsonl").exists() || !broken.join("config.toml").exists() {
            break;
        }
        let mut again = Command::new(assert_cmd::cargo::cargo_bin("dtkc-train"));
        again.arg("resume").arg(&broken).args(["--quiet", "--no-export"]);
        kills += kill_on_the_way(&mut again, &broken, 1 + round % 3);
    }
    assert!(kills >= 2, "the process was too fast to be killed: {kills}");
    program().arg("resume").arg(&broken).args(["--quiet", "--no-export"]).assert().success();
    assert_same(&place.path("whole"), &broken);
}

#[test]
fn pruned_restarts_resume_too() {
    let place = Place::new();
    let data = place.dataset("a.h5", 120, true);
    let more = ["--runs", "5", "--epochs", "6", "--prune", "--set", "prune.first_epoch=2", "--checkpoint-every", "0s"];
    fit(&data, &place.path("whole"), &more).assert().success();
    let summary = std::fs::read_to_string(place.path("whole/summary.json")).unwrap();
    assert!(summary.contains("\"pruned\""), "{summary}");
    let broken = place.path("broken");
    kill_after(&mut std_command(&fit(&data, &broken, &more)), 400);
    if broken.join("config.toml").exists() {
        program().arg("resume").arg(&broken).args(["--quiet", "--no-export"]).assert().success();
        assert_same(&place.path("whole"), &broken);
    }
}

#[test]
fn resuming_a_finished_run_changes_nothing() {
    let place = Place::new();
    let data = place.dataset("a.h5", 100, false);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "2"]).assert().success();
    let before = common::content(&run);
    program().arg("resume").arg(&run).args(["--quiet", "--no-export"]).assert().success();
    assert!(before == common::content(&run));
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_how_to_go_on() {
    let place = Place::new();
    let data = place.dataset("a.h5", 600, true);
    let long = ["--runs", "1", "--epochs", "100000", "--patience", "0"];
    let run = place.path("run");
    let child = std_command(&fit(&data, &run, &long)).stderr(Stdio::piped()).spawn().unwrap();
    // The file is there before the first epoch is over; then it has a line.
    while std::fs::read(run.join("log.jsonl")).map_or(0, |log| log.len()) == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("dtkc-train resume"), "{text}");
    assert!(run.join("checkpoints/restart-000.last.ckpt").exists());
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_for_the_number_of_clusters_says_how_to_go_on() {
    let place = Place::new();
    let data = place.dataset("a.h5", 600, true);
    let long =
        ["--clusters", "auto", "--set", "run.trial_steps=100000", "--epochs", "100000", "--checkpoint-every", "0s"];
    let run = place.path("run");
    let child = std_command(&fit(&data, &run, &long)).stderr(Stdio::piped()).spawn().unwrap();
    while !run.join("checkpoints/clusters.ckpt").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("saved up to step") && text.contains("dtkc-train resume"), "{text}");
}

#[test]
fn a_damaged_checkpoint_is_named_and_a_changed_dataset_refused() {
    let place = Place::new();
    let data = place.dataset("a.h5", 100, true);
    let run = place.path("run");
    fit(&data, &run, &["--runs", "1", "--epochs", "2"]).assert().success();
    let path = run.join("checkpoints/restart-000.last.ckpt");
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    std::fs::write(&path, &bad).unwrap();
    let (code, text) = failure(program().arg("resume").arg(&run));
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("restart-000.last.ckpt") && text.contains("checksum"), "{text}");
    std::fs::write(&path, &good).unwrap();
    place.dataset("a.h5", 101, true);
    let (code, text) = failure(program().arg("resume").arg(&run));
    assert_eq!((code, text.lines().count()), (1, 1), "{text}");
    assert!(text.contains("not the dataset"), "{text}");
}

/// The same command as the standard library's, which can be killed.
fn std_command(command: &assert_cmd::Command) -> Command {
    let mut std = Command::new(command.get_program());
    std.args(command.get_args());
    std
}

/// Kills a process some moments after it has written so many checkpoints, however fast the machine is; 0 where it ended before that.
fn kill_on_the_way(command: &mut Command, run: &Path, checkpoints: u64) -> usize {
    let written = || {
        let files = std::fs::read_dir(run.join("checkpoints")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()?.modified().ok()).max()
    };
    let (mut last, mut seen) = (written(), 0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while seen < checkpoints {
        if child.try_wait().unwrap().is_some() {
            return 0;
        }
        let now = written();
        if now != last {
            (last, seen) = (now, seen + 1);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(2 * checkpoints));
    let running = child.try_wait().unwrap().is_none();
    child.kill().ok();
    child.wait().unwrap();
    usize::from(running)
}

/// Starts a process and kills it (SIGKILL) after so many milliseconds; 1 when it was still running.
fn kill_after(command: &mut Command, milliseconds: u64) -> usize {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(milliseconds));
    let running = child.try_wait().unwrap().is_none();
    child.kill().ok();
    child.wait().unwrap();
    usize::from(running)
}
