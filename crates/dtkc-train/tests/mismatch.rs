//! `mismatch` as a user meets it: what is seen, that looking changes nothing, and going on.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Place, failure, program};
use serde_json::Value;

const BLOCKS: &str = "network.blocks=[{filters=4,kernel=3,convs=1},{filters=4,kernel=3,convs=1}]";

/// `mismatch` with networks that train in milliseconds.
fn mismatch(data: &Path, out: &Path, more: &[&str]) -> assert_cmd::Command {
    let mut command = program();
    command.args(["mismatch", "--threads", "1", "--set", "plan.batch=24", "--set", "run.comparison_batches=2"]);
    for method in ["dbc", "ddc", "dtkc"] {
        command.arg("--set").arg(format!("{method}.{BLOCKS}"));
    }
    for method in ["ddc", "dtkc"] {
        command.arg("--set").arg(format!("{method}.network.hidden=8"));
    }
    command.arg("--out").arg(out).args(more).arg("--data").arg(data);
    command
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What was seen of a network, in order.
fn seen(all: &Value, subject: &str) -> Vec<Value> {
    let courses = all["datasets"][0]["courses"].as_array().unwrap();
    let course =
        courses.iter().find(|course| course["subject"] == subject).unwrap_or_else(|| panic!("{subject}: {all}"));
    course["seen"].as_array().unwrap().clone()
}

#[test]
fn every_network_is_looked_into_while_it_learns() {
    let place = Place::new();
    let a = place.dataset("a.h5", 90, true);
    let out = place.path("m");
    let output = mismatch(&a, &out, &["--epochs", "6", "--every", "3"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all = json(&out.join("mismatch.json"));
    let epochs = |subject: &str| seen(&all, subject).iter().map(|s| s["epoch"].as_u64().unwrap()).collect::<Vec<_>>();
    // The autoencoder clusters for one epoch after its six.
    assert_eq!((epochs("autoencoder"), epochs("ddc"), epochs("dtkc")), (vec![3, 6, 7], vec![3, 6], vec![3, 6]));
    for subject in ["autoencoder", "ddc", "dtkc"] {
        for look in seen(&all, subject) {
            let nmi = look["nmi"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&nmi), "{subject}: {look}");
        }
    }
    let terms = |subject: &str| {
        let last = seen(&all, subject).pop().unwrap();
        last["cosines"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(terms("autoencoder"), ["reconstruction"]);
    assert_eq!(terms("ddc"), Vec::<String>::new());
    assert_eq!(terms("dtkc"), ["companion_1", "companion_2"]);
    assert_eq!(seen(&all, "autoencoder")[0]["stage"], "pretraining");
    let table = std::fs::read_to_string(out.join("mismatch.md")).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), table, "what is printed is what is written");
    assert!(std::fs::read_to_string(out.join("mismatch-a.svg")).unwrap().starts_with("<svg "));
    assert_eq!(std::fs::read_to_string(out.join("mismatch.csv")).unwrap().lines().count(), 1 + 3 + 2 + 2);

    // Three plain shapes: what a network without a code layer has learnt can be labelled and taken away like any other.
    let run = out.join("a/dbc+loss.reconstruction=0.1+network.code=0");
    program().arg("export").arg(&run).assert().success();
    // Again: everything is there, nothing is trained.
    let again = mismatch(&a, &out, &["--epochs", "6", "--every", "3", "--tables"]).output().unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), table);
}

#[test]
fn looking_changes_nothing_else() {
    let place = Place::new();
    let a = place.dataset("a.h5", 90, true);
    let lines = |name: &str, every: &str| {
        let run = place.path(name);
        let flags = ["--runs", "2", "--epochs", "3", "--set", every];
        common::fit(&a, &run, &flags).assert().success();
        let text = std::fs::read_to_string(run.join("log.jsonl")).unwrap();
        let of = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let object = line.as_object_mut().unwrap();
            let inside = object.remove("inside");
            for timing in ["seconds", "loading_seconds", "wall_seconds", "peak_memory_bytes"] {
                object.remove(timing);
            }
            (line, inside.is_some())
        };
        text.lines().map(of).collect::<Vec<_>>()
    };
    let (plain, looked) = (lines("plain", "run.inside_every=0"), lines("looked", "run.inside_every=1"));
    assert!(plain.iter().all(|(_, inside)| !inside) && looked.iter().all(|(_, inside)| *inside));
    let numbers = |lines: Vec<(Value, bool)>| lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(numbers(plain), numbers(looked));
}

#[test]
fn mistakes_are_one_sentence() {
    let place = Place::new();
    let a = place.dataset("a.h5", 90, false);
    let (code, error) = failure(&mut mismatch(&a, &place.path("m"), &["--methods", "autoencoder,kmeans"]));
    assert!(code == 2 && error.contains("kmeans has no blocks or layers"), "{error}");
    let (code, error) = failure(&mut mismatch(&a, &place.path("m"), &["--methods", "ddc", "--preset", "papr"]));
    assert!(code != 0 && error.contains("papr"), "{error}");
    assert!(!place.path("m").exists(), "nothing was begun");
}
