//! Files that the import tests write for themselves, and what came out of them.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use dtkc_dataset::Dataset;
use std::io::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use image::{ImageFormat, Luma, Rgb, RgbImage};

/// A folder of its own for one test.
pub struct Work {
    folder: tempfile::TempDir,
}

/// What a run of the program said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Work {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the program inside the folder.
    pub fn run(&self, args: &[&str]) -> Said {
        let output =
            Command::cargo_bin("dtkc-data").unwrap().current_dir(self.folder.path()).args(args).output().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the program, which must succeed, and opens what it wrote.
    pub fn made(&self, args: &[&str], out: &str) -> Dataset {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
        Dataset::open(self.path(out)).unwrap()
    }

    /// Runs the program, which must fail with one sentence and leave nothing of its output.
    pub fn fails(&self, args: &[&str], out: &str, code: i32) -> String {
        let before = self.names();
        let said = self.run(args);
        assert_eq!(said.code, code, "{args:?}: {} {}", said.out, said.err);
        assert_eq!(said.err.trim_end().lines().count(), 1, "one sentence: {}", said.err);
        assert!(said.err.starts_with("error: "), "{}", said.err);
        assert!(!said.err.contains("panicked"), "{}", said.err);
        assert_eq!(self.names(), before, "left something behind for {out}");
        said.err
    }

    /// Everything in the folder itself, hidden files too.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A gray PNG whose pixels all have one value.
pub fn gray_png(height: u32, width: u32, value: u8) -> Vec<u8> {
    let image = image::GrayImage::from_pixel(width, height, Luma([value]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A colour image whose pixels all have one value.
pub fn rgb_image(height: u32, width: u32, value: [u8; 3], format: ImageFormat) -> Vec<u8> {
    let image = RgbImage::from_pixel(width, height, Rgb(value));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// The header of a PNG that claims that size, and hardly anything behind it.
pub fn png_that_claims(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = gray_png(8, 8, 0);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.sum().to_be_bytes());
    bytes
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

/// An IDX file of bytes.
pub fn idx(dims: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, dims.len() as u8];
    dims.iter().for_each(|d| bytes.extend(d.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// The first pixel of every image.
pub fn first_pixels(dataset: &Dataset) -> Vec<u8> {
    let bytes = dataset.image_shape().unwrap().bytes();
    dataset.read_range(0..dataset.len()).unwrap().chunks(bytes).map(|image| image[0]).collect()
}

pub fn labels(dataset: &Dataset) -> Vec<i64> {
    dataset.labels().unwrap().unwrap()
}

pub fn paths(dataset: &Dataset) -> Vec<String> {
    dataset.paths(0..dataset.len()).unwrap().unwrap()
}

/// The lines of a list of skipped images, without the heading.
pub fn skipped(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().skip(1).map(str::to_owned).collect()
}
