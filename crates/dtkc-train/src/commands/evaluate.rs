//! `dtkc-train evaluate`.

use std::path::PathBuf;

use dtkc_cli::Terminal;
use dtkc_train::device::DeviceName;
use dtkc_train::saved::Saved;

use super::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  dtkc-train evaluate runs/mnist --data mnist-test.h5
  dtkc-train evaluate runs/mnist --data mnist-test.h5 --json | jq .acc

Clusters are numbered as in the exported model: 0 is the largest of the training set.";

/// Flags of `evaluate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Dataset to evaluate on; its images must have the size that the run was trained on.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Restart to use, counted from 0 [default: the one that was kept].
    #[arg(long, value_name = "N")]
    restart: Option<usize>,
    /// cpu, cuda:N, wgpu, vulkan, metal or rocm:N.
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::CPU)]
    device: DeviceName,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    dtkc_ops::set_threads(args.threads);
    let saved = Saved::open(&args.run, args.restart, args.device)?;
    super::warn_unfinished(&saved);
    let evaluation = dtkc_train::evaluate::evaluate(&saved, &args.data, &Terminal::new(args.json))?;
    if args.json { print_json(&evaluation) } else { print(&evaluation.text()) }
}
