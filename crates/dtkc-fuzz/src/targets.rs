//! What is run on hostile input.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::anyhow;
use dtkc_data::import::{Format, ImportOptions, Missing, import};
use dtkc_dataset::Dataset;
use dtkc_image::{Limits, Preparer};
use dtkc_item::{Color, ImageShape, ImageSpec, Resize};
use dtkc_label::journal;
use dtkc_observe::Silent;
use dtkc_onnx::{Backbone, Preparation, Reading};
use dtkc_source::parquet::{Choice, Chosen, ImageRows, LeafRows, RowColumns, Wants};
use dtkc_source::{BodyReader, Found, Input, Visitor};
use dtkc_train::config::RunConfig;

use crate::mutate::Seeds;
use crate::{seeds, service};

/// Runs one input; `Err` says what is wrong with the answer. Refusing the input is right.
pub type Execute = Box<dyn FnMut(&[u8]) -> Result<(), String>>;

/// Something that reads what strangers give it.
pub struct Target {
    name: &'static str,
    seeds: fn() -> Vec<Vec<u8>>,
    start: fn() -> anyhow::Result<Execute>,
}

const TARGETS: [Target; 19] = [
    Target { name: "image", seeds: seeds::images, start: image },
    Target { name: "zip", seeds: seeds::zips, start: || archive("a.zip") },
    Target { name: "tar", seeds: seeds::tars, start: || archive("a.tar") },
    Target { name: "parquet", seeds: seeds::image_tables, start: image_table },
    Target { name: "import", seeds: seeds::arrays, start: import_file },
    Target { name: "sequences", seeds: seeds::sequences, start: import_sequences },
    Target { name: "dataset", seeds: seeds::datasets, start: dataset },
    Target { name: "json", seeds: seeds::json_bodies, start: || service::start("/v1/assign", "application/json") },
    Target {
        name: "form",
        seeds: seeds::forms,
        start: || service::start("/v1/assign", "multipart/form-data; boundary=b"),
    },
    Target {
        name: "v2",
        seeds: seeds::v2_bodies,
        start: || service::start("/v2/models/small/infer", "application/json"),
    },
    Target {
        name: "steps",
        seeds: seeds::step_bodies,
        start: || service::start("/v1/models/strokes/assign", "application/json"),
    },
    Target { name: "table", seeds: seeds::tables, start: || service::start("/v1/models/strokes/assign", "text/csv") },
    Target {
        name: "v2-sequences",
        seeds: seeds::v2_sequences,
        start: || service::start("/v2/models/strokes/infer", "application/json"),
    },
    Target { name: "names", seeds: seeds::names, start: cluster_names },
    Target { name: "model", seeds: seeds::models, start: model },
    Target { name: "backbone", seeds: seeds::backbones, start: backbone },
    Target { name: "checkpoint", seeds: seeds::checkpoints, start: checkpoint },
    Target { name: "journal", seeds: seeds::journals, start: label_journal },
    Target { name: "config", seeds: seeds::configs, start: config },
];

/// All names.
pub fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

/// The target of that name.
pub fn named(name: &str) -> anyhow::Result<&'static Target> {
    static ALL: [Target; TARGETS.len()] = TARGETS;
    let found = ALL.iter().find(|target| target.name == name);
    found.ok_or_else(|| anyhow!("there is no target '{name}'; there are {}", names().join(", ")))
}

impl Target {
    /// Real files to begin with, and those that once ended badly.
    pub fn seeds(&self) -> Seeds {
        Seeds { real: (self.seeds)(), bad: seeds::regressions(self.name) }
    }

    /// Makes it ready to run.
    pub fn start(&self) -> anyhow::Result<Execute> {
        (self.start)()
    }
}

/// What an image may cost here: little, so that a second has many of them.
fn limits() -> Limits {
    Limits { max_bytes: 1 << 20, max_side: 4096, max_pixels: 1 << 20 }
}

