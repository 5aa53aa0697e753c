//! `sweep` as a user meets it: points, a stop, more of everything, the files.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Place, assert_same, failure, program};
use serde_json::Value;

const BLOCKS: &str = "network.blocks=[{filters=4,kernel=3,convs=1},{filters=4,kernel=3,convs=1}]";

/// `sweep` with networks that train in milliseconds.
fn sweep(data: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["sweep", "--threads", "1", "--set", "plan.batch=24", "--set", "run.comparison_batches=2"]);
    command.args(["--set", "network.hidden=8", "--set", BLOCKS]);
    command.arg("--out").arg(out).args(more).arg("--data").arg(data);
    command
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// Tables without wall times.
fn figures(out: &Path) -> Value {
    let mut all = json(&out.join("sweep.json"));
    for point in all["datasets"][0]["points"].as_array_mut().unwrap() {
        point.as_object_mut().unwrap().remove("seconds").unwrap();
    }
    all
}

#[test]
fn every_point_is_a_run_and_lambda_zero_is_ddc() {
    let place = Place::new();
    let a = place.dataset("a.h5", 90, true);
    let out = place.path("sweep");
    let flags = ["--vary", "loss.lambda=0.5,0", "--vary", "loss.sigma=0.15,0.45", "--runs", "2", "--epochs", "2"];
    let output = sweep(&a, &out, &flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cells = [
        "dtkc+loss.lambda=0.5+loss.sigma=0.15",
        "dtkc+loss.lambda=0.5+loss.sigma=0.45",
        "ddc+loss.sigma=0.15",
        "ddc+loss.sigma=0.45",
    ];
    let all = json(&out.join("sweep.json"));
    let points = all["datasets"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for (point, cell) in points.iter().zip(cells) {
        let summary = json(&out.join("a").join(cell).join("summary.json"));
        assert_eq!(point["cell"], *cell);
        assert_eq!(
            (&point["acc"], &point["nmi"], &point["restarts"]),
            (&summary["acc"], &summary["nmi"], &Value::from(2))
        );
        let seeds = |summary: &Value| {
            let restarts = summary["restarts"].as_array().unwrap();
            restarts.iter().map(|restart| restart["seed"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(seeds(&summary), seeds(&json(&out.join("a").join(cells[0]).join("summary.json"))), "equal seeds");
    }
    let config: toml::Table = read(&out.join("a/ddc+loss.sigma=0.45/config.toml")).parse().unwrap();
    assert_eq!(config["ddc"]["loss"]["sigma"].as_float(), Some(0.45));
    assert_eq!(config["ddc"]["network"]["hidden"].as_integer(), Some(8), "what is set is set for both methods");
    assert_eq!(points[3]["values"], serde_json::json!(["0", "0.45"]));
    let table = read(&out.join("sweep.md"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), table, "what is printed is what is written");
    assert_eq!(read(&out.join("sweep.csv")).lines().count(), 5);
    let plot = read(&out.join("sweep-a.svg"));
    assert!(plot.starts_with("<svg ") && plot.matches("<circle").count() == 2 * 4 + 2, "{plot}");

    // More values and more restarts; what was there stays.
    let more = ["--vary", "loss.lambda=0.5,0,0.1", "--vary", "loss.sigma=0.15", "--runs", "3", "--epochs", "2"];
    sweep(&a, &out, &more).assert().success();
    let grown = json(&out.join("sweep.json"));
    let restarts: Vec<u64> =
        grown["datasets"][0]["points"].as_array().unwrap().iter().map(|p| p["restarts"].as_u64().unwrap()).collect();
    assert_eq!(restarts, [3, 3, 3]);
    std::fs::remove_file(out.join("sweep.md")).unwrap();
    sweep(&a, &out, &[&more[..], &["--tables", "--quiet"]].concat()).assert().success();
    assert!(read(&out.join("sweep.md")).contains("loss.lambda"));
}

#[cfg(unix)]
#[test]
fn a_sweep_that_was_stopped_goes_on_to_the_same_table() {
    use dtkc_testing::wait_until;
    use std::process::{Command, Stdio};
    let place = Place::new();
    let a = place.dataset("a.h5", 240, true);
    let flags = ["--vary", "loss.sigma=0.15,0.45", "--method", "ddc", "--runs", "2", "--epochs", "20"];
    let (whole, broken) = (place.path("whole"), place.path("broken"));
    sweep(&a, &whole, &flags).assert().success();

    let command = sweep(&a, &broken, &flags);
    let mut stopped = Command::new(command.get_program());
    let child = stopped.args(command.get_args()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let log = broken.join("a/ddc+loss.sigma=0.15/log.jsonl");
    wait_until("the first epoch", || log.metadata().is_ok_and(|log| log.len() > 0));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("0 of 2 cells are done"), "{said}");
    assert!(read(&broken.join("sweep.md")).contains("not begun yet"));

    sweep(&a, &broken, &flags).assert().success();
    assert_eq!(figures(&whole), figures(&broken));
    assert_eq!(read(&whole.join("sweep-a.svg")), read(&broken.join("sweep-a.svg")));
    for cell in ["ddc+loss.sigma=0.15", "ddc+loss.sigma=0.45"] {
        assert_same(&whole.join("a").join(cell), &broken.join("a").join(cell));
    }
}

#[test]
fn mistakes_are_found_before_any_run() {
    let place = Place::new();
    let a = place.dataset("a.h5", 30, true);
    let bare = place.dataset("bare.h5", 30, false);
    let out = place.path("sweep");
    for (data, flags, code, words) in [
        (&a, vec![], 2, "--vary"),
        (&a, vec!["--vary", "loss.lambda"], 2, "names no values"),
        (&a, vec!["--vary", "loss.lamda=1,2"], 2, "did you mean `lambda`"),
        (&a, vec!["--vary", "loss.lambda=1,-1"], 2, "loss.lambda = -1"),
        (&a, vec!["--vary", "loss.lambda=1,2", "--vary", "loss.sigma=1", "--join", "list"], 2, "needs as many of each"),
        (&a, vec!["--method", "ddc", "--vary", "loss.lambda=0.1"], 2, "ddc has no companion objectives"),
        (&a, vec!["--like", "paper-lambda", "--vary", "loss.sigma=1"], 2, "cannot be used with"),
        (&bare, vec!["--vary", "loss.lambda=1"], 2, "--clusters bare=K"),
    ] {
        let (status, text) = failure(&mut sweep(data, &out, &flags));
        assert!(text.contains(words) && text.lines().count() == 1, "{words}: {text}");
        assert_eq!(status, code, "{text}");
    }
    assert!(!out.exists());
}

#[test]
fn the_papers_sweep_has_its_values_and_its_preset() {
    let place = Place::new();
    let a = place.dataset("a.h5", 60, true);
    let out = place.path("sweep");
    sweep(&a, &out, &["--like", "paper-sigma", "--runs", "1", "--epochs", "1", "--quiet"]).assert().success();
    let all = json(&out.join("sweep.json"));
    let values: Vec<&str> =
        all["datasets"][0]["points"].as_array().unwrap().iter().map(|p| p["values"][0].as_str().unwrap()).collect();
    assert_eq!(values, ["0.01", "0.05", "0.15", "0.25", "0.35", "0.45"]);
    let config: toml::Table = read(&out.join("a/dtkc+loss.sigma=0.25/config.toml")).parse().unwrap();
    assert_eq!(config["preset"].as_str(), Some("paper"));
    assert_eq!(config["dtkc"]["loss"]["sigma"].as_float(), Some(0.25));
}
