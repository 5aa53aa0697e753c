//! `dtkc-train resume`, and what `fit` does once its run directory is there.

use std::path::PathBuf;

use dtkc_cli::Terminal;
use dtkc_train::config::RunConfig;
use dtkc_train::device::DeviceName;
use dtkc_train::export::{self, ExportOptions};
use dtkc_train::run_dir::RunDir;
use dtkc_train::saved::Saved;
use dtkc_train::{TrainError, parts, pipeline, pretrained};

use super::{print, print_json};

const EXAMPLES: &str = "\
Examples:
  dtkc-train resume runs/usps
  dtkc-train resume runs/usps --threads 1      the result does not depend on the threads
  dtkc-train resume runs/usps --data /new/place/usps.h5      after the dataset was moved

Resuming a finished run trains nothing and writes its summary, model and report again. A larger plan.runs in config.toml
adds restarts to it.";

/// Flags of `resume`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Threads; 0 takes all cores [default: as the run was started].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Where the dataset is now, if it was moved; its content must be the same.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    after: After,
}

/// What happens after training, and what is shown.
#[derive(clap::Args)]
pub(crate) struct After {
    /// Do not write model.onnx (no ONNX Runtime is needed then).
    #[arg(long)]
    no_export: bool,
    /// Do not write report.html.
    #[arg(long)]
    no_report: bool,
    /// The ONNX Runtime library, or the folder that holds it.
    #[arg(long, value_name = "PATH")]
    onnxruntime: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// No progress and no table.
    #[arg(long)]
    quiet: bool,
    /// Stop as after Ctrl-C when standard input ends: how `compare` stops its cells.
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    args.after.begin();
    let run = RunDir::open(&args.run)?;
    let mut config = taken_up(&run)?;
    dtkc_ops::set_threads(args.threads.unwrap_or(config.run.threads));
    let moved = args.data.as_deref().map(std::path::absolute).transpose()?;
    let is_moved = moved.is_some();
    config.data.path = moved.unwrap_or(config.data.path);
    pipeline::check_data(&config)?;
    if is_moved {
        // Only now: a wrong file must not take the place of the right one.
        config.write(&run.config())?;
    }
    go_on(&run, config, &args.after, &args.after.terminal())
}

/// The configuration of a run that goes on, with all that other processes have made for it.
pub(super) fn taken_up(run: &RunDir) -> Result<RunConfig, TrainError> {
    let mut config = RunConfig::read(&run.config())?;
    parts::join(run, &config)?;
    if pretrained::take_more(run, &mut config)? {
        config.write(&run.config())?;
    }
    Ok(config)
}

impl After {
    /// The ONNX Runtime library that was named.
    pub(super) fn onnxruntime(&self) -> Option<PathBuf> {
        self.onnxruntime.clone()
    }

    /// The first thing that happens.
    pub(crate) fn begin(&self) {
        if self.stop_with_input {
            dtkc_cli::interrupt::stop_with_input();
        }
    }

    /// Where progress is shown.
    pub(crate) fn terminal(&self) -> Terminal {
        Terminal::new(self.quiet || self.json)
    }
}

/// Trains what is left, writes summary, model and report, prints.
pub(crate) fn go_on(run: &RunDir, config: RunConfig, after: &After, terminal: &Terminal) -> anyhow::Result<()> {
    let summary = pipeline::complete(run, config, terminal)?;
    if after.json {
        print_json(&summary)?;
    } else if !after.quiet {
        print(&summary.table())?;
    }
    // The page needs no ONNX Runtime: who has none still gets it.
    let exported = if after.no_export { Ok(()) } else { export(run, after, terminal) };
    if !after.no_report {
        super::report::at_the_end(run, terminal, after.quiet || after.json)?;
    }
    exported
}

fn export(run: &RunDir, after: &After, terminal: &Terminal) -> anyhow::Result<()> {
    let saved = Saved::open(run.root(), None, DeviceName::CPU)?;
    let options = ExportOptions { out: run.model(), data: None, onnxruntime: after.onnxruntime.clone(), resize: None };
    let exported = export::export(&saved, &options, terminal).map_err(|error| {
        let again = format!("dtkc-train export {}", run.root().display());
        match error {
            TrainError::Stopped => TrainError::Interrupted(format!(
                "training is done and saved, only the model file was not written; `{again}` writes it"
            ))
            .into(),
            error => anyhow::Error::from(error)
                .context(format!("training is done and saved, only the export failed (try `{again}`)")),
        }
    })?;
    if !after.quiet && !after.json {
        print(&super::export::line(&exported))?;
    }
    Ok(())
}