fn image() -> anyhow::Result<Execute> {
    let spec = ImageSpec { height: 20, width: 28, color: Color::Rgb, resize: Resize::Fit };
    let mut preparer = Preparer::new(spec, limits());
    Ok(Box::new(move |bytes| match preparer.prepare(bytes) {
        Ok(pixels) if pixels.len() != spec.bytes() => Err(format!("{} bytes came out", pixels.len())),
        Err(error) if error.message.is_empty() || error.message.len() > 1000 => Err(format!("it says {error:?}")),
        _ => Ok(()),
    }))
}

/// Reads every item of an archive.
struct Items(BodyReader);

impl Visitor for Items {
    fn wants_classes(&self) -> bool {
        true
    }

    fn found(&mut self, mut found: Found) -> ControlFlow<()> {
        // Whether it can be read is the archive's affair.
        let _ = self.0.read(&mut found.body);
        ControlFlow::Continue(())
    }
}

/// Writes every input to a file of that name in this process's folder, for what reads files.
fn with_file(name: &'static str, read: impl Fn(&Path) + 'static) -> anyhow::Result<Execute> {
    let path = std::path::absolute(name)?;
    Ok(Box::new(move |bytes| {
        write(&path, bytes)?;
        read(&path);
        Ok(())
    }))
}

fn archive(name: &'static str) -> anyhow::Result<Execute> {
    with_file(name, |path| {
        if let Ok(input) = Input::open(&path.to_string_lossy()) {
            let _ = input.visit(1 << 20, &mut Items(BodyReader::new(1 << 20)));
        }
    })
}

