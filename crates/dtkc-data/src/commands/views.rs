//! `dtkc-data views`: what the random views of training look like.

mod settings;

use std::path::PathBuf;

use anyhow::Context;
use dtkc_cli::Usage;
use dtkc_dataset::{DataError, Dataset, sample};
use dtkc_views::{BatchKey, ViewMaker, reduced, seen_pixels};

use super::ForceArgs;
use super::copy::check_output;
use super::sheet::{Row, Sheet};

/// Flags of `views`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset file
    file: PathBuf,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Images, one per row
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=400))]
    rows: u16,
    /// Views of each image
    #[arg(long, default_value_t = 12, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    columns: u16,
    /// Seed of the choice of images and of their views
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Settings file, or config.toml of a run: its augment table and network.reduce
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A setting such as augment.rotation=10 or network.reduce=1; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    force: ForceArgs,
}

const EXAMPLES: &str = "\
The first column has the images as a network sees them: each scaled to its own darkest and
brightest value, large ones averaged down (network.reduce). The others have random views, with
the settings that `dtkc-train fit` has by default. A view should still be of its class: where it
is not (a 6 that became a 9), lower the number at fault and give `fit` the same --set.

Examples:
  dtkc-data views mnist.h5 --out views.png
  dtkc-data views photos.h5 --set augment.flip=0.5 --set augment.rotation=10 --out views.png
  dtkc-data views mnist.h5 --config runs/mnist/config.toml --out views.png";

/// Pixels between the images and their views.
const APART: usize = 12;

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    check_output([&args.file].into_iter().chain(&args.config), &args.out, args.force.force)?;
    let settings = settings::resolve(args.config.as_deref(), &args.set)?;
    let dataset = Dataset::open(&args.file)?;
    let shape = dataset.require_images()?;
    let color = shape.color().context("only gray and RGB images can be drawn")?;
    let factor = settings.factor(shape)?;
    let seen = reduced(shape, factor);
    let maker = ViewMaker::new(&settings.augment, seen).map_err(|error| Usage(error.to_string()))?;
    let all: Vec<usize> = (0..dataset.len()).collect();
    let chosen = sample(&all, usize::from(args.rows), args.seed);
    let rows = names(&dataset, &chosen)?.into_iter().map(|name| Row { name, ..Row::default() }).collect();
    let columns = usize::from(args.columns);
    let title = format!("{}: images of {shape}{} and random views of them", dataset.name(), as_seen(factor));
    let sheet = Sheet {
        title,
        rows,
        columns: 1 + columns,
        apart: APART,
        height: seen.height,
        width: seen.width,
        color,
        drawn: false,
    };
    println!("{}", settings.described());
    sheet.write(&args.out, |row| -> Result<Vec<u8>, DataError> {
        let image = dataset.read(&chosen[row..=row])?;
        let clean = seen_pixels(&image, shape, factor);
        let mut values = clean.clone();
        for column in 0..columns {
            let key = BatchKey { seed: args.seed, epoch: row as u64, batch: column as u64 };
            values.extend(maker.second_views(&clean, key));
        }
        Ok(values.into_iter().map(|value| (value * 255.0).round() as u8).collect())
    })
}

/// Says how much smaller than the file has them images are shown.
fn as_seen(factor: usize) -> String {
    if factor == 1 { String::new() } else { format!(" averaged down by {factor}") }
}

/// The class of each image; empty where it is not known.
fn names(dataset: &Dataset, chosen: &[usize]) -> Result<Vec<String>, DataError> {
    let Some(labels) = dataset.labels()? else { return Ok(vec![String::new(); chosen.len()]) };
    let names = dataset.label_names()?.unwrap_or_default();
    let name = |label: i64| match usize::try_from(label) {
        Ok(label) => names.get(label).cloned().unwrap_or_else(|| label.to_string()),
        Err(_) => String::new(),
    };
    Ok(chosen.iter().map(|&index| name(labels[index])).collect())
}
