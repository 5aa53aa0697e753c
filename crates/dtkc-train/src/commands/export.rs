//! `dtkc-train export`.

use dtkc_item::Resize;
use std::path::PathBuf;

use dtkc_human as human;
use dtkc_train::device::DeviceName;
use dtkc_train::export::{self, ExportOptions, Exported};
use dtkc_train::run_dir;
use dtkc_train::saved::Saved;

use super::writing::Writing;
use super::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  dtkc-train export runs/usps                          writes runs/usps/model.onnx
  dtkc-train export runs/usps --out usps.onnx --restart 3

Of a run that was stopped it writes the best network so far; the run can still be resumed.

The file is run with ONNX Runtime on images of the training set first; it is written only if the probabilities agree
within 1e-5 and every image that is not a near tie gets the same cluster.";

/// Flags of `export`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// File to write [default: RUN/model.onnx].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Restart to export, counted from 0 [default: the one that was kept].
    #[arg(long, value_name = "N")]
    restart: Option<usize>,
    /// Dataset for the comparison and for distances of outliers [default: the one that the run was trained on].
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// How new images of another size become the network's: fit (pads), stretch or crop [default: as those of the dataset did].
    #[arg(long, value_name = "HOW")]
    resize: Option<Resize>,
    #[command(flatten)]
    writing: Writing,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let saved = Saved::open(&args.run, args.restart, DeviceName::CPU)?;
    if let Some(out) = &args.out {
        let data = args.data.as_deref().unwrap_or(&saved.config.data.path);
        let refused = run_dir::files_read(&args.run, saved.restart).chain([data.to_owned()]);
        args.writing.check(out, refused)?;
    }
    let options = ExportOptions {
        out: args.out.clone().unwrap_or_else(|| args.run.join("model.onnx")),
        data: args.data.clone(),
        onnxruntime: args.writing.onnxruntime.clone(),
        resize: args.resize,
    };
    let exported = export::export(&saved, &options, &args.writing.terminal())?;
    super::warn_unfinished(&saved);
    if args.writing.json { print_json(&exported) } else { print(&line(&exported)) }
}

/// One line about what was written.
pub(super) fn line(exported: &Exported) -> String {
    let Exported { path, bytes, restart, parity, .. } = exported;
    let size = human::bytes(*bytes as u64);
    format!(
        "{} ({size}, restart {restart}): ONNX Runtime agrees on {} items within {:.1e}\n",
        path.display(),
        parity.images,
        parity.max_difference
    )
}
