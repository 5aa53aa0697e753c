//! `dtkc-train outliers`.

use std::path::PathBuf;

use dtkc_human as human;
use dtkc_infer::ModelFile;
use dtkc_train::outliers::{self, Seen};
use serde::Serialize;

use super::writing::Writing;
use super::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  dtkc-train outliers old.onnx --data photos.h5 --out new.onnx

`dtkc-train export` does this by itself; the command is for model files that are older, or should measure by other items.

The file gets one more output, `outlier`, a number from 0 to 1 for each item: the share of the training set that is nearer to what
the training set holds. 99 % of it stay below the threshold in the file, .99; what is above is unlike anything in it, and the
farther the higher. Nothing else about the file changes. Every fourth item only counts, by its distance to what the others are.";

/// Flags of `outliers`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Model file, or the name of a bundled one.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The dataset that the model was trained on, or one like it; labels are not used.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// File to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Most items to look at, spread evenly over the dataset.
    #[arg(long, value_name = "N", default_value_t = outliers::ITEMS as u32, value_parser = clap::value_parser!(u32).range(1..))]
    items: u32,
    #[command(flatten)]
    writing: Writing,
}

/// What was written.
#[derive(Debug, Serialize)]
struct Made {
    path: PathBuf,
    bytes: usize,
    items: u64,
    threshold: f32,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let model = ModelFile::open(&args.model)?;
    let read = model.path().map(std::path::Path::to_owned).into_iter().chain([args.data.clone()]);
    args.writing.check(&args.out, read)?;
    let dataset = outliers::dataset_for(&model, &args.data)?;
    let runtime = args.writing.runtime()?;
    let seen = Seen::of_model(&runtime, &model, &dataset, args.items as usize, &args.writing.terminal())?;
    let outlier = outliers::measure(&seen)?;
    let bytes = dtkc_onnx::with_outlier(model.bytes(), &outlier)?;
    dtkc_files::write(&args.out, &bytes)?;
    let made =
        Made { path: args.out.clone(), bytes: bytes.len(), items: outlier.items, threshold: dtkc_onnx::THRESHOLD };
    if args.writing.json {
        return print_json(&made);
    }
    let (size, items) = (human::bytes(made.bytes as u64), human::count(made.items));
    print(&format!("{} ({size}): tells outliers by the distances of {items} items\n", made.path.display()))
}
