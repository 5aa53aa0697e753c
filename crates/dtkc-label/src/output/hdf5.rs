//! A dataset in schema 1: the images or sequences with their clusters as labels, ready to train on or to compare.
//!
//! Beside what the schema asks for: `/index` u64, `/confidence`, `/second_confidence`, `/margin` f32 and
//! `/second_cluster` i64, all `[n]`; where asked for `/unsure` u8 `[n]`, `/truth` str `[n]`, `/probabilities` f32
//! `[n, k]` and `/embedding` f32 `[n, e]`. Items that failed are no part of the set: they are in
//! `/failed_index`, `/failed_path` and `/failed_error`.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ::hdf5::types::{StringError, VarLenUnicode};
use dtkc_dataset::{Writer, WriterOptions, h5};
use dtkc_files::Pending;
use dtkc_item::{ItemRef, Items};
use ndarray::{ArrayView1, ArrayView2, s};

use super::{Held, RowWriter};
use crate::error::{LabelError, Result};
use crate::layout::Layout;
use crate::row::{Label, Row, error_text};

mod read;

pub(super) use read::read;

/// Rows that are moved to the file together.
const RUN: usize = 4096;

pub(super) struct Hdf5Writer {
    path: PathBuf,
    /// The name that the file will have.
    target: PathBuf,
    layout: Layout,
    of: Held,
    /// Exists from the first labelled item on: a set of nothing is no set.
    items: Option<Writer>,
    /// The schema's own parts are streamed to the file first; the rest waits here, in the journal's form.
    labelled: Spool,
    failed: Spool,
}

impl Hdf5Writer {
    pub(super) fn new(pending: &Pending, layout: &Layout, of: Held) -> Result<Self> {
        let (path, target) = (pending.path().to_owned(), pending.target().to_owned());
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (labelled, failed) = (Spool::new(folder)?, Spool::new(folder)?);
        Ok(Self { path, target, layout: layout.clone(), of, items: None, labelled, failed })
    }

    fn start(&self) -> Result<Writer> {
        let name = format!("labelled {}", self.of.shape.kind());
        let mut options = WriterOptions::new(self.of.shape, name, "dtkc-label");
        options.resize = self.of.resize;
        options.paths = true;
        options.label_names = Some(self.layout.names.clone());
        Ok(Writer::at(&self.path, &self.target, options)?)
    }

    fn push(&mut self, row: &Row, label: &Label, item: ItemRef<'_>) -> Result<()> {
        let writer = match self.items.take() {
            Some(writer) => writer,
            None => self.start()?,
        };
        let writer = self.items.insert(writer);
        let cluster = Some(i64::from(label.cluster));
        match item {
            ItemRef::Pixels(pixels) => writer.push_image(pixels, cluster, Some(&row.path))?,
            ItemRef::Steps(steps) => writer.push_sequence(steps, cluster, Some(&row.path))?,
            ItemRef::Features(vectors) => writer.push_features(vectors, cluster, Some(&row.path))?,
        }
        // The path is in the file already, and prints do not go there; what is left is small.
        let outcome = Ok(Label { print: None, ..label.clone() });
        self.labelled.push(&Row { path: String::new(), outcome, ..row.clone() })
    }
}

