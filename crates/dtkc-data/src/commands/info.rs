//! `dtkc-data info`: what a dataset holds and how it is stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use dtkc_cli::Terminal;
use dtkc_dataset::{Dataset, Storage};
use dtkc_human as human;
use dtkc_item::{ImageShape, ItemKind, Resize};
use dtkc_observe::Observer;
use serde::Serialize;

use super::scan::{self, Moments, ValueRange};

/// Flags of `info`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset file
    file: PathBuf,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Do not read the values: no value range, no fingerprint
    #[arg(long)]
    quick: bool,
}

const EXAMPLES: &str = "\
Examples:
  dtkc-data info mnist.h5
  dtkc-data info mnist.h5 --json | jq '.classes[] | {name, count}'";

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    let dataset = Dataset::open(&args.file)?;
    let report = Report::of(&dataset, args.quick)?;
    let mut text = if args.json { serde_json::to_string_pretty(&report)? } else { report.to_text() };
    if args.json {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

#[derive(Debug, Serialize)]
struct Report {
    path: PathBuf,
    kind: ItemKind,
    name: String,
    source: String,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resize: Option<Resize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<SequenceShape>,
    storage: Storage,
    has_paths: bool,
    /// `null` where the set has no labels.
    classes: Option<Vec<Class>>,
    /// Items of a labelled set whose class is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlabelled: Option<usize>,
    /// `null` with `--quick`.
    values: Option<ValueRange>,
    /// `null` with `--quick`.
    fingerprint: Option<String>,
}

#[derive(Debug, Serialize)]
struct SequenceShape {
    dim: usize,
    shortest: usize,
    /// The lower one of the two in the middle.
    median: usize,
    longest: usize,
    steps: usize,
}

impl SequenceShape {
    fn of((mut lengths, dim): (Vec<usize>, usize)) -> Self {
        lengths.sort_unstable();
        let at = |place: usize| lengths.get(place).copied().unwrap_or(0);
        let last = lengths.len().saturating_sub(1);
        Self { dim, shortest: at(0), median: at(last / 2), longest: at(last), steps: lengths.iter().sum() }
    }
}

#[derive(Debug, Serialize)]
struct Class {
    label: i64,
    name: Option<String>,
    count: usize,
}

impl Report {
    fn of(dataset: &Dataset, quick: bool) -> anyhow::Result<Self> {
        let (mut values, mut fingerprint) = (None, None);
        if !quick {
            let terminal = Terminal::new(false);
            match dataset.sequence_lengths() {
                Some(lengths) => terminal.begin("reading", "steps", Some(lengths.iter().sum::<usize>() as u64)),
                None => terminal.begin("reading", dataset.kind().name(), Some(dataset.len() as u64)),
            }
            values = Some(scan::value_range(dataset, &terminal)?);
            terminal.end();
            fingerprint = Some(dataset.fingerprint()?);
        }
        let sequence = dataset.sequence_lengths().zip(dataset.shape().dim()).map(SequenceShape::of);
        let (classes, unlabelled) = classes(dataset)?;
        Ok(Self {
            path: dataset.path().to_owned(),
            kind: dataset.kind(),
            name: dataset.name().to_owned(),
            source: dataset.source().to_owned(),
            count: dataset.len(),
            image: dataset.image_shape(),
            resize: dataset.resize(),
            sequence,
            storage: dataset.storage().clone(),
            has_paths: dataset.has_paths(),
            classes,
            unlabelled: Some(unlabelled).filter(|&count| count > 0),
            values,
            fingerprint,
        })
    }

    fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.path.display(), self.headline());
        let mut line = |key: &str, value: String| {
            let _ = writeln!(text, "  {key:<12} {value}");
        };
        line("name", self.name.clone());
        line("source", if self.source.is_empty() { "not said".into() } else { self.source.clone() });
        line("values", format!("{} {:?}{}", self.storage.dtype, self.storage.shape, self.range()));
        if let Some(s) = &self.sequence {
            let all = human::count(s.steps as u64);
            line("lengths", format!("{} to {} steps, median {}, {all} in all", s.shortest, s.longest, s.median));
        }
        if let Some(missing) = self.values.as_ref().and_then(|values| values.missing) {
            let text = if missing == 0 { "none".into() } else { format!("{} values", human::count(missing)) };
            line("missing", text);
        }
        line("stored", self.storage_text());
        line("file", human::bytes(self.storage.file_bytes));
        if let Some(resize) = self.resize {
            line("resize", resize.to_string());
        }
        line("paths", if self.has_paths { "yes" } else { "no" }.into());
        if let Some(fingerprint) = &self.fingerprint {
            line("fingerprint", fingerprint.clone());
        }
        if let Some(values) = self.values.as_ref().filter(|values| !values.dimensions.is_empty()) {
            line("dimensions", values.dimensions.len().to_string());
            text.push_str(&dimension_table(&values.dimensions));
        }
        let mut line = |key: &str, value: String| {
            let _ = writeln!(text, "  {key:<12} {value}");
        };
        match &self.classes {
            Some(classes) => {
                line("classes", classes.len().to_string());
                text.push_str(&self.class_table(classes));
            }
            None => line("labels", "none".into()),
        }
        if let Some(count) = self.unlabelled {
            let _ = writeln!(text, "  {:<12} {}", "unlabelled", human::count(count as u64));
        }
        text
    }

    fn headline(&self) -> String {
        let count = human::count(self.count as u64);
        match (&self.image, &self.sequence) {
            (Some(shape), _) => {
                let color = if shape.channels == 1 { "gray" } else { "RGB" };
                format!("{count} {color} images of {}x{} pixels", shape.height, shape.width)
            }
            (_, Some(s)) => {
                format!("{count} sequences of {} values, {} to {} steps long", s.dim, s.shortest, s.longest)
            }
            _ => format!("{count} {}", self.kind),
        }
    }

    fn range(&self) -> String {
        match &self.values {
            Some(v) => format!(
                ", {} to {}, mean {}, deviation {}",
                readable(v.min),
                readable(v.max),
                readable(v.mean),
                readable(v.deviation)
            ),
            None => String::new(),
        }
    }

    fn storage_text(&self) -> String {
        let storage = &self.storage;
        let chunks = match &storage.chunk {
            Some(chunk) => {
                let share = storage.value_bytes as f64 / storage.shape[0].max(1) as f64;
                let bytes = human::bytes((share * chunk[0] as f64) as u64);
                let unit = if self.kind == ItemKind::Images { "images" } else { "steps" };
                format!("chunks of {} {unit} ({bytes})", human::count(chunk[0] as u64))
            }
            None => "in one piece".into(),
        };
        if storage.filters.is_empty() {
            return format!("{chunks}, not compressed");
        }
        let share = 100.0 * storage.stored_bytes as f64 / storage.value_bytes.max(1) as f64;
        format!("{chunks}, {}: {share:.0} % of {}", storage.filters.join(" + "), human::bytes(storage.value_bytes))
    }

    fn class_table(&self, classes: &[Class]) -> String {
        const BAR: usize = 30;
        let width = classes.iter().map(|c| c.title().chars().count()).max().unwrap_or(0).min(40);
        let most = classes.iter().map(|c| c.count).max().unwrap_or(1).max(1);
        let digits = human::count(most as u64).len();
        let mut table = String::new();
        for class in classes {
            let share = 100.0 * class.count as f64 / self.count as f64;
            let bar = "#".repeat((class.count * BAR).div_ceil(most));
            let (title, count) = (class.title(), human::count(class.count as u64));
            let _ = writeln!(table, "    {title:<width$}  {count:>digits$} {share:>5.1} % {bar}");
        }
        table
    }
}

