//! `dtkc-label merge PARTS... --output OUT`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use dtkc_cli::Terminal;
use dtkc_cli::exit::Interrupted;
use dtkc_label::merge::MergeOptions;
use dtkc_label::{duplicates, job};
use dtkc_observe::Observer;
use dtkc_source::remote::{self, At, Shown};
use dtkc_store::work;
use serde_json::json;
use tempfile::TempDir;

use super::outgoing::{May, Outgoing};
use super::{failed, report};

const EXAMPLES: &str = "\
Examples:
  dtkc-label merge part-*.csv --output labels.csv
  dtkc-label merge part-*.parquet --output labels.parquet --gallery clusters.html

Parts and output may be in a store, as in 's3://bucket/part-*.parquet'.
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
        let terminal = Terminal::new(self.quiet);
        let inputs: Vec<String> = self.parts.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let outgoing = Outgoing::of(&self.output, &inputs, May { force: self.force, resume: false }, &terminal)?;
        let (parts, _brought) = bring_parts(&self.parts, &terminal)?;
        let options = MergeOptions {
            parts,
            output: outgoing.as_ref().map_or(self.output, Outgoing::target),
            failed: self.failed,
            force: self.force,
            gallery: self.gallery.map(|page| (page, self.gallery_images)),
        };
        let started = std::time::Instant::now();
        let mut merged = match (dtkc_label::merge(&options, &terminal).map_err(failed), &outgoing) {
            (Err(error), Some(outgoing)) => return Err(outgoing.unfinished(error)),
            (merged, _) => merged?,
        };
        if let Some(outgoing) = &outgoing {
            match merged.interrupted {
                true => outgoing.leave(),
                false => outgoing.send(&terminal)?,
            }
            merged.failed_list = merged.failed_list.as_ref().map(|path| outgoing.given(path));
        }
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

/// The parts on this machine: those in a store are brought, with what lies beside them. They go with the second answer.
fn bring_parts(parts: &[PathBuf], observer: &dyn Observer) -> anyhow::Result<(Vec<PathBuf>, Option<TempDir>)> {
    if !parts.iter().any(|part| remote::is(part)) {
        return Ok((parts.to_vec(), None));
    }
    let folder = work::temporary()?;
    let mut brought = Vec::new();
    for part in parts {
        if !remote::is(part) {
            brought.push(part.clone());
            continue;
        }
        for part in dtkc_source::expand(part)? {
            brought.push(bring_part(&part, &folder.path().join(brought.len().to_string()), observer)?);
        }
    }
    Ok((brought, Some(folder)))
}

fn bring_part(part: &Path, folder: &Path, observer: &dyn Observer) -> anyhow::Result<PathBuf> {
    fs_err::create_dir(folder)?;
    let url = part.to_string_lossy();
    let target = folder.join(work::last_part(&url));
    dtkc_store::download(&url, &target, observer).with_context(|| Shown(&url).to_string())?;
    for beside in [job::path_for, duplicates::sidecar::path_for] {
        let url = beside(part).to_string_lossy().into_owned();
        if matches!(remote::at(Path::new(&url)), Ok(At::File(_))) {
            dtkc_store::download(&url, &beside(&target), observer).with_context(|| Shown(&url).to_string())?;
        }
    }
    Ok(target)
}
