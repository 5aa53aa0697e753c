//! What `dtkc-data import` says and leaves behind when things go wrong around it.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use dtkc_data::import::{ImportError, ImportOptions, import};
use dtkc_observe::Observer;
use dtkc_testing::files::{gray_png, zip};
use dtkc_testing::{Place, Said, program};

#[test]
fn missing_and_empty_things_are_named() {
    let place = Place::of("dtkc-data");
    std::fs::create_dir(place.path("empty")).unwrap();
    place.write("set/a.png", gray_png(4, 4, 1));
    place.write("notes.txt", b"hello");
    place.write("nothing.zip", zip(&[("a.txt", b"x")]));
    for (source, out, code, words) in [
        ("gone", "a.h5", 1, "no such file or folder"),
        ("empty", "a.h5", 1, "the folder is empty"),
        ("notes.txt", "a.h5", 1, "--format"),
        ("nothing.zip", "a.h5", 1, "no images found among 1 entries"),
        ("set", "gone/a.h5", 1, "the folder gone does not exist"),
        ("set", "empty", 2, "is a folder"),
        ("set", "notes.txt/a.h5", 1, "the folder notes.txt does not exist"),
        ("set", &"x".repeat(256), 1, "cannot write xxx"),
    ] {
        let error = place.fails(&["import", source, "--out", out], code);
        assert!(error.contains(words) && !error.contains(".partial"), "{error}");
    }
    assert_eq!(place.run(["import", "--out", "a.h5"]).code, 2);
    assert_eq!(place.run(["import", "set"]).code, 2);
}

#[test]
fn a_failed_import_leaves_the_old_file_alone() {
    let place = Place::of("dtkc-data");
    place.write("set/a.png", gray_png(4, 4, 1));
    place.made(&["import", "set", "--out", "a.h5"], "a.h5");
    let before = place.read("a.h5");
    place.write("set/b.png", b"no");
    place.fails(&["import", "set", "--strict", "--force", "--out", "a.h5"], 1);
    assert!(place.read("a.h5") == before);
}

#[test]
fn quiet_says_nothing_and_json_says_all() {
    let place = Place::of("dtkc-data");
    place.write("set/a.png", gray_png(4, 4, 1));
    let said = place.run(["import", "set", "--out", "a.h5", "--quiet"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let said = place.run(["import", "set", "--out", "a.h5", "--json", "--force", "--name", "mine"]);
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
    let place = Place::of("dtkc-data");
    for i in 0..40 {
        place.write(&format!("set/{i}.png"), gray_png(128, 128, i));
    }
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" import set --out a.h5";
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).arg(program("dtkc-data")).current_dir(place.folder());
    Said::from(shell.output().unwrap()).fails(1, "cannot write a.h5");
    assert_eq!(place.names(), ["set"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_with_130_and_leaves_nothing() {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let place = Place::of("dtkc-data");
    // Two gigabytes of zeros that take no room on the disk.
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000, 32, 32), }";
    array.extend(format!("{header:<117}\n").bytes());
    let path = place.write("images.npy", &array);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(array.len() as u64 + 2_000_000 * 32 * 32).unwrap();
    let mut child =
        place.command().args(["import", "images.npy", "--out", "a.h5"]).stderr(Stdio::null()).spawn().unwrap();
    // Once it writes it is surely listening, however long that takes.
    while place.names().len() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.names(), ["images.npy"]);
}

/// Somebody who counts and has enough after a while.
#[derive(Default)]
struct Impatient {
    seen: AtomicU64,
    limit: u64,
}

impl Observer for Impatient {
    fn begin(&self, work: &str, unit: &'static str, total: Option<u64>) {
        assert_eq!((work, unit, total), ("importing", "images", Some(20)));
    }

    fn advance(&self, units: u64) {
        self.seen.fetch_add(units, Ordering::Relaxed);
    }

    fn stop(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.limit
    }
}

#[test]
fn an_observer_sees_every_item_and_may_stop() {
    let place = Place::new();
    for i in 0..20 {
        place.write(&format!("set/{i}.png"), gray_png(4, 4, i));
    }
    let options = ImportOptions::new(place.path("a.h5"));
    let patient = Impatient { limit: 21, ..Impatient::default() };
    assert_eq!(import(&[place.path("set")], &options, &patient).unwrap().count, 20);
    assert_eq!(patient.seen.into_inner(), 20);
    std::fs::remove_file(place.path("a.h5")).unwrap();
    let impatient = Impatient { limit: 7, ..Impatient::default() };
    let error = import(&[place.path("set")], &options, &impatient).unwrap_err();
    assert!(matches!(&error, ImportError::Interrupted(text) if text == "nothing was written"), "{error}");
    assert_eq!((impatient.seen.into_inner(), place.names()), (7, vec!["set".to_owned()]));
}