/// A line for each of the first dimensions.
fn dimension_table(dimensions: &[Moments]) -> String {
    const LISTED: usize = 20;
    let mut table = String::new();
    for (number, d) in dimensions.iter().take(LISTED).enumerate() {
        let [min, max, mean, deviation] = [d.min, d.max, d.mean, d.deviation].map(readable);
        let _ = writeln!(table, "    {:<3} {min} to {max}, mean {mean}, deviation {deviation}", number + 1);
    }
    if dimensions.len() > LISTED {
        let _ = writeln!(table, "    and {} more (--json has all)", dimensions.len() - LISTED);
    }
    table
}

/// Whole numbers as they are, others with four places.
fn readable(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 { format!("{value}") } else { format!("{value:.4}") }
}

impl Class {
    fn title(&self) -> String {
        match &self.name {
            Some(name) if *name != self.label.to_string() => format!("{} {name}", self.label),
            _ => self.label.to_string(),
        }
    }
}

/// Classes by label, and the number of items of none. A named class without items is listed, too.
fn classes(dataset: &Dataset) -> anyhow::Result<(Option<Vec<Class>>, usize)> {
    let Some(labels) = dataset.labels()? else { return Ok((None, 0)) };
    let names = dataset.label_names()?.unwrap_or_default();
    let mut counts: BTreeMap<i64, usize> = (0..names.len() as i64).map(|label| (label, 0)).collect();
    let (mut labelled, all) = (0, labels.len());
    for label in labels.into_iter().filter(|&label| label >= 0) {
        *counts.entry(label).or_default() += 1;
        labelled += 1;
    }
    let class = |(label, count)| Class { label, name: names.get(label as usize).cloned(), count };
    Ok((Some(counts.into_iter().map(class).collect()), all - labelled))
}