impl RowWriter for Hdf5Writer {
    fn write(&mut self, rows: &[Row], items: &Items) -> Result<()> {
        let mut items = items.iter();
        for row in rows {
            match (&row.outcome, row.outcome.is_ok().then(|| items.next()).flatten()) {
                (Ok(label), Some(item)) => self.push(row, label, item)?,
                (Ok(_), None) => return Err(LabelError::Internal("a labelled row came without its item")),
                (Err(_), _) => self.failed.push(row)?,
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let file = match self.items.take() {
            Some(items) => {
                items.finish()?;
                h5::extend(&self.path)
            }
            None => h5::create(&self.path),
        };
        let written = file.and_then(|file| {
            write_columns(&file, &mut self.labelled, &self.layout)?;
            write_failures(&file, &mut self.failed)?;
            file.flush()?;
            // What the library has put off until now must not be lost: closing says so, dropping would not.
            file.close()
        });
        written.map_err(|e| LabelError::wrap(&self.target, e))
    }
}

fn write_columns(file: &::hdf5::File, rows: &mut Spool, layout: &Layout) -> ::hdf5::Result<()> {
    let n = rows.count;
    let vector = |name: &str| file.new_dataset::<f32>().shape(n).create(name);
    let index = file.new_dataset::<u64>().shape(n).create("index")?;
    let (confidence, second_confidence, margin) =
        (vector("confidence")?, vector("second_confidence")?, vector("margin")?);
    let outlier = layout.outlier.map(|_| vector("outlier")).transpose()?;
    let second = file.new_dataset::<i64>().shape(n).create("second_cluster")?;
    let unsure = layout.min_confidence.map(|_| file.new_dataset::<u8>().shape(n).create("unsure")).transpose()?;
    let truth = layout.truth.then(|| file.new_dataset::<VarLenUnicode>().shape(n).create("truth")).transpose()?;
    let matrix = |name: &str, columns: usize| file.new_dataset::<f32>().shape((n, columns)).create(name);
    let probabilities = layout.probabilities.then(|| matrix("probabilities", layout.clusters())).transpose()?;
    let embedding = (layout.embedding > 0).then(|| matrix("embedding", layout.embedding)).transpose()?;
    rows.for_each_run(|start, run| {
        let labels: Vec<&Label> = run.iter().filter_map(|row| row.outcome.as_ref().ok()).collect();
        let at = s![start..start + run.len()];
        let floats = |get: fn(&Label) -> f32| labels.iter().map(|l| get(l)).collect::<Vec<f32>>();
        index.write_slice(&column(&run.iter().map(|row| row.index).collect::<Vec<_>>()), at)?;
        confidence.write_slice(&column(&floats(|l| l.confidence)), at)?;
        second_confidence.write_slice(&column(&floats(|l| l.second_confidence)), at)?;
        margin.write_slice(&column(&floats(|l| l.margin)), at)?;
        second.write_slice(&column(&labels.iter().map(|l| i64::from(l.second)).collect::<Vec<_>>()), at)?;
        if let Some(outlier) = &outlier {
            outlier.write_slice(&column(&floats(|l| l.outlier.unwrap_or(f32::NAN))), at)?;
        }
        if let Some(unsure) = &unsure {
            let flags: Vec<u8> = labels.iter().map(|l| u8::from(layout.is_unsure(l))).collect();
            unsure.write_slice(&column(&flags), at)?;
        }
        if let Some(truth) = &truth {
            truth.write_slice(&column(&texts(run.iter().map(|row| row.truth.clone().unwrap_or_default()))?), at)?;
        }
        for (dataset, get) in
            [(&probabilities, (|l| &l.probabilities) as fn(&Label) -> &Vec<f32>), (&embedding, |l| &l.embedding)]
        {
            if let Some(dataset) = dataset {
                let values: Vec<f32> = labels.iter().flat_map(|l| get(l)).copied().collect();
                let values = ArrayView2::from_shape((run.len(), values.len() / run.len()), &values);
                let values = values.map_err(|e| ::hdf5::Error::from(e.to_string()))?;
                dataset.write_slice(&values, s![start..start + run.len(), ..])?;
            }
        }
        Ok(())
    })
}

fn write_failures(file: &::hdf5::File, rows: &mut Spool) -> ::hdf5::Result<()> {
    let n = rows.count;
    let index = file.new_dataset::<u64>().shape(n).create("failed_index")?;
    let path = file.new_dataset::<VarLenUnicode>().shape(n).create("failed_path")?;
    let error = file.new_dataset::<VarLenUnicode>().shape(n).create("failed_error")?;
    rows.for_each_run(|start, run| {
        let at = s![start..start + run.len()];
        let failures = run.iter().map(|row| row.outcome.as_ref().err().map(error_text).unwrap_or_default());
        index.write_slice(&column(&run.iter().map(|row| row.index).collect::<Vec<_>>()), at)?;
        path.write_slice(&column(&texts(run.iter().map(|row| row.path.clone()))?), at)?;
        error.write_slice(&column(&texts(failures)?), at)
    })
}

fn column<T>(values: &[T]) -> ArrayView1<'_, T> {
    ArrayView1::from(values)
}

/// HDF5 strings end at the first zero; no path and no sentence of ours holds one.
fn texts(values: impl Iterator<Item = String>) -> ::hdf5::Result<Vec<VarLenUnicode>> {
    let text = |text: String| text.replace('\0', "").parse();
    values.map(|value| text(value).map_err(|error: StringError| error.to_string().into())).collect()
}

/// Rows that wait in a nameless file beside the output, so that memory stays small.
struct Spool {
    file: BufWriter<File>,
    count: usize,
    buffer: Vec<u8>,
}

impl Spool {
    fn new(folder: &Path) -> Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile_in(folder)?), count: 0, buffer: Vec::new() })
    }

    fn push(&mut self, row: &Row) -> Result<()> {
        self.buffer.clear();
        row.encode(&mut self.buffer);
        self.file.write_all(&(self.buffer.len() as u32).to_le_bytes())?;
        self.file.write_all(&self.buffer)?;
        self.count += 1;
        Ok(())
    }

    /// Shows all rows in order, in runs, each with the position of its first row.
    fn for_each_run(&mut self, mut seen: impl FnMut(usize, &[Row]) -> ::hdf5::Result<()>) -> ::hdf5::Result<()> {
        let failed = |e: std::io::Error| ::hdf5::Error::from(e.to_string());
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut reader = BufReader::new(self.file.get_mut());
        let mut start = 0;
        while start < self.count {
            let mut run = Vec::with_capacity(RUN.min(self.count - start));
            for _ in start..self.count.min(start + RUN) {
                let mut length = [0; 4];
                reader.read_exact(&mut length).map_err(failed)?;
                self.buffer.resize(u32::from_le_bytes(length) as usize, 0);
                reader.read_exact(&mut self.buffer).map_err(failed)?;
                let row = Row::decode(&mut self.buffer.as_slice());
                run.push(row.ok_or_else(|| ::hdf5::Error::from("a row on the disk is damaged"))?);
            }
            seen(start, &run)?;
            start += run.len();
        }
        Ok(())
    }
}
