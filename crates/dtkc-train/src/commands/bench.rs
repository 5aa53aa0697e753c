//! `dtkc-train bench`.

use dtkc_methods::Method;
use dtkc_train::bench::{self, BenchOptions};
use dtkc_train::device::DeviceName;

use super::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  dtkc-train bench                                          28x28x1, k = 10, as for MNIST
  dtkc-train bench --method ddc --threads 1
  dtkc-train bench --size 64 --channels 3 --clusters 100    as for COIL-100
  dtkc-train bench --method dec --batch 256                 a step of its autoencoder
  scripts/bench-step.sh, scripts/bench-autoencoder.sh       beside PyTorch, in one run";

/// Flags of `bench`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Rows per step.
    #[arg(long, value_name = "N", default_value_t = 120)]
    batch: usize,
    /// Side of the images.
    #[arg(long, value_name = "N", default_value_t = 28)]
    size: usize,
    /// Channels of the images.
    #[arg(long, value_name = "N", default_value_t = 1)]
    channels: usize,
    /// Number of clusters.
    #[arg(long, value_name = "N", default_value_t = 10)]
    clusters: usize,
    /// Threads; 0 takes all cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// dtkc, ddc, or a method whose pretraining is timed: dec, idec, dcn, dbc, spectralnet.
    #[arg(long, default_value_t = Method::Dtkc)]
    method: Method,
    /// Whose settings [default: authors for dtkc and ddc, else the method's own].
    #[arg(long)]
    preset: Option<String>,
    /// Steps that count.
    #[arg(long, value_name = "N", default_value_t = 30)]
    steps: usize,
    /// cpu, cuda:N, wgpu, vulkan, metal or rocm:N.
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::CPU)]
    device: DeviceName,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    dtkc_ops::set_threads(args.threads);
    let measured = bench::measure(&BenchOptions {
        batch: args.batch,
        size: args.size,
        channels: args.channels,
        clusters: args.clusters,
        method: args.method,
        preset: args.preset.clone().or_else(|| published(args.method)),
        steps: args.steps.max(1),
        device: args.device,
    })?;
    if args.json { print_json(&measured) } else { print(&measured.text()) }
}

/// The settings that PyTorch's side of `scripts/bench-step.sh` has.
fn published(method: Method) -> Option<String> {
    matches!(method, Method::Dtkc | Method::Ddc).then(|| "authors".to_owned())
}
