//! `dtkc-data fetch`: a well-known dataset by its name.

use std::path::PathBuf;

use dtkc_cli::{Terminal, interrupt};
use dtkc_data::fetch::{FetchOptions, fetch};
use dtkc_data::import::ImportOptions;

use super::import::{CommonArgs, LookArgs};
use super::report;

/// Flags of `fetch`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// mnist, fashion-mnist, usps, svhn, coil-100, character-trajectories or arabic-digits
    name: String,
    /// The dataset file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A folder that holds the publisher's files already; nothing is downloaded
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// A mirror below which the files have their usual names
    #[arg(long, value_name = "URL", env = "DTKC_BASE_URL")]
    base_url: Option<String>,
    /// Where downloads are kept, finished or not [default: dtkc below the user's cache folder]
    #[arg(long, value_name = "DIR", env = "DTKC_CACHE")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    common: CommonArgs,
}

const EXAMPLES: &str = "\
Examples:
  dtkc-data fetch mnist --out mnist.h5
  dtkc-data fetch coil-100 --size 64x64 --out coil.h5
  dtkc-data fetch character-trajectories --classes a,b,c,d,e,g,h,l,m,n --out letters.h5
  dtkc-data fetch usps --from ~/Downloads --out usps.h5

A download that was cut goes on where it stopped. Files are checked against the published SHA-256 sums.";

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<()> {
    interrupt::install();
    let mut options = ImportOptions::new(&args.out);
    args.common.apply(&mut options);
    options.wanted = args.look.wanted();
    let places = FetchOptions { from: args.from, base_url: args.base_url, cache: args.cache };
    let terminal = Terminal::new(args.common.quiet);
    let summary = fetch(&args.name, &places, &options, &terminal).map_err(report::failed)?;
    report::done(&summary, args.common.json, args.common.quiet)
}
