//! Copying items from datasets to a new one: what `subset` and `merge` share.

use std::path::{Path, PathBuf};

use dtkc_cli::{Terminal, Usage};
use dtkc_dataset::{DataError, Dataset, Writer, WriterOptions};
use dtkc_files::Sources;
use dtkc_human as human;
use dtkc_item::{ItemKind, Resize};
use dtkc_observe::Observer;

use super::scan::stop_if_asked;
use super::{ForceArgs, StorageArgs};

/// Bytes of images that are read at once.
const BLOCK_BYTES: usize = 4 << 20;
/// Paths that are read at once.
const PATH_BLOCK: usize = 4096;

/// Flags that every command with a copied output has.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// The dataset file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Name of the new set [default: the file's name]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    force: ForceArgs,
}

impl OutputArgs {
    /// Refuses an output that is one of the sources, or is there already and was not asked to be replaced.
    pub fn check<P: AsRef<Path>>(&self, sources: impl IntoIterator<Item = P>) -> Result<(), Usage> {
        check_output(sources, &self.out, self.force.force)
    }
}

/// The same for an output with a flag of its own.
pub fn check_output<P: AsRef<Path>>(
    sources: impl IntoIterator<Item = P>,
    out: &Path,
    force: bool,
) -> Result<(), Usage> {
    Sources::of(sources).check(out, force).map_err(|refused| Usage(refused.to_string()))
}

/// What the new set is like.
#[derive(Debug)]
pub struct NewSet {
    pub source: String,
    pub label_names: Option<Vec<String>>,
    pub paths: bool,
    /// How images were brought to their size.
    pub resize: Option<Resize>,
    /// Items in all.
    pub count: usize,
}

/// Some items of a dataset.
#[derive(Debug)]
pub struct Part<'a> {
    pub dataset: &'a Dataset,
    /// Which items, in rising order.
    pub indices: Vec<usize>,
    /// The new label of each of them.
    pub labels: Option<Vec<i64>>,
}

/// A new set on its way.
pub struct Output<'a> {
    out: &'a Path,
    writer: Writer,
    kind: ItemKind,
    paths: bool,
    terminal: Terminal,
}

impl<'a> Output<'a> {
    /// Starts a file like `model`, which is one of the sources. `work` is the command's name.
    pub fn create(work: &str, args: &'a OutputArgs, model: &Dataset, set: NewSet) -> anyhow::Result<Self> {
        if model.kind() == ItemKind::Features {
            // What they were made of is told by their place among the images.
            let path = model.path().display();
            let text =
                format!("{path} holds features, which belong to all images of their set; take a part of those instead");
            return Err(Usage(text).into());
        }
        let name = args.name.clone().unwrap_or_else(|| stem(&args.out));
        let NewSet { source, label_names, paths, resize, count } = set;
        let compression = args.storage.compression();
        let like = WriterOptions::new(model.shape(), name, source);
        let options = WriterOptions { compression, paths, label_names, resize, ..like };
        let writer = Writer::create(&args.out, options)?;
        let terminal = Terminal::new(false);
        terminal.begin(work, model.kind().name(), Some(count as u64));
        Ok(Self { out: &args.out, writer, kind: model.kind(), paths, terminal })
    }

    /// Copies the items of a part.
    pub fn copy(&mut self, part: &Part<'_>) -> anyhow::Result<()> {
        let row_bytes = part.dataset.image_shape().map_or(1, |shape| shape.len());
        let step = (BLOCK_BYTES / row_bytes).clamp(1, PATH_BLOCK);
        let mut path_source = PathSource::new(part.dataset);
        let mut sequences = SequenceSource::new(part.dataset);
        for (number, block) in part.indices.chunks(step).enumerate() {
            stop_if_asked(&self.terminal)?;
            let pixels = match self.kind {
                ItemKind::Images => part.dataset.read(block)?,
                ItemKind::Sequences | ItemKind::Features => Vec::new(),
            };
            for (i, &index) in block.iter().enumerate() {
                let label = part.labels.as_ref().map(|labels| labels[number * step + i]);
                let path = if self.paths { Some(path_source.get(index)?) } else { None };
                match self.kind {
                    ItemKind::Images => {
                        self.writer.push_image(&pixels[i * row_bytes..(i + 1) * row_bytes], label, path)?;
                    }
                    ItemKind::Sequences | ItemKind::Features => {
                        self.writer.push_sequence(sequences.get(index)?, label, path)?;
                    }
                }
            }
            self.terminal.advance(block.len() as u64);
        }
        Ok(())
    }

    /// Completes the file and says so.
    pub fn finish(self) -> anyhow::Result<()> {
        let Self { out, writer, kind, terminal, .. } = self;
        stop_if_asked(&terminal)?;
        let count = writer.finish()?;
        terminal.end();
        let bytes = std::fs::metadata(out).map_or(0, |m| m.len());
        println!("wrote {}: {} {kind}, {}", out.display(), human::count(count as u64), human::bytes(bytes));
        Ok(())
    }
}

/// A file's name without folder and extension.
fn stem(path: &Path) -> String {
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

/// Sequences of rising indices, read in blocks: a packed file unpacks a whole chunk for every read.
struct SequenceSource<'a> {
    dataset: &'a Dataset,
    dim: usize,
    /// Where each sequence begins, and the end of the last one.
    offsets: Vec<usize>,
    /// The first step of the block.
    start: usize,
    block: Vec<f32>,
}

impl<'a> SequenceSource<'a> {
    fn new(dataset: &'a Dataset) -> Self {
        let mut offsets = vec![0];
        let mut end = 0;
        for length in dataset.sequence_lengths().unwrap_or_default() {
            end += length;
            offsets.push(end);
        }
        let dim = dataset.shape().dim().unwrap_or(1);
        Self { dataset, dim, offsets, start: 0, block: Vec::new() }
    }

    fn get(&mut self, index: usize) -> Result<&[f32], DataError> {
        let (from, to) = (self.offsets[index], self.offsets[index + 1]);
        let held = self.start + self.block.len() / self.dim;
        if from < self.start || to > held {
            let most = BLOCK_BYTES / (self.dim * size_of::<f32>());
            let last = self.offsets.last().copied().unwrap_or(to);
            self.block = self.dataset.read_steps(from..to.max(from + most).min(last))?;
            self.start = from;
        }
        let place = (from - self.start) * self.dim;
        Ok(&self.block[place..place + (to - from) * self.dim])
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
        match label.filter(|label| *label >= 0 && present.contains(label)) {
            Some(label) => labels.push(label),
            None => return Err(Usage(unknown_class(dataset, text, &present, &names)).into()),
        }
    }
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

fn unknown_class(dataset: &Dataset, text: &str, present: &[i64], names: &[String]) -> String {
    let mut known: Vec<i64> = present.iter().copied().filter(|&label| label >= 0).collect();
    known.sort_unstable();
    known.dedup();
    let title = |label: &i64| names.get(*label as usize).cloned().unwrap_or_else(|| label.to_string());
    let mut list = known.iter().take(20).map(title).collect::<Vec<_>>().join(", ");
    if known.len() > 20 {
        list += ", ...";
    }
    format!("{} has no class '{text}'; it has {list}", dataset.path().display())
}
