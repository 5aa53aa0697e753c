//! One file per subcommand.

mod copy;
mod draw;
mod fetch;
mod import;
mod info;
mod merge;
mod outgoing;
mod preview;
mod report;
mod scan;
mod sheet;
mod subset;
mod synth;
mod views;

use clap::{Parser, Subcommand};
use dtkc_dataset::Compression;

/// Turn images or sequences into one HDF5 dataset, look at it, cut it and join it.
#[derive(Debug, Parser)]
#[command(name = "dtkc-data", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Program {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dtkc-data synth --kind glyphs --count 6000 --out glyphs.h5
  dtkc-data import photos/ --size 64x64 --color rgb --out photos.h5
  dtkc-data import CharacterTrajectories.ts.gz --out letters.h5
  dtkc-data info photos.h5
  dtkc-data preview photos.h5 --out photos.png
  dtkc-data views photos.h5 --out views.png";

#[derive(Debug, Subcommand)]
enum Command {
    /// Import images or sequences from folders, archives and data files
    Import(import::Args),
    /// Download and import a well-known dataset
    Fetch(fetch::Args),
    /// Generate a labelled dataset, no download needed
    Synth(synth::Args),
    /// Describe a dataset: shapes, storage, classes, value range
    Info(info::Args),
    /// Draw a contact sheet of images or sequences, by class where labelled
    Preview(preview::Args),
    /// Draw random views of some images, as training would make them
    Views(views::Args),
    /// Copy a part of a dataset: by count, class, range or random sample
    Subset(subset::Args),
    /// Join datasets of the same shape into one
    Merge(merge::Args),
}

impl Program {
    /// Runs the chosen subcommand.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Import(args) => import::run(args),
            Command::Fetch(args) => fetch::run(args),
            Command::Synth(args) => synth::run(args),
            Command::Info(args) => info::run(args),
            Command::Preview(args) => preview::run(args),
            Command::Views(args) => views::run(args),
            Command::Subset(args) => subset::run(args),
            Command::Merge(args) => merge::run(args),
        }
    }
}

/// Whether an output may be replaced.
#[derive(Debug, clap::Args)]
struct ForceArgs {
    /// Replace the output if it exists; one of the inputs is never replaced
    #[arg(long)]
    force: bool,
}

/// How the values of a new file are stored.
#[derive(Debug, clap::Args)]
struct StorageArgs {
    /// Compress with gzip: 1 (fast) to 9 (small) [default: not at all; 4 if no level is given]
    #[arg(long, alias = "gzip", value_name = "LEVEL", num_args = 0..=1, default_missing_value = "4",
          value_parser = clap::value_parser!(u8).range(1..=9))]
    compress: Option<u8>,
}

impl StorageArgs {
    fn compression(&self) -> Compression {
        self.compress.map_or(Compression::None, Compression::Gzip)
    }
}
