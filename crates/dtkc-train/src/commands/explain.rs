//! `dtkc-train explain`.

use std::path::{Path, PathBuf};

use dtkc_cli::{Terminal, Usage};
use dtkc_human as human;
use dtkc_item::{ImageSpec, Resize};
use dtkc_observe::Observer as _;
use dtkc_onnx::Network;
use dtkc_train::TrainError;
use dtkc_train::device::DeviceName;
use dtkc_train::explain::files::Folder;
use dtkc_train::explain::{ArrayFormat, Explainer, Output, Pictures, Settings, backgrounds};
use dtkc_train::saved::Saved;
use serde::Serialize;

use super::{print, print_json};

/// A larger error of maps' sums, as a part of what they explain, is worth a warning.
const LARGE_ERROR: f64 = 0.25;

const EXAMPLES: &str = "\
Examples:
  dtkc-train explain --model runs/mnist --input mnist.h5 --out why
  dtkc-train explain --model models/mnist.onnx --input digits/ --background mnist.h5 --out why
  dtkc-train explain --model runs/mnist --input 7.png --cluster 3 --of score --samples 1000 --out why

Expected gradients, which is what SHAP's GradientExplainer computes: from a background image x' to the image x, the slope of
the cluster's probability at a random place of the way, times (x - x'), on average over --samples draws. A map adds up to the
probability minus its mean over the background; how much that misses is printed (completeness) and falls with more samples.
What is explained is the image as the network sees it, scaled to 0..1 by its own minimum and maximum; the scaling is not.

Writes to the folder DIR: maps.npy (float32, images x rows x columns x channels), images.npy, explanations.csv, a picture
for each image (red pixels speak for the cluster, blue ones against it) and sheet.png. Models for sequences are refused.";

/// Flags of `explain`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Model file (from dtkc-train export), or the folder of a run.
    #[arg(long, value_name = "FILE|RUN")]
    model: PathBuf,
    /// Images to explain: datasets (.h5), folders, archives, files, patterns, or - for a list on standard input.
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    input: Vec<String>,
    /// Folder for maps and pictures; new or empty.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Images to compare with [default: the dataset of the run; for a model file, the input].
    #[arg(long, value_name = "PATH", num_args = 1..)]
    background: Vec<String>,
    /// Draws for each image; as many background images are used.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,
    /// Most images to explain, drawn at random from all of the input.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// The cluster to explain [default: the one that each image is assigned to].
    #[arg(long, value_name = "ID")]
    cluster: Option<usize>,
    /// What is explained: the cluster's probability, or the score that the softmax makes it of.
    #[arg(long, value_name = "WHAT", default_value = "probability")]
    of: Output,
    /// Arrays of maps and images.
    #[arg(long, value_name = "FORM", default_value = "npy")]
    arrays: ArrayFormat,
    /// Seed of all draws.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Replace explanations that are in the folder; a file that is read is never replaced.
    #[arg(long)]
    force: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// No progress on the terminal.
    #[arg(long)]
    quiet: bool,
}

/// What was made.
#[derive(Debug, Serialize)]
struct Made {
    out: PathBuf,
    images: usize,
    samples: usize,
    of: Output,
    completeness: Completeness,
}

