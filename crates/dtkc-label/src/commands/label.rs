//! `dtkc-label --model M --input SRC --output OUT`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use dtkc_cli::exit::Interrupted;
use dtkc_cli::{Terminal, Usage};
use dtkc_formats::sequences::sound::{SoundKind, milliseconds};
use dtkc_image::Limits;
use dtkc_infer::{Device, ModelFile, Names};
use dtkc_item::ItemKind;
use dtkc_label::export::Export;
use dtkc_label::keep::Keep;
use dtkc_label::label::{LabelOptions, Outcome, Output};
use dtkc_label::output::Format;
use dtkc_label::sequences::SequenceSettings;
use dtkc_label::shard::Shard;
use dtkc_label::sort::How;
use dtkc_source::parquet::RowColumns;
use dtkc_source::remote;
use serde_json::json;

use super::outgoing::{May, Outgoing};
use super::{failed, report};

pub const EXAMPLES: &str = "\
Examples:
  dtkc-label --model mnist --input digits.h5 --output labels.csv
  dtkc-label --model animals.onnx --input photos/ --output labels.parquet --gallery clusters.html
  dtkc-label --model animals.onnx --input 'shards/*.tar' --output labels.jsonl --probabilities
  dtkc-label --model animals.onnx --input 'train-*.parquet' --output labels.parquet --truth
  dtkc-label --model animals.onnx --input 'train-*.parquet' --output labels.parquet --keep-columns --embedding
  dtkc-label --model animals.onnx --input 'shard-{000..099}.tar' --output labels.csv
  dtkc-label --model animals.onnx --input photos/ --output labels.csv --sort-into sorted --min-confidence 0.8
  dtkc-label --model animals.onnx --input photos/ --output labels.csv --duplicates --gallery clusters.html
  dtkc-label --model animals.onnx --input s3://bucket/photos/ --output s3://bucket/labels.parquet
  dtkc-label --model animals.onnx --input photos/ --output labels.csv --export label-studio=tasks.json
  find /data -name '*.jpg' | dtkc-label --model animals.onnx --input - --output -
  dtkc-label --model mnist --input digits.h5 --output part-2.csv --shard 2/8
  dtkc-label merge part-*.csv --output labels.csv
  dtkc-label --model letters.onnx --input pens.csv --id-column stroke --output labels.csv --gallery letters.html

Inputs may be folders, files, quoted patterns, archives (.zip, .tar, .tar.gz, .tar.bz2), Parquet files with an image
in every row, datasets (.h5), or - for a list of paths on standard input. {000..099} stands for a hundred names. In folders and archives images are known by their extension, or without
one by their first bytes; hidden files are passed over, and what is passed over is listed in OUT.passed-over.csv.
A model for sequences takes datasets, tables (.csv, .tsv), .ts, .npz, .npy and .parquet files, and folders or archives
of tables or sounds that are one sequence each, read as `dtkc-data import` reads them.
An output in a store is made on this machine (in DTKC_WORK_DIR, else ~/.local/state/dtkc) and sent when it is whole;
credentials come from the usual environment (AWS_..., GOOGLE_..., AZURE_...): docs/stores.md.
Ctrl-C leaves a valid output with the rows so far; the same command with --resume goes on.
An output that exists is replaced with --force only, one of the inputs never, and none goes into a
folder that is read. A second run on the same output is refused, and told whose it is.
In CSV, text that a spreadsheet would take for a formula (= + - @ in front) begins with an apostrophe;
merge and --resume take it away again.
Exit codes: 0 done, 1 failed (or images failed and --strict), 2 wrong flags, 130 interrupted.";

#[derive(Args)]
pub struct LabelArgs {
    /// Model file, here or in a store, or the name of a bundled model (mnist, glyphs)
    #[arg(short, long, value_name = "MODEL")]
    model: PathBuf,

    /// Folder, file, pattern, archive, dataset, address (s3://, gs://, az://, https://), or - for a list of paths; may be
    /// repeated
    #[arg(short, long = "input", value_name = "SRC", required = true, num_args = 1.., allow_hyphen_values = false)]
    inputs: Vec<String>,

    /// File that ends in .csv, .jsonl, .parquet or .h5, here or in a store, or - for standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Replace outputs that exist, and start over where an unfinished run is kept; an input is never replaced
    #[arg(long)]
    force: bool,