/// Reads every image of a table with its name and class, in order and out of order.
fn image_table() -> anyhow::Result<Execute> {
    with_file("a.parquet", |path| {
        let Ok(Some(rows)) = ImageRows::open(path, &RowColumns::default()) else { return };
        let mut bodies = rows.spread(4, 4);
        bodies.reverse();
        let mut reader = BodyReader::new(1 << 20);
        bodies.iter_mut().for_each(|body| drop(reader.read(body)));
        let mut left = 1000;
        let _ = rows.each(Wants { names: true, labels: true }, &mut |mut row| {
            let _ = reader.read(&mut row.body);
            left -= 1;
            // A few bytes may stand for many rows.
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        kept_columns(path);
    })
}

/// Reads every column of a table as it is.
fn kept_columns(path: &Path) {
    let columns = RowColumns::default();
    let choice = Choice { names: None, images: true, columns: &columns, flag: "--keep-columns" };
    let Ok(chosen) = Chosen::of(path, &choice) else { return };
    let Ok(mut rows) = LeafRows::open(path, &chosen) else { return };
    let mut leaves = chosen.empty();
    for group in 0..rows.groups().min(8) {
        for row in 0..rows.rows(group).min(100) as usize {
            if rows.read(group, row, &mut leaves).is_err() {
                break;
            }
        }
    }
}

/// Reads everything of a dataset file. Each is first read by another process, on which the library may break.
fn dataset() -> anyhow::Result<Execute> {
    with_file("set.h5", |path| {
        let Ok(dataset) = Dataset::open(path) else { return };
        let count = dataset.len().min(100);
        let _ = (dataset.labels(), dataset.paths(0..count), dataset.read_range(0..count), dataset.fingerprint());
        let _ = (dataset.items_of(0..count), dataset.network());
    })
}

fn checkpoint() -> anyhow::Result<Execute> {
    with_file("last.ckpt", |path| drop(dtkc_train::checkpoint::read::<serde_json::Value>(path)))
}

fn label_journal() -> anyhow::Result<Execute> {
    with_file("out.csv.journal", |path| {
        let output = path.with_extension("");
        debug_assert_eq!(journal::path_for(&output), path);
        let Ok(mut reader) = journal::Reader::open(&output) else { return };
        while let Ok(Some(_)) = reader.next_block() {}
    })
}

/// The importers, by what a file looks like; HDF5 files are another target's.
fn import_file() -> anyhow::Result<Execute> {
    let folder = std::path::absolute("import")?;
    fs_err::create_dir_all(&folder)?;
    let (path, out) = (folder.join("input"), folder.join("out.h5"));
    let mut options = ImportOptions::new(&out);
    options.force = true;
    Ok(Box::new(move |bytes| {
        if bytes.starts_with(b"\x89HDF") {
            return Ok(());
        }
        write(&path, bytes)?;
        let imported = import(std::slice::from_ref(&path), &options, &Silent);
        let there = out.exists();
        let _ = std::fs::remove_file(&out);
        let left: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
        match imported.is_ok() == there && left.len() <= 3 {
            true => Ok(()),
            false => {
                Err(format!("import says {:?}, there are {left:?}", imported.map(|_| ()).map_err(|e| e.to_string())))
            }
        }
    }))
}

/// The importers of sequences. Tables have no mark, so every input is each kind of table; all else is what it looks like.
fn import_sequences() -> anyhow::Result<Execute> {
    let folder = std::path::absolute("sequences")?;
    fs_err::create_dir_all(&folder)?;
    let (path, out) = (folder.join("input"), folder.join("out.h5"));
    let mut options = ImportOptions::new(&out);
    options.force = true;
    options.missing = Missing::Fill;
    options.read.sequences = true;
    options.read.limits = limits();
    Ok(Box::new(move |bytes| {
        if bytes.starts_with(b"\x89HDF") {
            return Ok(());
        }
        write(&path, bytes)?;
        let tables = [Some(Format::CsvLong), Some(Format::CsvWide), Some(Format::CsvEach)];
        let formats = if std::str::from_utf8(bytes).is_ok() { &tables[..] } else { &[None][..] };
        for format in formats {
            options.format = *format;
            options.read.columns.id = (*format == Some(Format::CsvLong)).then(|| "1".to_owned());
            let imported = import(std::slice::from_ref(&path), &options, &Silent);
            let there = out.exists();
            let _ = std::fs::remove_file(&out);
            if imported.is_ok() != there {
                return Err(format!("import says {:?}", imported.map(|_| ()).map_err(|e| e.to_string())));
            }
        }
        Ok(())
    }))
}

fn cluster_names() -> anyhow::Result<Execute> {
    Ok(Box::new(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = dtkc_infer::Names::parse(&text, 10);
        Ok(())
    }))
}

fn model() -> anyhow::Result<Execute> {
    Ok(Box::new(|bytes| {
        let _ = dtkc_infer::ModelFile::from_bytes("model", bytes.to_vec());
        // Its layers, which `dtkc-train explain` reads: what comes back must be written as it was.
        match dtkc_onnx::read_network(bytes) {
            Ok((network, metadata)) => match dtkc_onnx::write(&network, &metadata) {
                Ok(again) if dtkc_onnx::read_network(&again).is_ok_and(|(same, _)| same == network) => Ok(()),
                other => Err(format!("its layers cannot be written again: {:?}", other.map(|bytes| bytes.len()))),
            },
            Err(_) => Ok(()),
        }
    }))
}

/// What a network of others takes and gives, and the graph around it: one that is made must be one that can be read.
fn backbone() -> anyhow::Result<Execute> {
    Ok(Box::new(|bytes| {
        let Ok(backbone) = Backbone::read(bytes.to_vec()) else { return Ok(()) };
        let channels = backbone.input().channels;
        let image = ImageShape { height: 4, width: 3, channels };
        let (mean, deviation) = (vec![0.5; channels], vec![0.5; channels]);
        let preparation = Preparation { image, size: [5, 3], mean, deviation };
        let Ok((layer, _)) = backbone.layer() else { return Ok(()) };
        match backbone.prefix(&preparation, &layer, Reading::Vector).map(Backbone::read) {
            // Its own input takes bytes, channels last.
            Ok(Err(error)) => Err(format!("what was made of it cannot be read: {error}")),
            _ => Ok(()),
        }
    }))
}

fn config() -> anyhow::Result<Execute> {
    Ok(Box::new(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(table) = text.parse::<toml::Table>() {
            let _ = RunConfig::resolve(&[table]);
        }
        Ok(())
    }))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| format!("the input cannot be written: {error}"))
}