/// By how much sums of maps miss the differences that they explain, as sizes.
#[derive(Debug, Serialize)]
struct Completeness {
    mean_error: f64,
    max_error: f64,
    /// Mean size of the differences themselves.
    mean_difference: f64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    dtkc_ops::set_threads(args.threads);
    let terminal = Terminal::new(args.quiet);
    let Frozen { network, spec, data } = Frozen::open(&args.model)?;
    let pictures = Pictures::open(&args.input, spec)?;
    let others = match (args.background.is_empty(), data) {
        (false, _) => Some(Pictures::open(&args.background, spec)?),
        (true, Some(data)) => Some(Pictures::open(&[data.to_string_lossy().into_owned()], spec)?),
        (true, None) => None,
    };
    for sources in [Some(pictures.sources()), others.as_ref().map(Pictures::sources)].into_iter().flatten() {
        sources.refuse(&args.out).map_err(|refused| Usage(refused.to_string()))?;
    }
    let settings = Settings { samples: args.samples as usize, seed: args.seed, output: args.of, cluster: args.cluster };
    let wanted = backgrounds(spec.shape(), settings.samples);
    // Another seed than that of the images, which would otherwise be the first of their own background.
    let others_seed = args.seed.wrapping_add(1);
    let background = others.as_ref().unwrap_or(&pictures).sample(wanted, others_seed, &terminal).map_err(stopped)?;
    let explainer = Explainer::new(&network, &background.pixels, settings)?;
    drop(background);
    let images = pictures.sample(args.count as usize, args.seed, &terminal).map_err(stopped)?;
    let count = images.names.len();
    let mut folder = Folder::create(&args.out, spec.shape(), count, args.arrays, args.force)?;
    let mut sizes = Vec::with_capacity(count);
    terminal.begin("explain", "images", Some(count as u64));
    for (number, (name, image)) in images.names.iter().zip(images.pixels.chunks_exact(spec.bytes())).enumerate() {
        let explanation = explainer.explain(number, image, &terminal).map_err(stopped)?;
        folder.add(name, image, &explanation)?;
        sizes.push((explanation.error().abs(), (explanation.value - explanation.expected).abs()));
    }
    terminal.end();
    folder.finish()?;
    let mean = |part: fn(&(f64, f64)) -> f64| sizes.iter().map(part).sum::<f64>() / count as f64;
    let completeness = Completeness {
        mean_error: mean(|(error, _)| *error),
        max_error: sizes.iter().map(|(error, _)| *error).fold(0.0, f64::max),
        mean_difference: mean(|(_, difference)| *difference),
    };
    let made = Made { out: args.out.clone(), images: count, samples: settings.samples, of: args.of, completeness };
    if args.json {
        print_json(&made)?
    } else {
        print(&made.text())?
    }
    if made.completeness.mean_error > LARGE_ERROR * made.completeness.mean_difference {
        terminal
            .warn("the maps' sums miss what they explain by more than a quarter; use more --samples, or --of score");
    }
    Ok(())
}

fn stopped(error: TrainError) -> TrainError {
    match error {
        TrainError::Stopped => TrainError::Interrupted(
            "the pictures that are there are whole; --force starts over in the same folder".into(),
        ),
        error => error,
    }
}

impl Made {
    fn text(&self) -> String {
        let Completeness { mean_error, max_error, mean_difference } = &self.completeness;
        format!(
            "{}: {} explained with {} draws each\ncompleteness: sums of maps miss f(x) - mean f(background) by {mean_error:.4} on \
             average and {max_error:.4} at most, where it is {mean_difference:.4} on average\n",
            self.out.display(),
            human::many(self.images, "image"),
            human::count(self.samples as u64),
        )
    }
}

/// A network for images, what it takes, and the dataset that it was trained on, where that is known and there.
struct Frozen {
    network: Network,
    spec: ImageSpec,
    data: Option<PathBuf>,
}

impl Frozen {
    fn open(model: &Path) -> anyhow::Result<Self> {
        if model.is_dir() {
            return Self::of_run(model);
        }
        let file = dtkc_infer::ModelFile::open(model)?;
        let named = |error| dtkc_infer::InferError::Model { name: model.display().to_string(), error };
        let (network, metadata) = dtkc_onnx::read_network(file.bytes()).map_err(named)?;
        let spec = metadata.input.image().ok_or_else(sequences)?;
        Ok(Self { network, spec, data: None })
    }

    fn of_run(run: &Path) -> anyhow::Result<Self> {
        let saved = Saved::open(run, None, DeviceName::CPU)?;
        super::warn_unfinished(&saved);
        let mut network = saved.learner.freeze();
        network.reorder_clusters(&saved.order)?;
        let shape = network.input.image().ok_or_else(sequences)?;
        let color = shape.color().ok_or_else(|| TrainError::Mismatch(format!("{shape:?} is no image")))?;
        let resize = saved.config.data.resize.unwrap_or(Resize::Fit);
        let spec = ImageSpec { height: shape.height, width: shape.width, color, resize };
        let data = Some(saved.config.data.path).filter(|path| path.exists());
        Ok(Self { network, spec, data })
    }
}

fn sequences() -> TrainError {
    TrainError::Mismatch("the model takes sequences, and maps of importance are made of images; use another".into())
}