    /// Form of the rows on standard output: csv or jsonl
    #[arg(long, value_name = "FORM", default_value = "csv", help_heading = "Rows")]
    format: Format,

    /// Add the probability of every cluster
    #[arg(long, help_heading = "Rows")]
    probabilities: bool,

    /// Add the embedding
    #[arg(long, help_heading = "Rows")]
    embedding: bool,

    /// Names of the clusters: lines of id,name, or a JSON list or object
    #[arg(long, value_name = "FILE", help_heading = "Rows")]
    names: Option<PathBuf>,

    /// Call images below this probability unsure
    #[arg(long, value_name = "P", value_parser = probability, help_heading = "Rows")]
    min_confidence: Option<f32>,

    /// Compare with the labels of the dataset, with those beside the images (a column of a Parquet file, .cls or .json in
    /// a tar), or with the folders of the images: the first below what all have in common and below train, test and the
    /// like
    #[arg(long, help_heading = "Rows")]
    truth: bool,

    /// Build a folder per cluster in this new folder
    #[arg(long, value_name = "DIR", help_heading = "Beside the rows")]
    sort_into: Option<PathBuf>,

    /// How images get there; auto is a hard link where possible, else a copy
    #[arg(long, value_name = "HOW", default_value = "auto", requires = "sort_into", help_heading = "Beside the rows")]
    sort_how: How,

    /// Write one page with the most and least certain images of every cluster
    #[arg(long, value_name = "FILE.html", help_heading = "Beside the rows")]
    gallery: Option<PathBuf>,

    /// Images of each kind and cluster on that page
    #[arg(long, value_name = "N", default_value_t = 12, requires = "gallery", help_heading = "Beside the rows")]
    gallery_images: usize,

    /// Find images that are the same but for size, compression, brightness or small cuts, and list them in
    /// OUT.duplicates.csv: the one to keep first, then its copies
    #[arg(long, help_heading = "Beside the rows")]
    duplicates: bool,

