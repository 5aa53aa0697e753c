//! Flags of commands that write a model file.

use std::path::{Path, PathBuf};

use dtkc_cli::{Terminal, Usage};
use dtkc_files::Sources;
use dtkc_infer::Runtime;

/// What they have in common.
#[derive(clap::Args)]
pub(crate) struct Writing {
    /// The ONNX Runtime library, or the folder that holds it.
    #[arg(long, value_name = "PATH")]
    pub(super) onnxruntime: Option<PathBuf>,
    /// Replace the file that --out names if it exists; a file that is read is never replaced.
    #[arg(long)]
    force: bool,
    /// Print the result as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl Writing {
    /// Refuses an output that is one of the files that are read, or that exists and was not given up.
    pub(super) fn check(&self, out: &Path, read: impl IntoIterator<Item = PathBuf>) -> anyhow::Result<()> {
        Ok(Sources::of(read).check(out, self.force).map_err(|refused| Usage(refused.to_string()))?)
    }

    pub(super) fn runtime(&self) -> anyhow::Result<Runtime> {
        Ok(Runtime::find(self.onnxruntime.as_deref())?)
    }

    /// Where progress is shown.
    pub(super) fn terminal(&self) -> Terminal {
        Terminal::new(self.json)
    }
}
