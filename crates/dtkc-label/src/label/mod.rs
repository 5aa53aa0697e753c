//! A labelling run from its settings to its summary.

mod check;
mod replaced;
mod run;

use std::path::PathBuf;

use dtkc_image::Limits;
use dtkc_infer::{Device, ModelFile, Pool, PoolOptions, Runtime, SessionOptions};
use dtkc_observe::Observer;
use dtkc_source::parquet::RowColumns;
pub use replaced::Replaced;
use run::Run;

use crate::duplicates::Counts;
use crate::error::{LabelError, Result};
use crate::export::Export;
use crate::failures;
use crate::feed::{Fed, FeedOptions};
use crate::job::Head;
use crate::journal;
use crate::keep::{Keep, Kept};
use crate::output::Format;
use crate::pipeline::Plan;
use crate::sequences::SequenceSettings;
use crate::shard::Shard;
use crate::sort::{How, Sorter};
use crate::tally::Summary;

/// Where rows go.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A file, which is made at the end and can be resumed.
    File(PathBuf, Format),
    /// Standard output, row by row.
    Stream(Format),
}

/// What a run should do.
pub struct LabelOptions {
    /// The model, with the names that its clusters should have.
    pub model: ModelFile,
    /// The ONNX Runtime library.
    pub onnxruntime: Option<PathBuf>,
    /// Where the model runs.
    pub device: Device,
    /// Worker threads.
    pub threads: usize,
    /// Items per run of the model.
    pub batch: usize,
    /// Inputs, as given.
    pub inputs: Vec<String>,
    /// Where rows go.
    pub output: Output,
    /// Where failures are listed; beside an output file unless told otherwise.
    pub failed: Option<PathBuf>,
    /// Whether rows hold all probabilities.
    pub probabilities: bool,
    /// Whether rows hold the embedding.
    pub embedding: bool,
    /// Whether known classes are compared with.
    pub truth: bool,
    /// Rows below it are unsure.
    pub min_confidence: Option<f32>,
    /// What one image may cost.
    pub limits: Limits,
    /// How sequences are read, where the model takes sequences.
    pub sequences: SequenceSettings,
    /// Which columns of tables are what, where the model takes images.
    pub columns: RowColumns,
    /// Which columns of the input go to the output, too.
    pub keep: Option<Keep>,
    /// Which share of the input.
    pub shard: Shard,
    /// Go on where an interrupted run stopped.
    pub resume: bool,
    /// Replace outputs that are there already, and start over where an unfinished run is kept.
    pub force: bool,
    /// What is read beside the inputs: the files of the model and of the names.
    pub reads: Vec<PathBuf>,
    /// Folders per cluster.
    pub sort: Option<(PathBuf, How)>,
    /// The page, and how many images of each kind and cluster it shows.
    pub gallery: Option<(PathBuf, usize)>,
    /// Files for labelling tools.
    pub exports: Vec<Export>,
    /// The folder that names in these are below; what the inputs have in common unless told otherwise.
    pub export_root: Option<PathBuf>,
    /// What stands before names in addresses.
    pub export_url: Option<String>,
    /// Where copies should be found: the most bits in which their hashes differ.
    pub duplicates: Option<u32>,
}

/// How a run ended.
pub struct Outcome {
    /// The figures of all rows, those of earlier runs that were resumed included.
    pub summary: Summary,
    /// What was found in the input.
    pub fed: Fed,
    /// Where the failures are listed, if there are any.
    pub failed_list: Option<PathBuf>,
    /// Where the files that were passed over are listed, if there are any.
    pub passed_list: Option<PathBuf>,
    /// The copies, where they were looked for.
    pub duplicates: Option<Counts>,
    /// Images of this run.
    pub processed: u64,
    /// How long they took.
    pub seconds: f64,
    /// Whether the output was complete before, so that there was nothing to do.
    pub complete_already: bool,
}

/// Runs to the end, or until the observer asks for a stop; what is done by then is kept.
pub fn label(options: &LabelOptions, observer: &dyn Observer) -> Result<Outcome> {
    let mut settings = check::settings(options);
    let inputs = settings.open_inputs(observer)?;
    check::check(options, &inputs)?;
    let naming = check::naming(options, &inputs)?;
    let kept = match &options.keep {
        Some(keep) => Some(Kept::look(&inputs, (keep, &options.columns), &settings.layout, observer)?),
        None => None,
    };
    settings.tables = kept.as_ref().map(Kept::fingerprint);
    let lock = match &options.output {
        Output::File(path, _) => journal::lock(path)?,
        Output::Stream(_) => None,
    };
    let head = Head { shard: options.shard, settings };
    if let Some(outcome) = check::complete_already(options, &head)? {
        return Ok(outcome);
    }
    check::existing(options)?;
    let replaced = check::replaced(options);
    let classes = if options.truth { Some(check::classes(&inputs, observer)?) } else { None };
    let runtime = Runtime::for_device(options.device, options.onnxruntime.as_deref())?;
    // Before the journal: a model that cannot be run leaves nothing behind.
    let pool = Pool::start(&runtime, &options.model, &pool_options(options))?;
    let mut run = Run::start(options, head, naming, observer)?;
    let sorter = match &options.sort {
        Some((root, how)) => {
            let shared = run.is_resumed() || options.shard.count > 1;
            Some(Sorter::create(root, *how, run.layout(), shared)?)
        }
        None => None,
    };
    let passed_list = match &options.output {
        Output::File(path, _) => Some(failures::passed_path_for(path)),
        Output::Stream(_) => None,
    };
    let plan = Plan {
        inputs: &inputs,
        model: &options.model,
        feed: FeedOptions {
            batch: options.batch,
            shard: options.shard,
            classes: classes.as_ref(),
            passed_list: passed_list.as_deref(),
            keep_bytes: sorter.is_some(),
            max_bytes: options.limits.max_bytes,
            places: kept.is_some(),
            replaced: &replaced,
            sequences: options.model.sequences(options.sequences.max_steps).map(|spec| (spec, &options.sequences)),
        },
        probabilities: options.probabilities,
        embedding: options.embedding,
        sorter: sorter.as_ref(),
    };
    let outcome = match run.label(&plan, pool) {
        // An input that would be replaced: there is nothing to go on with.
        Err(error @ LabelError::Usage(_)) if !run.is_resumed() => run.discard().and(Err(error)),
        fed => fed.and_then(|fed| run.finish(&inputs, kept.as_ref(), fed)),
    };
    // Only now may another run write this output.
    drop(lock);
    outcome
}

fn pool_options(options: &LabelOptions) -> PoolOptions {
    let wants_items = matches!(&options.output, Output::File(_, format) if format.wants_items());
    let session = SessionOptions { device: options.device, intra_threads: 1, max_steps: options.sequences.max_steps };
    PoolOptions {
        workers: options.threads,
        queue: 2 * options.threads,
        session,
        limits: options.limits,
        keep_items: wants_items || options.sort.is_some(),
        fingerprints: options.duplicates.is_some(),
    }
}