    /// How much copies may differ: bits of 256 of what an image looks like. Lower for drawings that resemble each other
    #[arg(
        long,
        value_name = "BITS",
        default_value_t = dtkc_label::duplicates::DISTANCE,
        value_parser = clap::value_parser!(u32).range(0..=96),
        requires = "duplicates",
        help_heading = "Beside the rows"
    )]
    duplicate_distance: u32,

    /// Write the labels for a tool, too: label-studio=FILE.json, cvat=FILE.xml, fiftyone=FILE.json or coco=FOLDER (Datumaro);
    /// may be repeated
    #[arg(long = "export", value_name = "FORMAT=PATH", help_heading = EXPORTS)]
    exports: Vec<Export>,

    /// Folder that names of images in exports are below [default: what the inputs have in common]
    #[arg(long, value_name = "DIR", requires = "exports", help_heading = EXPORTS)]
    export_root: Option<PathBuf>,

    /// What stands before these names in Label Studio's tasks, as https://host/photos/ [default: its address of local
    /// files]
    #[arg(long, value_name = "URL", requires = "exports", help_heading = EXPORTS)]
    export_url: Option<String>,

    /// Where images that failed are listed [default: OUT.failed.csv]
    #[arg(long, value_name = "FILE.csv", help_heading = "Beside the rows")]
    failed: Option<PathBuf>,

    /// Continue an interrupted run of the same command
    #[arg(long, help_heading = "Large collections")]
    resume: bool,

    /// Label only the I-th of N shares; `dtkc-label merge` joins them
    #[arg(long, value_name = "I/N", help_heading = "Large collections")]
    shard: Option<Shard>,

    /// Images per run of the model; labels do not depend on it
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536), help_heading = "Speed")]
    batch: u32,

    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Speed")]
    threads: Option<u32>,

    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = "Speed")]
    #[arg(help = format!("Where the model runs: {}", Device::NAMES))]
    device: Device,

    /// The ONNX Runtime library [default: ORT_DYLIB_PATH, beside the program, .tools, the system]
    #[arg(long, value_name = "PATH", help_heading = "Speed")]
    onnxruntime: Option<PathBuf>,

    /// Refuse image files that are larger
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = dtkc_human::parse_bytes, help_heading = "Limits")]
    max_bytes: u64,

    /// Refuse images that are wider or higher
    #[arg(long, value_name = "PIXELS", default_value_t = Limits::default().max_side, help_heading = "Limits")]
    max_side: u32,

    /// Refuse images with more pixels in all
    #[arg(long, value_name = "PIXELS", default_value_t = Limits::default().max_pixels, help_heading = "Limits")]
    max_pixels: u64,

    /// Refuse sequences with more steps; the memory of a worker goes with them (2 KiB a step in the paper's network)
    #[arg(long, value_name = "N", default_value_t = 131_072, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    max_steps: u32,

    // Not a struct of their own: an optional group of flags cannot hold another.
    /// What the inputs are, where their content does not tell: csv-long (a row for every step), csv-wide (a row for
    /// every sequence), csv-each (every file is a sequence), ts, arabic, npy, npz, parquet, wav
    #[arg(long, value_name = "FORMAT", help_heading = SEQUENCES)]
    input_format: Option<dtkc_formats::Format>,

    /// Column of a Parquet file that holds encoded images [default: found by its type and name]
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    image_column: Option<String>,

    /// Column of a table with the names of images, or that says which sequence a row belongs to; columns of sequences are
    /// named by name or number, from 1
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    id_column: Option<String>,

    /// Keep the columns of Parquet inputs in a .parquet output, before those of the labels: all but the images, or those that
    /// are named
    #[arg(long, value_name = "A,B,C", num_args = 0..=1, default_missing_value = "all", help_heading = TABLES)]
    keep_columns: Option<String>,

    /// Keep the images, too
    #[arg(long, requires = "keep_columns", help_heading = TABLES)]
    keep_images: bool,

    /// Column with the time: steps are put in its order
    #[arg(long, value_name = "COLUMN", help_heading = SEQUENCES)]
    time_column: Option<String>,

    /// Column with the class, for --truth
    #[arg(long, value_name = "COLUMN", help_heading = TABLES)]
    label_column: Option<String>,

    /// Columns with the values of a step [default: all others]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help_heading = SEQUENCES)]
    value_columns: Vec<String>,

    /// Values of a step that stand side by side, where a row is a sequence
    #[arg(long, value_name = "N", help_heading = SEQUENCES)]
    dim: Option<usize>,

    /// Put values that are missing on a line between their neighbours in time; without it such sequences fail alone
    #[arg(long, help_heading = SEQUENCES)]
    fill_missing: bool,

    /// What the windows of a sound become: spectrogram or mfcc
    #[arg(long, value_name = "KIND", default_value = "spectrogram", help_heading = SEQUENCES)]
    sound: SoundKind,

    /// Milliseconds of a window
    #[arg(long, value_name = "MS", default_value = "25", value_parser = milliseconds, help_heading = SEQUENCES)]
    window: f64,

    /// Milliseconds from one window to the next
    #[arg(long, value_name = "MS", default_value = "10", value_parser = milliseconds, help_heading = SEQUENCES)]
    hop: f64,

    /// Exit with code 1 when an item failed
    #[arg(long, help_heading = "What is said")]
    strict: bool,

    /// Print the summary as JSON
    #[arg(long, help_heading = "What is said")]
    json: bool,

    /// No progress and no table; warnings and errors only
    #[arg(short, long, help_heading = "What is said")]
    quiet: bool,
}

/// Headings in the help.
const EXPORTS: &str = "For labelling tools";
const TABLES: &str = "Tables";
const SEQUENCES: &str = "Sequences";

impl LabelArgs {
    /// How sequences are read that are in no dataset.
    fn sequences(&self) -> SequenceSettings {
        SequenceSettings {
            max_steps: self.max_steps as usize,
            format: self.input_format.map(|format| format.to_string()),
            id_column: self.id_column.clone(),
            time_column: self.time_column.clone(),
            label_column: self.label_column.clone(),
            value_columns: self.value_columns.clone(),
            dim: self.dim,
            fill: self.fill_missing,
            mfcc: self.sound == SoundKind::Mfcc,
            window: self.window,
            hop: self.hop,
        }
    }
}

fn probability(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err(format!("'{text}' is not a probability; write a number from 0 to 1")),
    }
}

