//! Such a file read back: labelled and failed rows in one order again.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ::hdf5::types::VarLenUnicode;
use dtkc_dataset::Dataset;
use dtkc_item::{ItemShape, Items};
use ndarray::s;

use super::super::Stored;
use super::RUN;
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::{Label, Row, parse_error};

/// Bytes of items that are read together.
const ITEM_RUN: usize = 8 << 20;

pub(in crate::output) fn read(path: &Path, layout: &Layout) -> Result<Rows> {
    // As dtkc-data opens it: one process must not open a file in two ways.
    let file = ::hdf5::File::with_options().with_fapl(|p| p.file_locking(false)).open(path);
    let file = file.map_err(|e| LabelError::wrap(path, e))?;
    let count = |name: &str| file.dataset(name).map(|d| d.size()).map_err(|e| LabelError::wrap(path, e));
    let (labelled, failed) = (count("index")?, count("failed_index")?);
    let dataset = if labelled > 0 { Some(Dataset::open(path)?) } else { None };
    Ok(Rows {
        path: path.to_owned(),
        layout: layout.clone(),
        labelled: Part { count: labelled, next: 0, rows: VecDeque::new() },
        failed: Part { count: failed, next: 0, rows: VecDeque::new() },
        file,
        lengths: dataset.as_ref().and_then(Dataset::sequence_lengths),
        dataset,
    })
}

/// Some rows of a dataset, whatever they are.
fn read_items(dataset: &Dataset, range: Range<usize>) -> Result<Items> {
    Ok(match dataset.shape() {
        ItemShape::Image(shape) => Items::Images { shape, pixels: dataset.read_range(range)? },
        ItemShape::Sequence { dim } => {
            let mut items = Items::empty(ItemShape::Sequence { dim });
            for index in range {
                let values = dataset.read_sequence(index)?;
                let offsets = vec![0, values.len() / dim];
                items.append(&Items::Sequences { dim, values, offsets });
            }
            items
        }
        ItemShape::Features(_) => dataset.items_of(range)?,
    })
}

/// Rows of one kind: how many, how many were read, and those that wait.
struct Part {
    count: usize,
    next: usize,
    rows: VecDeque<Stored>,
}

impl Part {
    fn needs_more(&self) -> bool {
        self.rows.is_empty() && self.next < self.count
    }
}

pub(in crate::output) struct Rows {
    path: PathBuf,
    layout: Layout,
    file: ::hdf5::File,
    dataset: Option<Dataset>,
    /// Steps of each, where these are sequences.
    lengths: Option<Vec<usize>>,
    labelled: Part,
    failed: Part,
}

impl Iterator for Rows {
    type Item = Result<Stored>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fill() {
            (self.labelled.count, self.failed.count) = (0, 0);
            return Some(Err(error));
        }
        let index = |part: &Part| part.rows.front().map(|(row, _)| row.index);
        let from_labelled = match (index(&self.labelled), index(&self.failed)) {
            (Some(a), Some(b)) => a < b,
            (a, _) => a.is_some(),
        };
        let part = if from_labelled { &mut self.labelled } else { &mut self.failed };
        part.rows.pop_front().map(Ok)
    }
}

impl Rows {
    fn fill(&mut self) -> Result<()> {
        if self.labelled.needs_more() {
            let rows = self.read_labelled()?;
            self.labelled.next += rows.len();
            self.labelled.rows.extend(rows);
        }
        if self.failed.needs_more() {
            let rows = self.read_failed().map_err(|e| LabelError::wrap(&self.path, e))?;
            self.failed.next += rows.len();
            self.failed.rows.extend(rows);
        }
        Ok(())
    }

