//! Copying items from datasets to a new one: what `subset` and `merge` share.

use dtkc_dataset::{Compression, DataError, Dataset, ImageWriter, SequenceOptions, SequenceWriter, WriterOptions};
use std::path::{Path, PathBuf};

use dtkc_cli::{Progress, Usage, human};

use super::scan::check_interrupt;

/// Bytes of images that are read at once.
const BLOCK_BYTES: usize = 4 << 20;
/// Paths that are read at once.
const PATH_BLOCK: usize = 4096;

/// Flags that every command with a copied output has.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// The dataset file to write
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Name of the new set [default: the file's name]
    #[arg(long)]
    name: Option<String>,
    /// Compress with gzip: 1 (fast) to 9 (small) [default: not at all; 4 if no level is given]
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, default_missing_value = "4", value_parser = clap::value_parser!(u8).range(1..=9))]
    compress: Option<u8>,
}

/// What the new set is like.
#[derive(Debug)]
pub struct NewSet {
    pub source: String,
    pub label_names: Option<Vec<String>>,
    pub paths: bool,
}

/// One item's labels and paths may be given from outside; the values come from the dataset.
#[derive(Debug)]
pub struct Part<'a> {
    pub dataset: &'a Dataset,
    /// Which items, in rising order.
    pub indices: Vec<usize>,
    /// The new label of each of them.
    pub labels: Option<Vec<i64>>,
}

/// A writer of either kind.
pub enum Output {
    Images(ImageWriter),
    Sequences(SequenceWriter),
}

impl Output {
    /// Starts a file like `model`, which is one of the sources.
    pub fn create(args: &OutputArgs, model: &Dataset, set: NewSet) -> anyhow::Result<Self> {
        let name = args.name.clone().unwrap_or_else(|| stem(&args.out));
        let compression = args.compress.map_or(Compression::None, Compression::Gzip);
        let NewSet { source, label_names, paths } = set;
        Ok(match (model.image_shape(), model.sequence_dim()) {
            (Some(shape), _) => {
                let options = WriterOptions { shape, name, source, compression, paths, label_names };
                Self::Images(ImageWriter::create(&args.out, options)?)
            }
            (None, dim) => {
                let dim = dim.unwrap_or_default();
                let options = SequenceOptions { dim, name, source, compression, paths, label_names };
                Self::Sequences(SequenceWriter::create(&args.out, options)?)
            }
        })
    }

    /// Copies the items of a part.
    pub fn copy(&mut self, part: &Part<'_>, paths: bool, progress: &Progress) -> anyhow::Result<()> {
        let row_bytes = part.dataset.image_shape().map_or(1, |shape| shape.bytes());
        let step = (BLOCK_BYTES / row_bytes).clamp(1, PATH_BLOCK);
        let mut path_source = PathSource::new(part.dataset);
        for (number, block) in part.indices.chunks(step).enumerate() {
            check_interrupt()?;
            let pixels = match self {
                Self::Images(_) => part.dataset.read(block)?,
                Self::Sequences(_) => Vec::new(),
            };
            for (i, &index) in block.iter().enumerate() {
                let label = part.labels.as_ref().map(|labels| labels[number * step + i]);
                let path = if paths { Some(path_source.get(index)?) } else { None };
                match self {
                    Self::Images(writer) => {
                        writer.push(&pixels[i * row_bytes..(i + 1) * row_bytes], label, path)?;
                    }
                    Self::Sequences(writer) => writer.push(&part.dataset.read_sequence(index)?, label, path)?,
                }
            }
            progress.inc(block.len() as u64);
        }
        Ok(())
    }

    /// Completes the file and says so.
    pub fn finish(self, args: &OutputArgs, progress: &Progress) -> anyhow::Result<()> {
        check_interrupt()?;
        let (count, kind) = match self {
            Self::Images(writer) => (writer.finish()?, "images"),
            Self::Sequences(writer) => (writer.finish()?, "sequences"),
        };
        progress.finish();
        let bytes = std::fs::metadata(&args.out).map_or(0, |m| m.len());
        println!("wrote {}: {} {kind}, {}", args.out.display(), human::count(count as u64), human::bytes(bytes));
        Ok(())
    }
}

/// A file's name without folder and extension.
pub fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Paths of rising indices, read in blocks; a set without paths gets its name and the index.
struct PathSource<'a> {
    dataset: &'a Dataset,
    start: usize,
    block: Vec<String>,
}

impl<'a> PathSource<'a> {
    fn new(dataset: &'a Dataset) -> Self {
        Self { dataset, start: 0, block: Vec::new() }
    }

    fn get(&mut self, index: usize) -> Result<&str, DataError> {
        if index < self.start || index >= self.start + self.block.len() {
            let end = self.dataset.len().min(index + PATH_BLOCK);
            self.start = index;
            self.block = match self.dataset.paths(index..end)? {
                Some(paths) => paths,
                None => (index..end).map(|i| format!("{}/{i}", self.dataset.name())).collect(),
            };
        }
        Ok(&self.block[index - self.start])
    }
}

/// Reads class names or numbers as the set knows them: a list of labels in rising order.
pub fn find_classes(dataset: &Dataset, wanted: &[String]) -> anyhow::Result<Vec<i64>> {
    let Some(present) = dataset.labels()? else {
        return Err(Usage(format!("{} has no labels, so no class can be chosen", dataset.path().display())).into());
    };
    let names = dataset.label_names()?.unwrap_or_default();
    let mut labels = Vec::new();
    for text in wanted {
        let by_name = names.iter().position(|name| name == text).map(|label| label as i64);
        let label = by_name.or_else(|| text.parse().ok());
        match label.filter(|label| present.contains(label)) {
            Some(label) => labels.push(label),
            None => return Err(Usage(unknown_class(dataset, text, &present, &names)).into()),
        }
    }
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

fn unknown_class(dataset: &Dataset, text: &str, present: &[i64], names: &[String]) -> String {
    let mut known: Vec<i64> = present.to_vec();
    known.sort_unstable();
    known.dedup();
    let title = |label: &i64| names.get(*label as usize).cloned().unwrap_or_else(|| label.to_string());
    let mut list = known.iter().take(20).map(title).collect::<Vec<_>>().join(", ");
    if known.len() > 20 {
        list += ", ...";
    }
    format!("{} has no class '{text}'; it has {list}", dataset.path().display())
}
