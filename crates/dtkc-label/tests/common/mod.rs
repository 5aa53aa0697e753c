//! What the program tests share: a small model, images, and the program itself.
//! Each test file uses a part of it.
#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use dtkc_dataset::{ImageWriter, WriterOptions};
use dtkc_item::ImageShape;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use dtkc_onnx::{Cluster, InputSpec, Layer, Metadata, Network, Weights};
use tempfile::TempDir;

pub const SIDE: usize = 12;
pub const CLUSTERS: usize = 5;
pub const EMBEDDING: usize = 16;

/// A folder of its own for a test, with a model in it.
pub struct Place {
    pub folder: TempDir,
}

/// Numbers from -1 to 1 that are the same in every run.
pub struct Noise(pub u64);

impl Noise {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn values(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| (self.bits() as f32 / (1u64 << 30) as f32 - 1.0) * scale).collect()
    }
}

/// A small network with random weights, large enough in the last layer that every cluster gets images.
pub fn model_bytes(seed: u64) -> Vec<u8> {
    let mut noise = Noise(seed);
    let filters = 4;
    let side = (SIDE - 2) / 2;
    let flat = side * side * filters;
    let network = Network {
        height: SIDE,
        width: SIDE,
        channels: 1,
        layers: vec![
            Layer::Conv {
                weight: Weights::new([filters, 1, 3, 3], noise.values(filters * 9, 0.6)),
                bias: noise.values(filters, 0.1),
                padding: [0; 4],
            },
            Layer::Relu,
            Layer::MaxPool { size: 2 },
            Layer::Flatten,
            Layer::Dense {
                weight: Weights::new([flat, EMBEDDING], noise.values(flat * EMBEDDING, 0.4)),
                bias: noise.values(EMBEDDING, 0.1),
            },
            Layer::Relu,
            Layer::Embedding,
            Layer::Dense {
                weight: Weights::new([EMBEDDING, CLUSTERS], noise.values(EMBEDDING * CLUSTERS, 1.5)),
                bias: vec![0.0; CLUSTERS],
            },
            Layer::Softmax,
        ],
    };
    let input = InputSpec {
        height: SIDE,
        width: SIDE,
        color: "gray".into(),
        resize: "fit".into(),
        filter: dtkc_image::FILTER.into(),
    };
    let clusters = vec![Cluster { name: None, size: 10 }; CLUSTERS];
    let metadata = Metadata { input, clusters, embedding_size: EMBEDDING, ..Metadata::default() };
    dtkc_onnx::write(&network, &metadata).unwrap()
}

/// An image that differs from the others: one of a few patterns, shifted, with some noise.
pub fn pixels(number: usize) -> Vec<u8> {
    let mut noise = Noise(number as u64 * 7919 + 1);
    let (shift, step, cross) = (noise.bits() as usize % 5, 2 + noise.bits() as usize % 4, noise.bits() as usize % SIDE);
    let pixel = |i: usize, noise: &mut Noise| {
        let (y, x) = (i / SIDE, i % SIDE);
        let light = match number % 6 {
            0 => (y + shift) / step % 2 == 0,
            1 => (x + shift) / step % 2 == 0,
            2 => (x + y + shift) / step % 2 == 0,
            3 => y.abs_diff(cross) < step && x.abs_diff(SIDE / 2) < step,
            4 => x < cross,
            _ => y > cross,
        };
        (if light { 180 } else { 20 }) + (noise.bits() % 60) as u8
    };
    (0..SIDE * SIDE).map(|i| pixel(i, &mut noise)).collect()
}

pub fn png(number: usize) -> Vec<u8> {
    let image = image::GrayImage::from_raw(SIDE as u32, SIDE as u32, pixels(number)).unwrap();
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("model.onnx"), model_bytes(3)).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// `count` images `0000.png`.. in a folder.
    pub fn images(&self, folder: &str, count: usize) {
        (0..count).for_each(|i| self.write(&format!("{folder}/{i:04}.png"), png(i)));
    }

    /// The same images as a dataset, with labels 0, 1, 2 in turn.
    pub fn dataset(&self, name: &str, count: usize) {
        let shape = ImageShape { height: SIDE, width: SIDE, channels: 1 };
        let mut writer = ImageWriter::create(&self.path(name), WriterOptions::new(shape, "test", "a test")).unwrap();
        (0..count).for_each(|i| writer.push(&pixels(i), Some(i as i64 % 3), None).unwrap());
        writer.finish().unwrap();
    }

    pub fn zip(&self, name: &str, entries: &[(&str, Vec<u8>)]) {
        let mut writer = zip::ZipWriter::new(std::fs::File::create(self.path(name)).unwrap());
        for (entry, bytes) in entries {
            writer.start_file(*entry, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
    }

    pub fn tar(&self, name: &str, entries: &[(&str, Vec<u8>)]) {
        let file = std::fs::File::create(self.path(name)).unwrap();
        let out: Box<dyn Write> = match name.ends_with("gz") {
            true => Box::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast())),
            false => Box::new(file),
        };
        let mut builder = tar::Builder::new(out);
        for (entry, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, entry, bytes.as_slice()).unwrap();
        }
        builder.into_inner().unwrap().flush().unwrap();
    }

    /// The program in the test's folder, with a model and without progress.
    pub fn label(&self, arguments: &[&str]) -> Command {
        let mut command = self.program();
        command.args(["--model", "model.onnx", "--quiet"]).args(arguments);
        command
    }

    pub fn program(&self) -> Command {
        let mut command = Command::cargo_bin("dtkc-label").unwrap();
        command.current_dir(self.folder.path());
        command
    }

    /// Runs and wants success.
    pub fn ok(&self, arguments: &[&str]) -> Output {
        self.label(arguments).assert().success().get_output().clone()
    }
}

/// The rows of a CSV text: columns by name.
pub fn rows(text: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// One column of a CSV text.
pub fn column(text: &str, name: &str) -> Vec<String> {
    rows(text).into_iter().map(|mut row| row.remove(name).unwrap_or_else(|| panic!("no column {name}"))).collect()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
