//! An import from its flags to its summary.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dtkc_dataset::{Compression, Writer, WriterOptions};
use dtkc_formats::detect::{self, Format, Input};
use dtkc_formats::open::{self, ReadOptions};
use dtkc_formats::sequences::missing::{Missing, Unfit};
use dtkc_formats::{Importer, LabelsFrom};
use dtkc_item::ItemError;
use dtkc_observe::Observer;
use dtkc_source::{PassedOver, Reason, remote};

use super::ImportError;
use super::classes::{Fate, Known, Relabel};
use super::downloads::Downloads;
use super::output;
use super::pipeline::{self, Item, Pipeline, Ready};
use super::shape::Wanted;
use super::skipped::{self, Skipped};
use super::summary::{Summary, class_counts};
use super::target::Target;

/// Everything that can be said about an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The dataset file to write.
    pub out: PathBuf,
    /// The dataset's name; by default that of the first source.
    pub name: Option<String>,
    /// Where it came from; by default the names of the sources.
    pub source: Option<String>,
    /// The format of every source, where the content does not tell.
    pub format: Option<Format>,
    /// How to read.
    pub read: ReadOptions,
    /// Size and colour.
    pub wanted: Wanted,
    /// At most so many items.
    pub limit: Option<u64>,
    /// Only these classes, by name or number.
    pub classes: Vec<String>,
    /// What is known about the classes beside what the files say.
    pub known: Known,
    /// Fail at the first image that cannot be imported instead of skipping it.
    pub strict: bool,
    /// What becomes of sequences with values that are missing.
    pub missing: Missing,
    /// How values are stored.
    pub compression: Compression,
    /// Replace an output that is there already.
    pub force: bool,
}

impl ImportOptions {
    /// An import with nothing said but where to.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            out: out.into(),
            name: None,
            source: None,
            format: None,
            read: ReadOptions::default(),
            wanted: Wanted::default(),
            limit: None,
            classes: Vec::new(),
            known: Known::default(),
            strict: false,
            missing: Missing::default(),
            compression: Compression::None,
            force: false,
        }
    }
}

/// Imports sources into one dataset file, which appears whole or not at all. The observer is told of every item, and
/// asked before each whether to stop.
pub fn import(paths: &[PathBuf], options: &ImportOptions, observer: &dyn Observer) -> Result<Summary, ImportError> {
    let imported = try_import(paths, options, observer);
    match (imported, remote::trouble()) {
        (Err(_), Some(_)) if observer.stop() => Err(ImportError::Interrupted("nothing was written".into())),
        (_, Some(trouble)) => Err(trouble.into()),
        (imported, None) => imported,
    }
}

fn try_import(paths: &[PathBuf], options: &ImportOptions, observer: &dyn Observer) -> Result<Summary, ImportError> {
    let started = Instant::now();
    output::check_place(&options.out)?;
    output::check_given(paths, &options.out, options.force)?;
    let downloads = Downloads::bring(output::expand(paths)?, options, observer)?;
    import_files(paths, &downloads.paths, options, observer, started).map_err(|error| downloads.as_given(error))
}

