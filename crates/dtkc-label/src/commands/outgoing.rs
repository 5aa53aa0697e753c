//! Rows that go to a store: the run keeps its journal and makes its output in a folder of this machine, and sends what is whole.

use std::path::{Path, PathBuf};

use anyhow::Context;
use dtkc_cli::{Usage, interrupt};
use dtkc_label::{duplicates, failures, job, journal};
use dtkc_observe::Observer;
use dtkc_source::remote::{self, Shown};
use dtkc_store::{Delivery, work};

/// An output on its way to a store.
pub struct Outgoing {
    url: String,
    folder: PathBuf,
    delivery: Delivery,
    /// Whether the output was there, complete, and lies here for a look only.
    brought: bool,
}

/// What may replace what is there.
#[derive(Debug, Clone, Copy)]
pub struct May {
    /// Everything.
    pub force: bool,
    /// What an interrupted run has left.
    pub resume: bool,
}

impl Outgoing {
    /// Prepares it where `output` is an address. Nothing is read before it is known that the output can be written.
    pub fn of(output: &Path, inputs: &[String], may: May, observer: &dyn Observer) -> anyhow::Result<Option<Self>> {
        let url = output.to_string_lossy().into_owned();
        if !remote::is_text(&url) {
            return Ok(None);
        }
        for input in inputs {
            for input in dtkc_source::expand_ranges(input)? {
                if remote::reads(&input, &url)? {
                    let text = format!("{url} is one of the inputs, or lies among them; choose another output");
                    return Err(Usage(text).into());
                }
            }
        }
        let folder = work::folder_of(&url)?;
        let mut outgoing = Self { delivery: Delivery::known(&url, &folder), url, folder, brought: false };
        let said = |outgoing: &Self| Shown(&outgoing.url).to_string();
        let target = outgoing.target();
        let kept = journal::exists(&target) || target.exists();
        if kept && !may.resume && !may.force {
            let text = format!(
                "{}: a run that was not finished or not sent is kept in {}; add --resume to go on with it, or --force to start over",
                outgoing.url,
                outgoing.folder.display()
            );
            return Err(Usage(text).into());
        }
        if may.resume && !kept {
            outgoing.brought = outgoing.bring_back(observer).with_context(|| said(&outgoing))?;
        }
        let replaces = may.force || (may.resume && (kept || target.exists()));
        outgoing.delivery =
            Delivery::prepare(&outgoing.url, &outgoing.folder, replaces).with_context(|| said(&outgoing))?;
        Ok(Some(outgoing))
    }

    /// What is complete already is looked at here.
    fn bring_back(&self, observer: &dyn Observer) -> anyhow::Result<bool> {
        let target = self.target();
        let address = |path: &Path| self.delivery.given(path).to_string_lossy().into_owned();
        for path in [target.clone(), job::path_for(&target)] {
            let url = address(&path);
            if matches!(remote::at(Path::new(&url)), Ok(remote::At::File(_))) {
                dtkc_store::download(&url, &path, observer)?;
            }
        }
        Ok(target.exists())
    }

    /// Where rows are written.
    pub fn target(&self) -> PathBuf {
        self.delivery.target()
    }

    /// Where what is on its way is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name under which people know a file beside the output.
    pub fn given(&self, path: &Path) -> PathBuf {
        self.delivery.given(path)
    }

    /// Sends what was made, and leaves nothing here. What cannot be sent stays for `--resume`.
    pub fn send(&self, observer: &dyn Observer) -> anyhow::Result<()> {
        let target = self.target();
        let endings = [
            failures::path_for(&target),
            failures::passed_path_for(&target),
            duplicates::path_for(&target),
            duplicates::sidecar::path_for(&target),
            job::path_for(&target),
        ];
        let start = target.to_string_lossy().len();
        let endings: Vec<String> = endings.iter().map(|path| path.to_string_lossy()[start..].to_owned()).collect();
        let endings: Vec<&str> = endings.iter().map(String::as_str).collect();
        if let Err(error) = self.delivery.send(&endings, observer) {
            let kept =
                format!("all rows are kept in {}; the same command with --resume sends them", self.folder.display());
            if interrupt::requested() {
                return Err(dtkc_cli::exit::Interrupted(format!("{} was not sent; {kept}", self.url)).into());
            }
            anyhow::bail!("{}: {error}; {kept}", self.url);
        }
        self.leave();
        Ok(())
    }

    /// Whether there is nothing to send, because it was all there before.
    pub fn is_there(&self, complete_already: bool) -> bool {
        self.brought && complete_already
    }

    /// What is said when the run did not come to its end; what it has left is kept, or there is nothing of it.
    pub fn unfinished(&self, error: anyhow::Error) -> anyhow::Error {
        if !journal::exists(&self.target()) {
            if self.brought || !self.target().exists() {
                self.leave();
            }
            return error;
        }
        if error.is::<Usage>() || error.is::<dtkc_cli::exit::Interrupted>() {
            return error;
        }
        anyhow::anyhow!(
            "{error:#}; the rows so far are kept in {}, and the same command with --resume goes on",
            self.folder.display()
        )
    }

    /// Removes the folder here.
    pub fn leave(&self) {
        // What cannot be removed is in nobody's way: the next run of this output finds it complete, and replaces it when forced.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // Only where nothing is in it: a run that did not begin leaves nothing.
        let _ = std::fs::remove_dir(&self.folder);
    }
}
