//! Parquet files with an image in every row: one file, or several shards that are one dataset.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_image::Limits;
use dtkc_item::ItemError;
use dtkc_source::BodyReader;
use dtkc_source::classes::FolderRule;
use dtkc_source::parquet::{DAMAGED, ImageRow, ImageRows, LabelColumn, RowColumns, Wants};

use super::ReadError;
use super::images::sample;
use super::labels::LabelsFrom;
use super::open::ReadOptions;
use super::record::{Classes, Content, ContentForm, Description, Importer, Record, Sample, Sink};
use super::sequences::names::Names;

/// Images of a row group that are looked at for their size; pages hold many.
const SAMPLES_OF_GROUP: usize = 16;

/// The columns as the flags name them.
pub fn columns(options: &ReadOptions) -> RowColumns {
    let (columns, keys) = (&options.columns, &options.keys);
    RowColumns {
        image: columns.image.clone().or_else(|| keys.images.clone()),
        name: columns.id.clone(),
        label: columns.label.clone().or_else(|| keys.labels.clone()),
    }
}

/// Whether a file holds images. Where sequences were asked for it does not.
pub fn are_images(path: &Path, options: &ReadOptions) -> Result<bool, ReadError> {
    if options.sequences || !options.columns.values.is_empty() {
        return Ok(false);
    }
    Ok(ImageRows::open(path, &columns(options))?.is_some())
}

/// Shards of one dataset.
pub struct RowImporter {
    shards: Vec<PathBuf>,
    columns: RowColumns,
    labels: Labels,
    limits: Limits,
    description: Description,
}

/// Where the labels of rows come from.
enum Labels {
    None,
    /// Numbers that are as they are, or have names.
    Numbers,
    /// -1 and 1, which are two classes.
    Signs,
    /// Words in a column.
    Words(Names),
    /// The folders in the names of images: the rule of each shard.
    Folders(Vec<FolderRule>, Names),
}

impl RowImporter {
    /// Opens the shards one after the other: they must have the same classes. Classes that are not named by the files are
    /// collected by reading that column.
    pub fn open(shards: Vec<PathBuf>, options: &ReadOptions) -> Result<Self, ReadError> {
        let columns = columns(options);
        let (mut count, mut first, mut notes) = (0u64, None, Vec::new());
        for path in &shards {
            let images = ImageRows::expect(path, &columns)?;
            count = count.saturating_add(images.rows());
            let label = images.plan().label.clone();
            match &first {
                None => {
                    if label.is_none()
                        && options.labels == LabelsFrom::Detect
                        && let Some(others) = images.others()
                    {
                        notes.push(format!("no labels were found; if a column holds them (there are {others}), name it with --label-column"));
                    }
                    first = Some((path, label));
                }
                Some((other, known)) => check_alike(path, label.as_ref(), other, known.as_ref())?,
            }
        }
        let label = first.and_then(|(_, label)| label);
        let (classes, labels) = match (options.labels, label) {
            (LabelsFrom::Folders, _) => folders(&shards, &columns)?,
            (LabelsFrom::Coil, _) | (_, None) => (Classes::None, Labels::None),
            (_, Some(label)) => collect(&shards, &columns, label, &mut notes)?,
        };
        let one = if let [only] = &shards[..] { Some(file_name(only)) } else { None };
        let description = Description {
            count: Some(count),
            classes,
            paths: true,
            origin: one,
            notes,
            ..Description::new("Parquet of images", ContentForm::Encoded)
        };
        Ok(Self { shards, columns, labels, limits: options.limits, description })
    }
}

/// Refuses a shard whose classes are not those of the first one.
fn check_alike(
    path: &Path,
    label: Option<&LabelColumn>,
    other: &Path,
    known: Option<&LabelColumn>,
) -> Result<(), ReadError> {
    let other = file_name(other);
    let reason = match (label, known) {
        (None, None) => return Ok(()),
        (Some(label), Some(known)) if label.words != known.words => {
            format!("its column {} holds other values than that of {other}", label.column)
        }
        (Some(label), Some(known)) => match (&label.names, &known.names) {
            (here, there) if here == there => return Ok(()),
            (Some(here), Some(there)) => {
                let place = here.iter().zip(there).position(|(a, b)| a != b).unwrap_or(here.len().min(there.len()));
                let name = |names: &[String]| names.get(place).map_or("nothing".to_owned(), |name| format!("'{name}'"));
                format!("class {place} is {} here and {} in {other}", name(here), name(there))
            }
            (Some(_), None) => format!("its classes have names and those of {other} have none"),
            (None, _) => format!("its classes have no names and those of {other} have"),
        },
        (None, Some(known)) => format!("it has no column {} as {other} has", known.column),
        (Some(label), None) => format!("it has a column {}, which {other} has not", label.column),
    };
    Err(ReadError::file(path, format!("{reason}; import shards of one dataset, or each by itself")))
}

