//! A dataset that goes to a store: made on the disk, sent when it is whole, and removed here.

use std::path::PathBuf;

use anyhow::Context;
use dtkc_cli::exit::Interrupted;
use dtkc_cli::{Usage, interrupt};
use dtkc_data::import::Summary;
use dtkc_observe::Observer;
use dtkc_source::remote;
use dtkc_store::{Delivery, work};
use tempfile::TempDir;

use super::import::Args;

/// Files beside a dataset, by the endings of their names.
const BESIDE: [&str; 2] = [".skipped.csv", ".passed-over.csv"];

/// A dataset on its way to a store.
pub struct Outgoing {
    url: String,
    delivery: Delivery,
    folder: TempDir,
}

impl Outgoing {
    /// Prepares it where `--out` is an address; nothing is read before it is known that it can be written.
    pub fn of(args: &Args) -> anyhow::Result<Option<Self>> {
        let url = args.out.to_string_lossy().into_owned();
        if !remote::is_text(&url) {
            return Ok(None);
        }
        for source in &args.sources {
            for source in dtkc_source::expand_ranges(&source.to_string_lossy())? {
                if remote::reads(&source, &url)? {
                    let text = format!("{url} is one of the sources, or lies among them; choose another --out");
                    return Err(Usage(text).into());
                }
            }
        }
        let folder = work::temporary()?;
        let delivery = Delivery::prepare(&url, folder.path(), args.common.force.force);
        let delivery = delivery.with_context(|| remote::Shown(&url).to_string())?;
        Ok(Some(Self { url, delivery, folder }))
    }

    /// Where the dataset is made.
    pub fn target(&self) -> PathBuf {
        self.delivery.target()
    }

    /// Sends it. What could not be sent is kept: it may have taken hours.
    pub fn send(self, summary: &mut Summary, observer: &dyn Observer) -> anyhow::Result<()> {
        if let Err(error) = self.delivery.send(&BESIDE, observer) {
            let target = self.delivery.target();
            let _ = self.folder.keep();
            let kept = format!("the dataset is kept in {}", target.display());
            if interrupt::requested() {
                return Err(Interrupted(format!("{} was not sent; {kept}", self.url)).into());
            }
            anyhow::bail!("{}: {error}; {kept}", self.url);
        }
        summary.out = self.url.clone().into();
        for list in [&mut summary.skipped_file, &mut summary.passed_over_file] {
            *list = list.as_ref().map(|path| self.delivery.given(path));
        }
        Ok(())
    }
}
