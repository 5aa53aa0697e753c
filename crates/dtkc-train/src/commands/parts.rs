//! `dtkc-train parts` and `dtkc-train part`: one run on several machines.

use std::path::PathBuf;
use std::time::Duration;

use dtkc_cli::Terminal;
use dtkc_human as human;
use dtkc_train::config::RunConfig;
use dtkc_train::parts::{self, Part};
use dtkc_train::run_dir::{self, RunDir};

use super::{print, resume};

const EXAMPLES: &str = "\
Examples:
  dtkc-train fit --data usps.h5 --clusters 10 --runs 20 --no-prune --out /shared/run --prepare
  dtkc-train parts /shared/run                      what is left, one name in each line: restart-0, restart-1, ..
  dtkc-train part /shared/run restart-7             on any machine that sees the folder, as many at a time as there are
  dtkc-train resume /shared/run                     chooses, exports, reports

The result is what `fit --no-prune` gives on one machine of the same kind, to the bit. A part that was killed goes on from its last checkpoint,
wherever it is begun again. With --clusters auto, ask for parts again once the first ones are done: restarts come after the number
is known. `python -m dtkc.ray fit` does all of this on a Ray cluster; docs/scale.md has array jobs of Slurm and Kubernetes.";

/// Flags of `parts`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListArgs {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[command(flatten)]
    wait: Wait,
}

/// Flags of `part`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Run directory, which every machine sees.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The part, as `dtkc-train parts` calls it.
    #[arg(value_name = "PART")]
    part: Part,
    /// Threads; 0 takes all cores [default: as the run was started].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    wait: Wait,
    /// No progress.
    #[arg(long)]
    quiet: bool,
    /// Stop as after Ctrl-C when standard input ends.
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

/// What to do while another process is at work.
#[derive(clap::Args)]
struct Wait {
    /// Wait so long for another process that has the same, such as one that was lost with its machine [default: not at all].
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration, default_value = "0s", hide_default_value = true)]
    wait: Duration,
}

/// Takes over what parts have made and says what is left.
pub(crate) fn list(args: &ListArgs) -> anyhow::Result<()> {
    let terminal = Terminal::new(false);
    let run = parts::patiently(args.wait.wait, &terminal, || RunDir::open(&args.run))?;
    let mut config = resume::taken_up(&run)?;
    let left = parts::left(&run, &mut config, &terminal)?;
    print(&left.iter().map(|part| format!("{part}\n")).collect::<String>())
}

/// Works on one part.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.stop_with_input {
        dtkc_cli::interrupt::stop_with_input();
    }
    let threads = match args.threads {
        Some(threads) => threads,
        None => {
            run_dir::require_run(&args.run)?;
            RunConfig::read(&run_dir::config_path(&args.run))?.run.threads
        }
    };
    dtkc_ops::set_threads(threads);
    let Args { run, part, wait, quiet, .. } = args;
    parts::work(run, *part, wait.wait, &Terminal::new(*quiet))?;
    if *quiet { Ok(()) } else { print(&format!("{part} of {} is done\n", run.display())) }
}
