//! The command line.

mod bench;
mod cells;
mod clusters;
mod compare;
mod devices;
mod evaluate;
mod explain;
mod export;
mod features;
mod fit;
mod mismatch;
mod outliers;
mod parts;
mod report;
mod resume;
mod sweep;
mod writing;

use clap::{Parser, Subcommand};
use dtkc_cli::Terminal;
use dtkc_cli::exit::{Interrupted, Usage};
use dtkc_observe::Observer as _;
use dtkc_train::TrainError;
use dtkc_train::saved::Saved;
use serde::Serialize;

/// Finds groups in unlabelled images: trains a clustering network from a dataset file.
#[derive(Parser)]
#[command(name = "dtkc-train", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dtkc-data import photos/ --size 64x64 --out photos.h5      make a dataset
  dtkc-train fit --data photos.h5 --clusters 12 --out runs/photos
  dtkc-train fit --data photos.h5 --clusters auto --out runs/photos
  dtkc-train fit --data photos.h5 --backbone net.onnx --clusters 12 --out runs/photos
  dtkc-train resume runs/photos                              after Ctrl-C or a crash
  dtkc-train part runs/photos restart-3                      one restart of a run that several machines share
  dtkc-train evaluate runs/photos --data other.h5
  dtkc-train export runs/photos --out photos.onnx
  dtkc-train outliers old.onnx --data photos.h5 --out new.onnx
  dtkc-train clusters photos.onnx --merge 3,7 --name 4=shoes --out new.onnx
  dtkc-train explain --model runs/photos --input new/ --out why
  dtkc-train report runs/photos                              runs/photos/report.html: what was found, as a page
  dtkc-train compare --data usps.h5 mnist.h5 --methods all --runs 20 --out cmp
  dtkc-train sweep --data usps.h5 --vary loss.lambda=1,0.1,0.01,0 --runs 20 --out sweep
  dtkc-train mismatch --data mnist.h5 --epochs 100 --out mismatch

Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted (what was done is saved).";

#[derive(Subcommand)]
enum Command {
    /// Train restarts on a dataset, keep the best one (chosen without labels), write a run directory.
    Fit(Box<fit::Args>),
    /// Describe images with a network that somebody else has trained, for `fit` to find groups in what it says.
    Features(Box<features::Args>),
    /// Continue a run that was stopped, to the same result as without the stop.
    Resume(resume::Args),
    /// List the parts of a run that processes on other machines can work on, and take over what they have made.
    Parts(parts::ListArgs),
    /// Work on one part of a run, such as one restart: several machines share a run so.
    Part(parts::Args),
    /// Cluster shares of a dataset under a trained run; ACC, NMI, ARI and confusion where it has labels.
    Evaluate(evaluate::Args),
    /// Write the model file of a run, checked with ONNX Runtime.
    Export(export::Args),
    /// Give a model file that has none what tells items that are unlike anything in the training set.
    Outliers(outliers::Args),
    /// List, merge, split and name the clusters of a model file.
    Clusters(clusters::Args),
    /// Show which pixels of images speak for their cluster (expected gradients, as SHAP has them).
    Explain(Box<explain::Args>),
    /// Write what a run found as one page with pictures, curves and a map; or as Markdown or JSON.
    Report(report::Args),
    /// Run several methods on several datasets and write the paper's table of them.
    Compare(Box<compare::Args>),
    /// Run one method with several values of its settings; tables and plots of them.
    Sweep(Box<sweep::Args>),
    /// Look into networks while they learn: does what they are trained for serve the clusters?
    Mismatch(Box<mismatch::Args>),
    /// List what this build and this machine can train on.
    Devices(devices::Args),
    /// Time a training step and its parts.
    Bench(bench::Args),
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Fit(args) => fit::run(*args),
            Command::Features(args) => features::run(&args),
            Command::Resume(args) => resume::run(args),
            Command::Parts(args) => parts::list(&args),
            Command::Part(args) => parts::run(&args),
            Command::Evaluate(args) => evaluate::run(&args),
            Command::Export(args) => export::run(&args),
            Command::Outliers(args) => outliers::run(&args),
            Command::Clusters(args) => clusters::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Compare(args) => compare::run(*args),
            Command::Sweep(args) => sweep::run(*args),
            Command::Mismatch(args) => mismatch::run(*args),
            Command::Devices(args) => devices::run(&args),
            Command::Bench(args) => bench::run(&args),
        }
        .map_err(classify)
    }
}

/// Gives errors that are the user's to mend, and interrupts, their own exit codes.
fn classify(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<TrainError>() {
        Some(TrainError::Interrupted(text)) => Interrupted(text.clone()).into(),
        Some(TrainError::Stopped) => Interrupted("stopped before anything was written".into()).into(),
        Some(TrainError::Setting(_) | TrainError::Config(_) | TrainError::Device { .. }) => {
            Usage(format!("{error:#}")).into()
        }
        _ => error,
    }
}

/// Says on standard error when a network comes from the middle of training.
fn warn_unfinished(saved: &Saved) {
    if let Some(about) = &saved.unfinished {
        Terminal::new(false).warn(about);
    }
}

/// Prints a value as JSON on standard output.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Prints text on standard output; a closed pipe is an error that ends the program quietly.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