    fn read_labelled(&self) -> Result<Vec<Stored>> {
        let damaged = || LabelError::file(&self.path, "it holds other rows than it says; label this part again");
        let dataset = self.dataset.as_ref().ok_or_else(damaged)?;
        let range = self.next_run();
        let items = read_items(dataset, range.clone())?;
        let paths = dataset.paths(range.clone())?.ok_or_else(damaged)?;
        let labels = self.read_labels(range.start, range.end).map_err(|e| LabelError::wrap(&self.path, e))?;
        if labels.len() != range.len() || paths.len() != range.len() {
            return Err(damaged());
        }
        let rows = labels.into_iter().zip(paths).zip(items.iter());
        Ok(rows
            .map(|(((index, truth, label), path), item)| {
                (Row { index, path, truth, outcome: Ok(label) }, Some(item.to_items(items.shape())))
            })
            .collect())
    }

    /// The next rows whose items together take little memory.
    fn next_run(&self) -> Range<usize> {
        let Part { next, count, .. } = self.labelled;
        let (mut end, mut bytes) = (next, 0);
        while end < count.min(next + RUN) && (end == next || bytes < ITEM_RUN) {
            bytes += match (&self.lengths, self.dataset.as_ref().map(Dataset::shape)) {
                (Some(lengths), Some(shape)) => {
                    lengths.get(end).unwrap_or(&0) * shape.dim().unwrap_or(1) * size_of::<f32>()
                }
                (None, Some(ItemShape::Image(shape))) => shape.len(),
                _ => 0,
            };
            end += 1;
        }
        next..end
    }

    fn read_labels(&self, start: usize, end: usize) -> ::hdf5::Result<Vec<(u64, Option<String>, Label)>> {
        let at = s![start..end];
        let floats = |name: &str| self.file.dataset(name)?.read_slice_1d::<f32, _>(at);
        let ids = |name: &str| self.file.dataset(name)?.read_slice_1d::<i64, _>(at);
        let index = self.file.dataset("index")?.read_slice_1d::<u64, _>(at)?;
        let (cluster, second) = (ids("labels")?, ids("second_cluster")?);
        let (confidence, second_confidence) = (floats("confidence")?, floats("second_confidence")?);
        let margin = floats("margin")?;
        let outlier = self.layout.outlier.map(|_| floats("outlier")).transpose()?;
        let matrix = |name: &str| self.file.dataset(name)?.read_slice_2d::<f32, _>(s![start..end, ..]);
        let probabilities = self.layout.probabilities.then(|| matrix("probabilities")).transpose()?;
        let embedding = (self.layout.embedding > 0).then(|| matrix("embedding")).transpose()?;
        let truth = match self.layout.truth {
            true => Some(self.file.dataset("truth")?.read_slice_1d::<VarLenUnicode, _>(at)?),
            false => None,
        };
        let row = |i: usize| {
            let label = Label {
                cluster: cluster[i] as u32,
                confidence: confidence[i],
                second: second[i] as u32,
                second_confidence: second_confidence[i],
                margin: margin[i],
                outlier: outlier.as_ref().map(|values| values[i]),
                probabilities: probabilities.as_ref().map(|m| m.row(i).to_vec()).unwrap_or_default(),
                embedding: embedding.as_ref().map(|m| m.row(i).to_vec()).unwrap_or_default(),
                size: None,
                print: None,
            };
            let truth = truth.as_ref().map(|t| t[i].to_string()).filter(|t| !t.is_empty());
            (index[i], truth, label)
        };
        Ok((0..end - start).map(row).collect())
    }

    fn read_failed(&self) -> ::hdf5::Result<Vec<Stored>> {
        let at = s![self.failed.next..self.failed.count.min(self.failed.next + RUN)];
        let index = self.file.dataset("failed_index")?.read_slice_1d::<u64, _>(at)?;
        let path = self.file.dataset("failed_path")?.read_slice_1d::<VarLenUnicode, _>(at)?;
        let error = self.file.dataset("failed_error")?.read_slice_1d::<VarLenUnicode, _>(at)?;
        let row = |((index, path), error): ((&u64, &VarLenUnicode), &VarLenUnicode)| {
            let outcome = Err(parse_error(error.as_str()));
            (Row { index: *index, path: path.to_string(), truth: None, outcome }, None)
        };
        Ok(index.iter().zip(&path).zip(&error).map(row).collect())
    }
}
