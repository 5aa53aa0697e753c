//! `dtkc-data views`: what the random views of training look like.

mod images;
mod sequences;
mod settings;

use std::path::PathBuf;

use dtkc_cli::Usage;
use dtkc_dataset::{DataError, Dataset, sample};
use dtkc_draw::Style;
use dtkc_item::ItemShape;
use dtkc_views::BatchKey;

use super::ForceArgs;
use super::copy::check_output;
use super::sheet::Row;

/// Flags of `views`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset file
    file: PathBuf,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Items, one per row
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=400))]
    rows: u16,
    /// Views of each item [default: 12 of images, 8 of sequences]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    columns: Option<u16>,
    /// How sequences are drawn: curves, pen or map, as in `preview`
    #[arg(long, value_name = "STYLE")]
    draw: Option<Style>,
    /// Draw the sums of all steps so far: places where the values are velocities
    #[arg(long)]
    cumulative: bool,
    /// Seed of the choice of items and of their views
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Settings file, or config.toml of a run: its tables augment and sequence_views, and network.reduce
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A setting such as augment.rotation=10, sequence_views.warp=0.2 or network.reduce=1; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    force: ForceArgs,
}

const EXAMPLES: &str = "\
The first column has the images as a network sees them: each scaled to its own darkest and
brightest value, large ones averaged down (network.reduce). The others have random views, with
the settings that `dtkc-train fit` has by default. A view should still be of its class: where it
is not (a 6 that became a 9), lower the number at fault and give `fit` the same --set. Sequences
are drawn in their own units, all on the same scales.

Examples:
  dtkc-data views mnist.h5 --out views.png
  dtkc-data views letters.h5 --cumulative --set sequence_views.rotation=0 --out views.png
  dtkc-data views photos.h5 --set augment.flip=0.5 --set augment.rotation=10 --out views.png
  dtkc-data views mnist.h5 --config runs/mnist/config.toml --out views.png";

/// Pixels between the images and their views.
const APART: usize = 12;

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    check_output([&args.file].into_iter().chain(&args.config), &args.out, args.force.force)?;
    let settings = settings::resolve(args.config.as_deref(), &args.set)?;
    let dataset = Dataset::open(&args.file)?;
    settings.check(dataset.kind())?;
    let all: Vec<usize> = (0..dataset.len()).collect();
    let indices = sample(&all, usize::from(args.rows), args.seed);
    let rows = names(&dataset, &indices)?.into_iter().map(|name| Row { name, ..Row::default() }).collect();
    let chosen = Chosen { indices, rows };
    match dataset.shape() {
        ItemShape::Image(_) if args.draw.is_some() || args.cumulative => {
            let text = format!("--draw and --cumulative are for sequences, and {} holds images", args.file.display());
            Err(Usage(text).into())
        }
        ItemShape::Image(shape) => images::draw(&args, &settings, &dataset, shape, chosen),
        ItemShape::Sequence { dim } => sequences::draw(&args, &settings, &dataset, dim, chosen),
        // `check` has refused them.
        ItemShape::Features(_) => Ok(()),
    }
}

/// The items of the sheet.
struct Chosen {
    /// Which they are.
    indices: Vec<usize>,
    /// The sheet's rows for them.
    rows: Vec<Row>,
}

impl Args {
    /// Views of each item.
    fn columns(&self, usual: usize) -> usize {
        self.columns.map_or(usual, usize::from)
    }

    /// The random numbers of one view.
    fn key(&self, row: usize, column: usize) -> BatchKey {
        BatchKey { seed: self.seed, epoch: row as u64, batch: column as u64 }
    }
}

/// The class of each item; empty where it is not known.
fn names(dataset: &Dataset, chosen: &[usize]) -> Result<Vec<String>, DataError> {
    let Some(labels) = dataset.labels()? else { return Ok(vec![String::new(); chosen.len()]) };
    let names = dataset.label_names()?.unwrap_or_default();
    let name = |label: i64| match usize::try_from(label) {
        Ok(label) => names.get(label).cloned().unwrap_or_else(|| label.to_string()),
        Err(_) => String::new(),
    };
    Ok(chosen.iter().map(|&index| name(labels[index])).collect())
}