/// Reads a column of labels for its classes, unless the files name these.
fn collect(
    shards: &[PathBuf],
    columns: &RowColumns,
    label: LabelColumn,
    notes: &mut Vec<String>,
) -> Result<(Classes, Labels), ReadError> {
    if let Some(names) = label.names {
        return Ok((Classes::Names(names), Labels::Numbers));
    }
    let (mut numbers, mut words) = (BTreeSet::new(), Names::default());
    for path in shards {
        learn(path, columns, Wants { labels: true, ..Wants::default() }, &mut |row| {
            match row.label.parse::<i64>() {
                Ok(number) if !label.words && numbers.len() < Names::MAX => drop(numbers.insert(number)),
                _ if label.words => words.add(&row.label)?,
                _ => {}
            }
            Ok(())
        })?;
    }
    if label.words {
        let classes = words.settle(true);
        return Ok((classes, Labels::Words(words)));
    }
    if numbers.iter().copied().eq([-1, 1]) {
        notes.push(super::arrays::TWO_SIGNS.to_owned());
        return Ok((Classes::Names(vec!["-1".into(), "1".into()]), Labels::Signs));
    }
    numbers.retain(|number| *number >= 0);
    Ok(if numbers.is_empty() { (Classes::None, Labels::None) } else { (Classes::Numbers(numbers), Labels::Numbers) })
}

/// The classes that folders in the names stand for.
fn folders(shards: &[PathBuf], columns: &RowColumns) -> Result<(Classes, Labels), ReadError> {
    let wants = Wants { names: true, ..Wants::default() };
    let (mut rules, mut names) = (Vec::new(), Names::default());
    for path in shards {
        let mut rule = FolderRule::default();
        learn(path, columns, wants, &mut |row| {
            rule.add(&row.name);
            Ok(())
        })?;
        learn(path, columns, wants, &mut |row| names.add(rule.class_of(&row.name).unwrap_or_default()))?;
        rules.push(rule);
    }
    let classes = names.settle(true);
    Ok((classes, Labels::Folders(rules, names)))
}

/// Shows every row of a shard to who only wants to know something about all.
fn learn(
    path: &Path,
    columns: &RowColumns,
    wants: Wants,
    seen: &mut dyn FnMut(ImageRow) -> Result<(), String>,
) -> Result<(), ReadError> {
    let all = each(path, columns, wants, &mut |row| match seen(row) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(reason) => Err(ReadError::file(path, reason)),
    });
    all.map(drop)
}

/// Shows every row of a shard.
fn each(
    path: &Path,
    columns: &RowColumns,
    wants: Wants,
    seen: &mut dyn FnMut(ImageRow) -> Result<ControlFlow<()>, ReadError>,
) -> Result<ControlFlow<()>, ReadError> {
    let mut failed = None;
    let flow = ImageRows::expect(path, columns)?.each(wants, &mut |row| {
        seen(row).unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        })
    })?;
    failed.map_or(Ok(flow), Err)
}

impl Labels {
    /// The label of a row of a shard; an error where a number has no name.
    fn of(&self, shard: usize, row: &ImageRow, classes: &Classes) -> Result<Option<i64>, ItemError> {
        let number = || row.label.parse::<i64>().unwrap_or(-1).max(-1);
        Ok(match (self, classes) {
            (Self::None, _) => None,
            (Self::Numbers, Classes::Names(names)) if number() >= names.len() as i64 => {
                let text = format!("its label is {} and the file names {} classes", number(), names.len());
                return Err(ItemError::new("unknown_class", text));
            }
            (Self::Numbers, _) => Some(number()),
            (Self::Signs, _) => Some(match number() {
                1 => 1,
                _ if row.label.is_empty() => -1,
                _ => 0,
            }),
            (Self::Words(names), _) => Some(names.label(&row.label)),
            // As in a folder, an image beside the class folders has no class.
            (Self::Folders(rules, names), _) => {
                rules.get(shard).and_then(|rule| rule.class_of(&row.name)).map(|class| names.label(class))
            }
        })
    }
}

impl Importer for RowImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn samples(&mut self, wanted: usize) -> Result<Vec<Sample>, ReadError> {
        let shards = self.shards.len().min(wanted.max(1));
        let each = wanted.div_ceil(shards.max(1));
        let mut samples = Vec::new();
        for place in 0..shards {
            let path = &self.shards[place * self.shards.len() / shards];
            let images = ImageRows::expect(path, &self.columns)?;
            let mut reader = BodyReader::new(self.limits.max_bytes);
            let bodies = images.spread(each.div_ceil(SAMPLES_OF_GROUP), SAMPLES_OF_GROUP.min(each));
            let looked = bodies.into_iter().filter_map(|mut body| sample(&reader.read(&mut body).ok()?, &self.limits));
            samples.extend(looked);
        }
        samples.truncate(wanted);
        Ok(samples)
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let Self { shards, columns, labels, limits, description } = self;
        let wants = Wants { names: true, labels: !matches!(labels, Labels::None | Labels::Folders(..)) };
        let mut reader = BodyReader::new(limits.max_bytes);
        for (number, path) in shards.iter().enumerate() {
            let prefix = if shards.len() > 1 { format!("{}/", file_name(path)) } else { String::new() };
            let flow = each(path, columns, wants, &mut |mut row| {
                let label = labels.of(number, &row, &description.classes);
                let content = match (reader.read(&mut row.body), &label) {
                    // A part of a dataset is not what was asked for.
                    (Err(error), _) if error.code == DAMAGED => return Err(ReadError::file(path, error)),
                    (Err(error), _) => Content::Unreadable(error),
                    (_, Err(error)) => Content::Unreadable(error.clone()),
                    (Ok(bytes), Ok(_)) => Content::Encoded(bytes),
                };
                // One that cannot be used still has to get where that is told.
                let label = label.unwrap_or(Some(-1));
                Ok(sink(Record { content, label, path: Some(format!("{prefix}{}", row.name)) }))
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
