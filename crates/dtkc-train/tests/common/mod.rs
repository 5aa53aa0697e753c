//! A tiny dataset, a tiny network and the program, for the program tests.
#![allow(dead_code, clippy::unwrap_used)]

pub mod small;

use dtkc_dataset::{Writer, WriterOptions};
use dtkc_item::{ImageShape, Resize};
use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// Side of the images.
pub const SIDE: usize = 12;

/// A folder of one test, removed at its end.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `count` images of three kinds (bars across, bars down, blobs) with noise; labels on request.
    pub fn dataset(&self, name: &str, count: usize, labels: bool) -> PathBuf {
        self.shapes(name, count, labels, None)
    }

    /// The same without labels, from a file that says how its images were brought to size.
    pub fn dataset_resized(&self, name: &str, count: usize, resize: Option<Resize>) -> PathBuf {
        self.shapes(name, count, false, resize)
    }

    /// `count` times the same image of one channel.
    pub fn copies(&self, name: &str, count: usize, shape: ImageShape, image: &[u8]) -> PathBuf {
        let path = self.path(name);
        let mut writer = Writer::create(&path, WriterOptions::new(shape, "copies", "test")).unwrap();
        (0..count).for_each(|_| writer.push_image(image, None, None).unwrap());
        writer.finish().unwrap();
        path
    }

    fn shapes(&self, name: &str, count: usize, labels: bool, resize: Option<Resize>) -> PathBuf {
        let path = self.path(name);
        let shape = ImageShape { height: SIDE, width: SIDE, channels: 1 };
        let options = WriterOptions { resize, ..WriterOptions::new(shape, "shapes", "test") };
        let mut writer = Writer::create(&path, options).unwrap();
        let mut noise = 7u32;
        for i in 0..count {
            let pixels: Vec<u8> = (0..SIDE * SIDE)
                .map(|p| {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let (y, x) = (p / SIDE, p % SIDE);
                    let (dy, dx) = (y as i32 - 6, x as i32 - 6);
                    let bright = match i % 3 {
                        0 => (y + i / 3) % 4 < 2,
                        1 => (x + i / 3) % 4 < 2,
                        _ => dy * dy + dx * dx < 12,
                    };
                    (if bright { 180 } else { 20 }) + (noise >> 26) as u8
                })
                .collect();
            writer.push_image(&pixels, labels.then_some((i % 3) as i64), None).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}

/// The program.
pub fn program() -> Command {
    Command::cargo_bin("dtkc-train").unwrap()
}

/// `fit` with a network that trains in milliseconds; flags in `more` replace the usual ones.
pub fn fit(data: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = program();
    command.args(["fit", "--quiet", "--no-export"]);
    for [flag, value] in [["--clusters", "3"], ["--threads", "1"], ["--batch", "24"]] {
        if !more.contains(&flag) {
            command.args([flag, value]);
        }
    }
    command.args(["--set", "network.hidden=8", "--set", "run.comparison_batches=2"]);
    command.args(["--set", "network.blocks=[{filters=4,kernel=3,convs=1},{filters=4,kernel=3,convs=1}]"]);
    command.arg("--data").arg(data).arg("--out").arg(out).args(more);
    command
}

/// What the program says when it fails: one line on standard error, with its exit code.
pub fn failure(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    (output.status.code().unwrap(), text)
}

/// Every file of a run but the lock, without wall times, so that two runs can be compared byte for byte.
pub fn content(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    collect(run, run, &mut files);
    files.sort();
    files
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
            continue;
        }
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        match name.as_str() {
            ".lock" => {}
            "log.jsonl" => files.push((name, untimed_log(&bytes))),
            "summary.json" => files.push((name, untimed_summary(&bytes))),
            _ => files.push((name, bytes)),
        }
    }
}

fn untimed_log(bytes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(bytes).unwrap();
    let cut = |line: &str| line.split(",\"seconds\":").next().unwrap().to_owned() + "\n";
    text.lines().map(cut).collect::<String>().into_bytes()
}

fn untimed_summary(bytes: &[u8]) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    value.as_object_mut().unwrap().remove("timing").unwrap();
    serde_json::to_vec(&value).unwrap()
}

/// Fails with the names of files that differ.
pub fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (content(a), content(b));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b));
    for ((name, left), (_, right)) in a.iter().zip(&b) {
        assert!(left == right, "{name} differs");
    }
}
