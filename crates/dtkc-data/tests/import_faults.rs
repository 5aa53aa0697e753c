//! What `dtkc-data import` says and leaves behind when things go wrong around it.
#![allow(clippy::unwrap_used)]

mod import_support;

use import_support::{Work, gray_png, zip};

#[test]
fn missing_and_empty_things_are_named() {
    let work = Work::new();
    std::fs::create_dir(work.path("empty")).unwrap();
    work.write("set/a.png", &gray_png(4, 4, 1));
    work.write("notes.txt", b"hello");
    work.write("nothing.zip", &zip(&[("a.txt", b"x")]));
    for (source, out, code, words) in [
        ("gone", "a.h5", 1, "no such file or folder"),
        ("empty", "a.h5", 1, "the folder is empty"),
        ("notes.txt", "a.h5", 1, "--format"),
        ("nothing.zip", "a.h5", 1, "no images found among 1 entries"),
        ("set", "gone/a.h5", 1, "the folder gone does not exist"),
        ("set", "empty", 2, "is a folder"),
    ] {
        let error = work.fails(&["import", source, "--out", out], out, code);
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(work.run(&["import", "--out", "a.h5"]).code, 2);
    assert_eq!(work.run(&["import", "set"]).code, 2);
}

#[test]
fn a_failed_import_leaves_the_old_file_alone() {
    let work = Work::new();
    work.write("set/a.png", &gray_png(4, 4, 1));
    work.made(&["import", "set", "--out", "a.h5"], "a.h5");
    let before = std::fs::read(work.path("a.h5")).unwrap();
    work.write("set/b.png", b"no");
    work.fails(&["import", "set", "--strict", "--out", "a.h5"], "a.h5", 1);
    assert_eq!(std::fs::read(work.path("a.h5")).unwrap(), before);
}

#[test]
fn quiet_says_nothing_and_json_says_all() {
    let work = Work::new();
    work.write("set/a.png", &gray_png(4, 4, 1));
    let said = work.run(&["import", "set", "--out", "a.h5", "--quiet"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let said = work.run(&["import", "set", "--out", "a.h5", "--json", "--name", "mine"]);
    let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(summary["name"], "mine");
    assert_eq!(summary["kind"], "images");
    assert_eq!(summary["shape"]["channels"], 1);
    assert_eq!(summary["classes"], serde_json::json!([]));
}

/// A limit on the size of files is the nearest thing to a full disk that a test can make by itself.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow_is_one_sentence() {
    let work = Work::new();
    for i in 0..40 {
        work.write(&format!("set/{i}.png"), &gray_png(128, 128, i));
    }
    let program = assert_cmd::cargo::cargo_bin("dtkc-data");
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" import set --out a.h5";
    let output =
        std::process::Command::new("sh").arg("-c").arg(script).arg(&program).current_dir(work.path("")).output();
    let output = output.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot write a.h5") && error.trim_end().lines().count() == 1, "{error}");
    assert_eq!(work.names(), ["set"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_with_130_and_leaves_nothing() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let work = Work::new();
    // Two gigabytes of zeros that take no room on the disk.
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000, 32, 32), }";
    array.extend(format!("{header:<117}\n").bytes());
    let path = work.write("images.npy", &array);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(array.len() as u64 + 2_000_000 * 32 * 32).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("dtkc-data"))
        .args(["import", "images.npy", "--out", "a.h5"])
        .current_dir(work.path(""))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Once it writes it is surely listening.
    let started = Instant::now();
    while work.names().len() < 2 && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(work.names(), ["images.npy"]);
}
