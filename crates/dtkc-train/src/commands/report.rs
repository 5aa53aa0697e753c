//! `dtkc-train report`, and what `fit` and `resume` write at their end.

use std::path::{Path, PathBuf};

use dtkc_cli::{Terminal, Usage};
use dtkc_dataset::Dataset;
use dtkc_files::Sources;
use dtkc_human as human;
use dtkc_observe::Observer;
use dtkc_train::TrainError;
use dtkc_train::config::RunConfig;
use dtkc_train::device::DeviceName;
use dtkc_train::report::{self, Asked, Format};
use dtkc_train::run_dir::{self, RunDir};
use dtkc_train::saved::Saved;

use super::print;

const EXAMPLES: &str = "\
Examples:
  dtkc-train report runs/photos                            writes runs/photos/report.html: open it in a browser
  dtkc-train report runs/photos --out photos.html
  dtkc-train report runs/photos --out notes.md             the facts without pictures; .json for programs
  dtkc-train report runs/photos --data new.h5 --out new.html    what the network says about other data

The page needs no network and no other file: send it, print it, keep it. docs/reading-a-report.md says what its parts mean.
Of a run that was stopped it shows the best network so far; the run can still be resumed.";

/// Flags of `report`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Dataset to show [default: the one that the run was trained on].
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// File to write [default: RUN/report.html].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// html, md or json [default: as the name of --out ends].
    #[arg(long, value_name = "FORM")]
    format: Option<Format>,
    /// Restart to show, counted from 0 [default: the one that was kept].
    #[arg(long, value_name = "N")]
    restart: Option<usize>,
    /// cpu, cuda:N, wgpu, vulkan, metal or rocm:N.
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::CPU)]
    device: DeviceName,
    /// Threads; 0 takes all cores. The report does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Replace the file that --out names if it exists; a file that is read is never replaced.
    #[arg(long)]
    force: bool,
    /// No progress.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    dtkc_ops::set_threads(args.threads);
    let format = match (args.format, &args.out) {
        (Some(format), _) => format,
        (None, Some(out)) => Format::of(out).map_err(Usage)?,
        (None, None) => Format::Html,
    };
    let out = args.out.clone().unwrap_or_else(|| args.run.join("report").with_extension(format.extension()));
    let saved = match Saved::open(&args.run, args.restart, args.device) {
        Err(TrainError::NothingTrained(why)) if args.restart.is_none() && args.data.is_none() => {
            return begun(args, format, &out, why);
        }
        saved => saved?,
    };
    let data = args.data.clone().unwrap_or_else(|| saved.config.data.path.clone());
    if args.out.is_some() {
        // The model is not read, but nobody would want it to become a page.
        let kept = [data.clone(), run_dir::model_path(&args.run)];
        Sources::of(run_dir::files_read(&args.run, saved.restart).chain(kept))
            .check(&out, args.force)
            .map_err(|refused| Usage(refused.to_string()))?;
    }
    super::warn_unfinished(&saved);
    let terminal = Terminal::new(args.quiet);
    let is_training_data = is_training_data(&saved, &data, args.data.is_some())?;
    let asked = Asked {
        root: &args.run,
        saved: &saved,
        data: &data,
        is_training_data,
        is_restart_asked: args.restart.is_some(),
    };
    let bytes = make(&asked, format, &out, &terminal)?;
    if args.quiet { Ok(()) } else { print(&line(&out, bytes)) }
}

/// The page of a run that was stopped before it had clusters: what its training has written down so far.
fn begun(args: &Args, format: Format, out: &Path, why: String) -> anyhow::Result<()> {
    if args.out.is_some() {
        let data = RunConfig::read(&run_dir::config_path(&args.run))?.data.path;
        Sources::of(run_dir::files_read(&args.run, 0).chain([data]))
            .check(out, args.force)
            .map_err(|refused| Usage(refused.to_string()))?;
    }
    let Some(report) = report::begun(&args.run, &why)? else { return Err(TrainError::NothingTrained(why).into()) };
    let bytes = report::write(&report, format, out)?;
    if args.quiet { Ok(()) } else { print(&format!("{}: {why}\n", line(out, bytes).trim_end())) }
}

/// Whether a dataset is the one that a run was trained on. Where nobody named another, it must be.
fn is_training_data(saved: &Saved, data: &Path, is_named: bool) -> Result<bool, TrainError> {
    if !is_named {
        if !data.exists() {
            let text = format!(
                "there is no file {} any more, on which this run was trained; name its new place with --data",
                data.display()
            );
            return Err(TrainError::Mismatch(text));
        }
        if Dataset::open(data)?.fingerprint()? != saved.config.data.fingerprint {
            return Err(TrainError::DataChanged { path: data.to_owned() });
        }
        return Ok(true);
    }
    Ok(Dataset::open(data)?.fingerprint()? == saved.config.data.fingerprint)
}

fn make(asked: &Asked<'_>, format: Format, out: &Path, terminal: &Terminal) -> Result<u64, TrainError> {
    let stopped = |error: TrainError| match error {
        TrainError::Stopped => TrainError::Interrupted("the report was not written".into()),
        error => error,
    };
    let report = report::collect(asked, format, terminal).map_err(stopped)?;
    report::write(&report, format, out)
}

fn line(out: &Path, bytes: u64) -> String {
    format!("{} ({}): what the run found\n", out.display(), human::bytes(bytes))
}

/// Writes the page of a run that has just ended. The run is complete without it, so that a failure is a warning.
pub(super) fn at_the_end(run: &RunDir, terminal: &Terminal, is_quiet: bool) -> anyhow::Result<()> {
    let made = Saved::open(run.root(), None, DeviceName::CPU).and_then(|saved| {
        let data = saved.config.data.path.clone();
        let asked =
            Asked { root: run.root(), saved: &saved, data: &data, is_training_data: true, is_restart_asked: false };
        make(&asked, Format::Html, &run.report(), terminal)
    });
    match made {
        Ok(bytes) if !is_quiet => print(&line(&run.report(), bytes)),
        Ok(_) => Ok(()),
        Err(TrainError::Interrupted(text)) => {
            let again = run.root().display();
            Err(TrainError::Interrupted(format!(
                "training is done and saved, only {text}; `dtkc-train report {again}` writes it"
            ))
            .into())
        }
        Err(error) => {
            let again = run.root().display();
            terminal.warn(&format!(
                "the run is complete, but its report could not be written ({error}); try `dtkc-train report {again}`"
            ));
            Ok(())
        }
    }
}
