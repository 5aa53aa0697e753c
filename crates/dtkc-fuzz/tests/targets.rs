//! Every target runs on its seeds, on what once ended badly, and on some hundred changed inputs.
#![allow(clippy::unwrap_used)]

use std::process::Command;

fn run(targets: &str, executions: &str) -> (bool, String) {
    let findings = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dtkc-fuzz"))
        .args(["--target", targets, "--executions", executions, "--hang-seconds", "600", "--findings"])
        .arg(findings.path())
        .output()
        .unwrap();
    (
        output.status.success(),
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
    )
}

#[test]
fn readers_of_files_refuse_what_is_hostile() {
    let (good, text) = run("image,zip,tar,parquet,import,sequences,names,model,checkpoint,journal,config", "300");
    assert!(good && text.contains("over 11 targets, 0 findings"), "{text}");
}

/// Few: each is read by a process of its own, and those that the library never comes back from take seconds.
#[test]
fn dataset_files_are_refused_in_time() {
    let (good, text) = run("dataset", "40");
    assert!(good && text.contains("over 1 targets, 0 findings"), "{text}");
}

#[test]
fn the_service_refuses_what_is_hostile() {
    let (good, text) = run("json,form,v2,steps,table,v2-sequences", "300");
    assert!(good && text.contains("over 6 targets, 0 findings"), "{text}");
}

#[test]
fn an_unknown_target_is_named() {
    let (good, text) = run("made-up", "1");
    assert!(!good && text.contains("there is no target 'made-up'"), "{text}");
}