impl LabelArgs {
    pub fn run(self) -> anyhow::Result<()> {
        let terminal = Terminal::new(self.quiet);
        let local = [("--gallery", &self.gallery), ("--failed", &self.failed), ("--sort-into", &self.sort_into)];
        if let Some((flag, _)) = local.into_iter().find(|(_, path)| path.as_deref().is_some_and(remote::is)) {
            return Err(Usage(format!("{flag} goes to this machine; only --output may be in a store")).into());
        }
        let may = May { force: self.force, resume: self.resume };
        let outgoing = Outgoing::of(&self.output, &self.inputs, may, &terminal)?;
        let options = match (self.options(outgoing.as_ref()), &outgoing) {
            (Err(error), Some(outgoing)) => return Err(outgoing.unfinished(error)),
            (options, _) => options?,
        };
        let kind = options.model.shape().kind();
        let labelled = dtkc_label::label(&options, &terminal).map_err(failed);
        let mut outcome = match (labelled, &outgoing) {
            (Err(error), Some(outgoing)) => return Err(outgoing.unfinished(error)),
            (labelled, _) => labelled?,
        };
        if let Some(outgoing) = outgoing.as_ref().filter(|_| !outcome.fed.stopped) {
            match outgoing.is_there(outcome.complete_already) {
                true => outgoing.leave(),
                false => outgoing.send(&terminal)?,
            }
            for list in [&mut outcome.failed_list, &mut outcome.passed_list] {
                *list = list.as_ref().map(|path| outgoing.given(path));
            }
            if let Some(counts) = &mut outcome.duplicates {
                counts.table = outgoing.given(&counts.table);
            }
        }
        let to_stream = matches!(options.output, Output::Stream(_));
        if self.json {
            let more = json!({
                "failed_list": outcome.failed_list,
                "passed_over": outcome.fed.passed.counts(),
                "passed_over_list": outcome.passed_list,
                "duplicates": outcome.duplicates,
                "exports": self.exports.iter().map(|e| json!({ "format": e.tool.name(), "path": e.path })).collect::<Vec<_>>(),
            });
            report::json(&outcome.summary, outcome.seconds, outcome.processed, more)?;
        } else if !self.quiet {
            report::table(&outcome.summary, kind, to_stream)?;
            self.say_done(&outcome, kind);
        }
        report::warn_failures(&outcome.summary, kind, outcome.failed_list.as_deref());
        self.end(&outcome, kind, outgoing.as_ref())
    }

