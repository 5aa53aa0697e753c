//! Small datasets.

use std::path::{Path, PathBuf};

use dtkc_dataset::{Compression, Dataset, Writer, WriterOptions};
use dtkc_item::{ImageShape, ItemShape};

/// A shape whose chunks hold few images, so that small sets have several chunks: 64 x 64 x 3 bytes are 12 KiB.
pub const SHAPE: ImageShape = ImageShape { height: 64, width: 64, channels: 3 };
/// Images of [`SHAPE`] per chunk.
pub const CHUNK_ROWS: usize = 21;

/// The pixels of image `index`: its number is in the first bytes, so that any mix-up shows.
pub fn image(shape: ImageShape, index: usize) -> Vec<u8> {
    let mut pixels: Vec<u8> = (0..shape.len()).map(|i| (i * 31 + index * 7) as u8).collect();
    let number = (index as u32).to_le_bytes();
    let room = number.len().min(pixels.len());
    pixels[..room].copy_from_slice(&number[..room]);
    pixels
}

/// A set of numbered images ([`image()`]).
#[derive(Debug, Clone)]
pub struct Set {
    /// The size of every image.
    pub shape: ImageShape,
    /// How many.
    pub count: usize,
    classes: Option<usize>,
    names: Option<Vec<String>>,
    paths: bool,
    compression: Compression,
}

impl Set {
    /// No labels, no paths, no compression.
    pub fn new(shape: ImageShape, count: usize) -> Self {
        Self { shape, count, classes: None, names: None, paths: false, compression: Compression::None }
    }

    /// Classes with these names, in turn.
    pub fn labelled(mut self, names: &[&str]) -> Self {
        self.classes = Some(names.len());
        self.names = Some(names.iter().map(|n| (*n).to_owned()).collect());
        self
    }

    /// So many classes without names, in turn.
    pub fn numbered(mut self, classes: usize) -> Self {
        self.classes = Some(classes);
        self
    }

    /// Image 7 has the path `folder/7.png`.
    pub fn with_paths(mut self) -> Self {
        self.paths = true;
        self
    }

    /// Compressed with that level.
    pub fn gzip(mut self, level: u8) -> Self {
        self.compression = Compression::Gzip(level);
        self
    }

    /// The label of item `index`: classes in turn.
    pub fn label(&self, index: usize) -> Option<i64> {
        self.classes.map(|classes| (index % classes) as i64)
    }

    /// Writes the file and gives its path.
    pub fn write(&self, path: &Path) -> PathBuf {
        let options = WriterOptions {
            compression: self.compression,
            paths: self.paths,
            label_names: self.names.clone(),
            ..WriterOptions::new(self.shape, "test", "made by a test")
        };
        let mut writer = Writer::create(path, options).unwrap();
        for index in 0..self.count {
            let name = format!("folder/{index}.png");
            writer.push_image(&image(self.shape, index), self.label(index), self.paths.then_some(&name)).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), self.count);
        path.to_owned()
    }
}

/// Writes a set of these images, each with its label, and gives the file's path.
pub fn write_images(
    path: &Path,
    name: &str,
    shape: ImageShape,
    images: impl IntoIterator<Item = (Vec<u8>, Option<i64>)>,
) -> PathBuf {
    let mut writer = Writer::create(path, WriterOptions::new(shape, name, "made by a test")).unwrap();
    for (pixels, label) in images {
        writer.push_image(&pixels, label, None).unwrap();
    }
    writer.finish().unwrap();
    path.to_owned()
}

/// Writes sequences of 1 to 7 steps of 3 values, labelled 0 and 1 in turn, and gives the file's path.
pub fn write_sequences(path: &Path, count: usize) -> PathBuf {
    let shape = ItemShape::Sequence { dim: 3 };
    let mut writer = Writer::create(path, WriterOptions::new(shape, "seq", "made by a test")).unwrap();
    for index in 0..count {
        writer.push_sequence(&sequence(index), Some((index % 2) as i64), None).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), count);
    path.to_owned()
}

/// The values of sequence `index` of [`write_sequences`].
pub fn sequence(index: usize) -> Vec<f32> {
    (0..(index % 7 + 1) * 3).map(|i| index as f32 + i as f32 / 100.0).collect()
}

/// The labels of a labelled set.
pub fn labels(dataset: &Dataset) -> Vec<i64> {
    dataset.labels().unwrap().unwrap()
}

/// The paths of a set that has them.
pub fn paths(dataset: &Dataset) -> Vec<String> {
    dataset.paths(0..dataset.len()).unwrap().unwrap()
}

/// The first value of every image of a set.
pub fn first_pixels(dataset: &Dataset) -> Vec<u8> {
    let bytes = dataset.require_images().unwrap().len();
    dataset.read_range(0..dataset.len()).unwrap().chunks(bytes).map(|image| image[0]).collect()
}
