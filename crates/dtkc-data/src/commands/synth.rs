//! `dtkc-data synth`: a labelled dataset without a download.

use std::path::PathBuf;

use dtkc_cli::{Terminal, interrupt};
use dtkc_data::import::Size;
use dtkc_data::synth::{SynthKind, SynthOptions, generate};

use super::{ForceArgs, StorageArgs, report};

/// Flags of `synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What to generate: glyphs (ten hand-drawn-looking stroke figures) or signs (any number of made-up characters)
    #[arg(long, default_value = "glyphs")]
    kind: SynthKind,
    /// How many classes of signs [default: 100]
    #[arg(long, value_name = "N")]
    classes: Option<usize>,
    /// Dark ink on white paper, not the opposite
    #[arg(long)]
    dark: bool,
    /// How many images; as many as there are classes hold each once
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Another seed gives another set; the same seed always gives the same one
    #[arg(long, default_value = "0")]
    seed: u64,
    /// Size of the images, height x width
    #[arg(long, value_name = "HxW", default_value = "28x28")]
    size: Size,
    /// Name of the dataset [default: its kind]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    force: ForceArgs,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// No progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  dtkc-data synth --kind glyphs --count 6000 --out glyphs.h5
  dtkc-data synth --count 60000 --seed 7 --size 32x32 --out glyphs32.h5
  dtkc-data synth --kind signs --classes 300 --count 6000 --dark --out signs.h5

A larger set begins with the smaller one of the same seed and size.";

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    interrupt::install();
    let options = SynthOptions {
        out: args.out,
        kind: args.kind,
        classes: args.classes,
        dark: args.dark,
        count: args.count,
        seed: args.seed,
        size: args.size,
        name: args.name.unwrap_or_else(|| args.kind.name().to_owned()),
        compression: args.storage.compression(),
        force: args.force.force,
    };
    let summary = generate(&options, &Terminal::new(args.quiet)).map_err(report::failed)?;
    report::done(&summary, args.json, args.quiet)
}