/// Imports what is on the disk, or is read where it is; `paths` are the sources as given.
fn import_files(
    paths: &[PathBuf],
    expanded: &[PathBuf],
    options: &ImportOptions,
    observer: &dyn Observer,
    started: Instant,
) -> Result<Summary, ImportError> {
    let inputs = detect::detect(expanded, options.format, options.read.limits)?;
    output::check_found(expanded, &inputs, &options.out)?;
    let name = options.name.clone().unwrap_or_else(|| name_of(&inputs));
    let mut read = ReadOptions { hdf5: Some(super::foreign::open), ..options.read.clone() };
    if options.format == Some(Format::Coil) {
        read.labels = LabelsFrom::Coil;
    }
    let origin = options.source.clone().unwrap_or_else(|| origin_of(&inputs));
    let mut sources = open::open(inputs, &read)?;
    let mut notes: Vec<String> = sources.iter().flat_map(|s| s.describe().notes.clone()).collect();
    let descriptions: Vec<_> = sources.iter().map(|s| s.describe()).collect();
    let relabel = Relabel::plan(&descriptions, &options.classes, &options.known)?;
    notes.extend(relabel.notes.iter().cloned());
    let target = Target::choose(&mut sources, options, &mut notes)?;
    let passed = passed_over(&sources);
    let writer = WriterOptions {
        compression: options.compression,
        paths: sources.iter().any(|s| s.describe().paths),
        label_names: relabel.names.clone(),
        resize: target.resize(),
        ..WriterOptions::new(target.shape(), &name, origin)
    };
    let mut run = Run {
        paths: writer.paths,
        writer: Writer::create(&options.out, writer)?,
        relabel: &relabel,
        options,
        observer,
        several: sources.len() > 1,
        count: 0,
        counts: BTreeMap::new(),
        skipped: Vec::new(),
    };
    let kind = target.shape().kind().name();
    let formats = run.all(&mut sources, &target)?;
    if run.count == 0 {
        return Err(run.nothing(paths, kind));
    }
    run.stop_if_asked()?;
    let Run { writer, count, counts, skipped, .. } = run;
    writer.finish()?;
    let skipped_file = skipped::write(&options.out, &skipped)?;
    let passed_over_file = skipped::write_passed(&options.out, &passed)?;
    let mut passed_over = PassedOver::default();
    passed.iter().for_each(|(_, reason)| passed_over.add(*reason));
    Ok(Summary {
        out: options.out.clone(),
        name,
        kind,
        formats,
        count,
        shape: target.shape().image(),
        dim: target.shape().dim(),
        unlabelled: if relabel.labelled { count - counts.values().sum::<u64>() } else { 0 },
        classes: class_counts(&counts, relabel.names.as_deref()),
        skipped: skipped.len() as u64,
        skipped_file,
        passed_over: passed_over.counts(),
        passed_over_file,
        notes,
        bytes: std::fs::metadata(&options.out).map_or(0, |m| m.len()),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// What was passed over, named as records are.
fn passed_over(sources: &[Box<dyn Importer>]) -> Vec<(String, Reason)> {
    let mut passed = Vec::new();
    for source in sources {
        let prefix = source.describe().origin.as_ref().filter(|_| sources.len() > 1);
        let named = |name: &str| prefix.map_or_else(|| name.to_owned(), |prefix| format!("{prefix}/{name}"));
        passed.extend(source.passed_over().iter().map(|(name, reason)| (named(name), *reason)));
    }
    passed
}

/// An import under way.
struct Run<'a> {
    writer: Writer,
    relabel: &'a Relabel,
    options: &'a ImportOptions,
    observer: &'a dyn Observer,
    paths: bool,
    several: bool,
    count: u64,
    counts: BTreeMap<i64, u64>,
    skipped: Vec<Skipped>,
}

impl Run<'_> {
    /// Sends every source through; returns the formats.
    fn all(&mut self, sources: &mut [Box<dyn Importer>], target: &Target) -> Result<Vec<&'static str>, ImportError> {
        let counts: Option<Vec<u64>> = sources.iter().map(|s| s.describe().count).collect();
        let total = counts.map(|c| c.iter().sum::<u64>()).map(|n| self.options.limit.map_or(n, |limit| n.min(limit)));
        // With classes left out the number is not known beforehand.
        let total = total.filter(|_| self.options.classes.is_empty());
        self.observer.begin("importing", target.shape().kind().name(), total);
        let mut formats = Vec::new();
        for (index, source) in sources.iter_mut().enumerate() {
            if self.is_full() {
                break;
            }
            let format = source.describe().format;
            if !formats.contains(&format) {
                formats.push(format);
            }
            self.one(source.as_mut(), index, target)?;
        }
        self.observer.end();
        Ok(formats)
    }

    fn one(&mut self, source: &mut dyn Importer, index: usize, target: &Target) -> Result<(), ImportError> {
        let format = source.describe().format;
        // Below several folders the same name can occur twice.
        let prefix = source.describe().origin.clone().filter(|_| self.several);
        let (relabel, limits) = (self.relabel, self.options.read.limits);
        let origin = source.describe().origin.clone().unwrap_or_else(|| format.to_owned());
        let wanted = |record: &super::Record| relabel.fate(index, record.label) != Fate::Leave;
        let mut number = 0u64;
        let take = &mut |item: Item| {
            self.stop_if_asked()?;
            self.observer.advance(1);
            let fate = relabel.fate(index, item.label);
            number += 1;
            if fate == Fate::Leave {
                return Ok(ControlFlow::Continue(()));
            }
            let item = self.settled(item, *target, |reason| {
                ImportError::source(&origin, format!("in sequence {number}, counted from 1, {reason}"))
            })?;
            let item = match &prefix {
                Some(prefix) => Item { path: item.path.map(|p| format!("{prefix}/{p}")), ..item },
                None => item,
            };
            self.take(item, fate, || format!("{origin}/{}", number - 1))?;
            if !self.skipped.is_empty() {
                self.observer.note(format_args!("{} skipped", self.skipped.len()));
            }
            Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        match *target {
            Target::Images { spec, .. } => {
                let workers = std::thread::available_parallelism().map_or(1, usize::from);
                Pipeline { spec, limits, workers }.run(source, &wanted, take)
            }
            // All of them, so that the numbers in messages are those of the source.
            Target::Sequences(_) => pipeline::as_they_are(source, &|_| true, take),
        }
    }

    /// An item after what is missing in it was treated; `refused` makes an error of the reason why it cannot be.
    fn settled(
        &self,
        mut item: Item,
        target: Target,
        refused: impl FnOnce(String) -> ImportError,
    ) -> Result<Item, ImportError> {
        let (Ok(Ready::Sequence(steps)), Target::Sequences(dim)) = (&mut item.content, target) else { return Ok(item) };
        match self.options.missing.settle(steps, dim) {
            Ok(()) => Ok(item),
            Err(Unfit::Skip(error)) => Ok(Item { content: Err(error), ..item }),
            Err(Unfit::Refuse(reason)) => Err(refused(reason)),
        }
    }

    fn take(&mut self, item: Item, fate: Fate, unnamed: impl Fn() -> String) -> Result<(), ImportError> {
        let path = item.path.or_else(|| self.paths.then(&unnamed));
        let ready = match (item.content, fate) {
            (Ok(_), Fate::NoClass) => Err(ItemError::new("no_class", "it lies in no class folder")),
            (content, _) => content,
        };
        match ready {
            Ok(ready) => {
                let label = if let Fate::Take(label) = fate { label } else { None };
                match ready {
                    Ready::Pixels(pixels) => self.writer.push_image(&pixels, label, path.as_deref())?,
                    Ready::Sequence(steps) => self.writer.push_sequence(&steps, label, path.as_deref())?,
                }
                self.count += 1;
                if let Some(label) = label.filter(|&label| label >= 0) {
                    *self.counts.entry(label).or_default() += 1;
                }
                Ok(())
            }
            Err(error) => {
                let path = path.unwrap_or_else(unnamed);
                if self.options.strict {
                    return Err(ImportError::source(path, format!("{error} (--strict)")));
                }
                self.skipped.push(Skipped { path, error });
                Ok(())
            }
        }
    }

    fn stop_if_asked(&self) -> Result<(), ImportError> {
        match self.observer.stop() {
            true => Err(ImportError::Interrupted("nothing was written".into())),
            false => Ok(()),
        }
    }

    fn is_full(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.count >= limit)
    }

    /// Why nothing came out.
    fn nothing(&self, paths: &[PathBuf], kind: &str) -> ImportError {
        let what: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        let reason = match self.skipped.first() {
            Some(first) if what == [first.path.clone()] => first.error.to_string(),
            Some(first) if self.skipped.len() == 1 => {
                format!("the only one of the {kind} cannot be imported: {}: {}", first.path, first.error)
            }
            Some(first) => {
                format!(
                    "none of {} {kind} can be imported, the first because: {}: {}",
                    self.skipped.len(),
                    first.path,
                    first.error
                )
            }
            None => "there is nothing to import".to_owned(),
        };
        ImportError::source(what.join(", "), reason)
    }
}