    fn options(&self, outgoing: Option<&Outgoing>) -> anyhow::Result<LabelOptions> {
        let output = self.output(outgoing)?;
        let to_stream = matches!(output, Output::Stream(_));
        if to_stream && self.json {
            return Err(
                Usage("--json and --output - both want standard output; write the rows to a file".into()).into()
            );
        }
        if to_stream && self.resume {
            return Err(
                Usage("--resume needs an output file; rows on standard output cannot be continued".into()).into()
            );
        }
        let mut model = self.open_model()?;
        if let Some(names) = &self.names {
            model.rename(&Names::read(names, model.clusters()).context("--names")?);
        }
        let reads = model.path().map(Path::to_owned).into_iter().chain(self.names.clone()).collect();
        let threads = match self.threads {
            Some(threads) => threads as usize,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        Ok(LabelOptions {
            model,
            onnxruntime: self.onnxruntime.clone(),
            device: self.device,
            threads,
            batch: self.batch as usize,
            inputs: self.inputs.clone(),
            output,
            failed: self.failed.clone(),
            probabilities: self.probabilities,
            embedding: self.embedding,
            truth: self.truth,
            min_confidence: self.min_confidence,
            limits: Limits { max_bytes: self.max_bytes, max_side: self.max_side, max_pixels: self.max_pixels },
            sequences: self.sequences(),
            columns: RowColumns {
                image: self.image_column.clone(),
                name: self.id_column.clone(),
                label: self.label_column.clone(),
            },
            keep: self.keep(),
            shard: self.shard.unwrap_or(Shard::WHOLE),
            resume: self.resume,
            force: self.force,
            reads,
            sort: self.sort_into.clone().map(|root| (root, self.sort_how)),
            gallery: self.gallery.clone().map(|page| (page, self.gallery_images)),
            exports: self.exports.clone(),
            export_root: self.export_root.clone(),
            export_url: self.export_url.clone(),
            duplicates: self.duplicates.then_some(self.duplicate_distance),
        })
    }

    fn keep(&self) -> Option<Keep> {
        let names = self.keep_columns.as_deref()?;
        let columns = (names != "all").then(|| names.split(',').map(|name| name.trim().to_owned()).collect());
        Some(Keep { columns, images: self.keep_images })
    }

    /// The model, from this machine or from a store.
    fn open_model(&self) -> anyhow::Result<ModelFile> {
        if !remote::is(&self.model) {
            return Ok(ModelFile::open(&self.model)?);
        }
        let url = self.model.to_string_lossy();
        let shown = remote::Shown(&url).to_string();
        let bytes = dtkc_store::read(&url, dtkc_infer::MAX_MODEL_BYTES).with_context(|| shown.clone())?;
        let mut model = ModelFile::from_bytes(&shown, bytes)?;
        let name = dtkc_store::work::last_part(&url);
        model.set_name(name.strip_suffix(".onnx").unwrap_or(&name));
        Ok(model)
    }

    fn output(&self, outgoing: Option<&Outgoing>) -> anyhow::Result<Output> {
        if self.output.as_os_str() == "-" {
            return Ok(Output::Stream(self.format));
        }
        let format = Format::of(&self.output).map_err(|e| Usage(e.to_string()))?;
        let target = outgoing.map_or_else(|| self.output.clone(), Outgoing::target);
        Ok(Output::File(target, format))
    }

    fn say_done(&self, outcome: &Outcome, kind: ItemKind) {
        let output = self.output.display();
        if outcome.complete_already {
            eprintln!("{output} is complete already");
            return;
        }
        let rate = outcome.processed as f64 / outcome.seconds.max(1e-9);
        let time = dtkc_human::duration(std::time::Duration::from_secs_f64(outcome.seconds));
        let (items, kind) = (dtkc_human::count(outcome.processed), kind);
        let place = if self.output.as_os_str() == "-" { String::new() } else { format!(" to {output}") };
        eprintln!("{items} {kind} in {time} ({} per second){place}", dtkc_human::count(rate as u64));
        for (what, place) in [("gallery in", &self.gallery), ("sorted into", &self.sort_into)] {
            if let Some(place) = place.as_ref().filter(|_| !outcome.fed.stopped) {
                eprintln!("{what} {}", place.display());
            }
        }
        for export in self.exports.iter().filter(|_| !outcome.fed.stopped) {
            eprintln!("for {}: {}", export.tool.name(), export.path.display());
        }
        report::duplicates(outcome.duplicates.as_ref());
        if self.duplicates && self.shard.is_some_and(|shard| shard.count > 1) && !outcome.fed.stopped {
            eprintln!("near-duplicates are found when `dtkc-label merge` joins the shards");
        }
        let passed = &outcome.fed.passed;
        let place =
            outcome.passed_list.as_ref().map_or(String::new(), |list| format!(", listed in {}", list.display()));
        match passed.total() {
            0 => {}
            1 => eprintln!("1 other file was passed over ({}){place}", passed.kinds()),
            files => eprintln!("{} other files were passed over ({}){place}", dtkc_human::count(files), passed.kinds()),
        }
    }

    /// The exit code.
    fn end(&self, outcome: &Outcome, kind: ItemKind, outgoing: Option<&Outgoing>) -> anyhow::Result<()> {
        let (images, failed) = (outcome.summary.images, outcome.summary.failed);
        if outcome.fed.stopped {
            let rows = dtkc_human::count(images);
            let text = match (self.output.as_os_str() == "-", outgoing) {
                (true, _) => format!("after {rows} {kind}"),
                (false, Some(outgoing)) => format!(
                    "nothing was sent; the {rows} {kind} so far are kept in {}, and the same command with --resume goes on",
                    outgoing.folder().display()
                ),
                (false, None) => format!(
                    "{} holds the {rows} {kind} so far; the same command with --resume goes on",
                    self.output.display()
                ),
            };
            return Err(Interrupted(text).into());
        }
        if failed > 0 && failed == images {
            anyhow::bail!("none of the {} {kind} could be labelled", dtkc_human::count(images));
        }
        if failed > 0 && self.strict {
            anyhow::bail!(
                "{} of {} {kind} failed, and --strict asks for none",
                dtkc_human::count(failed),
                dtkc_human::count(images)
            );
        }
        Ok(())
    }
}
