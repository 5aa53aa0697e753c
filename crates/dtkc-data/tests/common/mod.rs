//! Small datasets for the tests.
#![allow(dead_code, clippy::unwrap_used)]

use dtkc_dataset::{Compression, ImageWriter, SequenceOptions, SequenceWriter, WriterOptions};
use dtkc_item::ImageShape;
use std::path::{Path, PathBuf};


/// A shape whose chunks hold few images, so that small sets have several chunks: 64 x 64 x 3 bytes are 12 KiB.
pub const SHAPE: ImageShape = ImageShape { height: 64, width: 64, channels: 3 };
/// Images of [`SHAPE`] per chunk.
pub const CHUNK_ROWS: usize = 21;

/// The pixels of image `index`: its number is in the first bytes, so that any mix-up shows.
pub fn image(shape: ImageShape, index: usize) -> Vec<u8> {
    let mut pixels: Vec<u8> = (0..shape.bytes()).map(|i| (i * 31 + index * 7) as u8).collect();
    let number = (index as u32).to_le_bytes();
    let room = number.len().min(pixels.len());
    pixels[..room].copy_from_slice(&number[..room]);
    pixels
}

/// What a test set is like.
#[derive(Debug, Clone)]
pub struct Set {
    pub shape: ImageShape,
    pub count: usize,
    pub classes: Option<usize>,
    pub names: Option<Vec<String>>,
    pub paths: bool,
    pub compression: Compression,
}

impl Set {
    pub fn new(shape: ImageShape, count: usize) -> Self {
        Self { shape, count, classes: None, names: None, paths: false, compression: Compression::None }
    }

    pub fn labelled(mut self, names: &[&str]) -> Self {
        self.classes = Some(names.len());
        self.names = Some(names.iter().map(|n| (*n).to_owned()).collect());
        self
    }

    pub fn numbered(mut self, classes: usize) -> Self {
        self.classes = Some(classes);
        self
    }

    pub fn with_paths(mut self) -> Self {
        self.paths = true;
        self
    }

    pub fn gzip(mut self, level: u8) -> Self {
        self.compression = Compression::Gzip(level);
        self
    }

    /// The label of item `index`: classes in turn.
    pub fn label(&self, index: usize) -> Option<i64> {
        self.classes.map(|classes| (index % classes) as i64)
    }

    pub fn write(&self, path: &Path) -> PathBuf {
        let options = WriterOptions {
            compression: self.compression,
            paths: self.paths,
            label_names: self.names.clone(),
            ..WriterOptions::new(self.shape, "test", "made by a test")
        };
        let mut writer = ImageWriter::create(path, options).unwrap();
        for index in 0..self.count {
            let name = format!("folder/{index}.png");
            writer.push(&image(self.shape, index), self.label(index), self.paths.then_some(&name)).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), self.count);
        path.to_owned()
    }
}

/// Sequences of 1 to 7 steps of 3 values, labelled 0 and 1.
pub fn write_sequences(path: &Path, count: usize) -> PathBuf {
    let mut writer = SequenceWriter::create(path, SequenceOptions::new(3, "seq", "made by a test")).unwrap();
    for index in 0..count {
        writer.push(&sequence(index), Some((index % 2) as i64), None).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), count);
    path.to_owned()
}

/// The values of sequence `index`.
pub fn sequence(index: usize) -> Vec<f32> {
    (0..(index % 7 + 1) * 3).map(|i| index as f32 + i as f32 / 100.0).collect()
}

/// Names of what is in a folder.
pub fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
