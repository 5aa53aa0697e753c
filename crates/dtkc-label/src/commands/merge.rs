//! `dtkc-label merge PARTS... --output OUT`.

use std::path::PathBuf;

use clap::Args;
use dtkc_cli::Terminal;
use dtkc_cli::exit::Interrupted;
use dtkc_label::merge::MergeOptions;
use serde_json::json;

use super::{failed, report};

const EXAMPLES: &str = "\
Examples:
  dtkc-label merge part-*.csv --output labels.csv
  dtkc-label merge part-*.parquet --output labels.parquet --gallery clusters.html

Every shard must be there, complete, with the .job.json that lies beside it. The result is what one undivided run
gives; where the shards were given --duplicates, near-duplicates are found here. Parts and result may have different endings; an .h5 result needs .h5 parts.";

/// Joins the parts of a sharded run to the undivided result
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// The files that the shards wrote, in any order
    #[arg(required = true, value_name = "PART")]
    parts: Vec<PathBuf>,

    /// File that ends in .csv, .jsonl, .parquet or .h5
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Write one page with the most and least certain images; the inputs are read again
    #[arg(long, value_name = "FILE.html")]
    gallery: Option<PathBuf>,

    /// Images of each kind and cluster on that page
    #[arg(long, value_name = "N", default_value_t = 12, requires = "gallery")]
    gallery_images: usize,

    /// Where images that failed are listed [default: OUT.failed.csv]
    #[arg(long, value_name = "FILE.csv")]
    failed: Option<PathBuf>,

    /// Replace the output if it exists; a part is never replaced
    #[arg(long)]
    force: bool,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    /// No progress and no table; warnings and errors only
    #[arg(short, long)]
    quiet: bool,
}

impl MergeArgs {
    pub fn run(self) -> anyhow::Result<()> {
        let options = MergeOptions {
            parts: self.parts,
            output: self.output,
            failed: self.failed,
            force: self.force,
            gallery: self.gallery.map(|page| (page, self.gallery_images)),
        };
        let started = std::time::Instant::now();
        let merged = dtkc_label::merge(&options, &Terminal::new(self.quiet)).map_err(failed)?;
        if merged.interrupted {
            return Err(Interrupted("nothing was written; the parts are as they were".into()).into());
        }
        if self.json {
            let seconds = started.elapsed().as_secs_f64();
            let more = json!({ "failed_list": merged.failed_list, "duplicates": merged.duplicates });
            report::json(&merged.summary, seconds, merged.summary.images, more)?;
        } else if !self.quiet {
            report::table(&merged.summary, merged.kind, false)?;
            report::duplicates(merged.duplicates.as_ref());
        }
        report::warn_failures(&merged.summary, merged.kind, merged.failed_list.as_deref());
        Ok(())
    }
}