/// A name for the dataset: that of the first source without its extension; IDX files are all named
/// alike, so their folder gives the name.
fn name_of(inputs: &[Input]) -> String {
    let Some(first) = inputs.first() else { return "dataset".to_owned() };
    let text = |os: Option<&std::ffi::OsStr>| os.map(|s| s.to_string_lossy().into_owned());
    let name = match first {
        Input::Folder(path, _) => text(std::path::absolute(path).ok().as_deref().and_then(Path::file_name)),
        Input::File(path, Format::Idx | Format::Npy | Format::Image | Format::CsvEach | Format::Wav) => {
            text(std::path::absolute(path).ok().as_deref().and_then(Path::parent).and_then(Path::file_name))
        }
        Input::File(path, _) => text(path.file_name()).map(|n| n.split('.').next().unwrap_or(&n).to_owned()),
    };
    name.filter(|n| !n.is_empty()).unwrap_or_else(|| "dataset".to_owned())
}

/// The sources by name, for people to read; the first few where there are many.
fn origin_of(inputs: &[Input]) -> String {
    let name = |i: &Input| i.path().file_name().unwrap_or(i.path().as_os_str()).to_string_lossy().into_owned();
    let shown: Vec<String> = inputs.iter().take(4).map(name).collect();
    let more = inputs.len().saturating_sub(shown.len());
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}
