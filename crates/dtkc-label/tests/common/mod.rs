//! What the program tests share: the small model in a folder, its images, and the labeller itself.
//! Each test file uses a part of it.
#![allow(dead_code, unused_imports, clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Deref;
use std::process::{Command, Stdio};

use dtkc_item::ImageShape;
pub use dtkc_testing::model::{CLUSTERS, EMBEDDING, SIDE, model};
use dtkc_testing::{Said, drawing, files, write_images};

pub const SHAPE: ImageShape = ImageShape { height: SIDE, width: SIDE, channels: 1 };

/// A folder of its own for a test, with a model in it, where the labeller runs.
pub struct Place(dtkc_testing::Place);

impl Deref for Place {
    type Target = dtkc_testing::Place;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

pub fn pixels(number: usize) -> Vec<u8> {
    drawing(SIDE, number)
}

pub fn png(number: usize) -> Vec<u8> {
    files::png(SIDE as u32, SIDE as u32, &pixels(number))
}

impl Place {
    pub fn new() -> Self {
        let place = dtkc_testing::Place::of("dtkc-label");
        place.write("model.onnx", model(3));
        Self(place)
    }

    /// `count` images `0000.png`.. in a folder.
    pub fn images(&self, folder: &str, count: usize) {
        for number in 0..count {
            self.write(&format!("{folder}/{number:04}.png"), png(number));
        }
    }

    /// The same images as a dataset, with labels 0, 1, 2 in turn.
    pub fn dataset(&self, name: &str, count: usize) {
        let images = (0..count).map(|number| (pixels(number), Some(number as i64 % 3)));
        write_images(&self.path(name), "test", SHAPE, images);
    }

    pub fn zip(&self, name: &str, entries: &[(&str, Vec<u8>)]) {
        self.write(name, files::zip(entries));
    }

    /// A tar, packed where its name says so.
    pub fn tar(&self, name: &str, entries: &[(&str, Vec<u8>)]) {
        let tar = files::tar(entries);
        let packed = match name.rsplit('.').next() {
            Some("gz" | "tgz") => files::gz(&tar),
            Some("bz2") => files::bz2(&tar),
            _ => tar,
        };
        self.write(name, packed);
    }

    /// The labeller with the model and without progress, about to run.
    pub fn label(&self, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(["--model", "model.onnx", "--quiet"]).args(arguments);
        command
    }

    /// Runs it and wants success. What an earlier call made is replaced.
    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> Said {
        succeeded(self.label(&forced(arguments)).output().unwrap().into())
    }

    /// Runs it with a text on standard input and wants success. What an earlier call made is replaced.
    #[track_caller]
    pub fn ok_with_input(&self, arguments: &[&str], input: &str) -> Said {
        succeeded(self.label_with_input(&forced(arguments), input))
    }

    /// Runs it with a text on standard input.
    #[track_caller]
    pub fn label_with_input(&self, arguments: &[&str], input: &str) -> Said {
        let mut command = self.label(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that fails at once reads nothing.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    /// Runs it and wants a failure with these words.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str], code: i32, words: &str) {
        refused(self.label(arguments).output().unwrap().into(), code, words);
    }

    /// Joins parts and wants a failure with these words.
    #[track_caller]
    pub fn refused_merge(&self, parts: &[&str], output: &str, code: i32, words: &str) {
        refused(self.run([&["merge", "-q", "--output", output], parts].concat()), code, words);
    }

    /// Joins parts and wants success.
    #[track_caller]
    pub fn merge(&self, parts: &[&str], output: &str) {
        self.run([&["merge", "-q", "--force", "--output", output], parts].concat()).ok();
    }
}

fn forced<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let force: &[&str] = if arguments.contains(&"--force") { &[] } else { &["--force"] };
    [arguments, force].concat()
}

#[track_caller]
fn succeeded(said: Said) -> Said {
    assert_eq!(said.code, 0, "{said:?}");
    said
}

/// What was said is a failure with these words.
#[track_caller]
pub fn refused(said: Said, code: i32, words: &str) {
    assert_eq!(said.code, code, "{said:?}");
    assert!(said.err.contains(words), "{said:?}");
}

/// The rows of a CSV text: columns by name.
pub fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// One column of a CSV text.
pub fn column(text: &str, name: &str) -> Vec<String> {
    rows(text).into_iter().map(|mut row| row.remove(name).unwrap_or_else(|| panic!("no column {name}"))).collect()
}

/// A summary in JSON.
pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
