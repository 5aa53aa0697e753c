//! Runs everything that reads files or requests on damaged and hostile input: `scripts/fuzz.sh`.
//!
//! Inputs are real files, changed at random ([`mutate`]); input number n of a target is the same on every machine, so a
//! finding is told by its number. Each target runs in a process of its own ([`child`]): code in C may end or hang it, and
//! that is a finding, too. Needs nothing but a stable compiler.

mod child;
mod mutate;
mod parent;
mod seeds;
mod service;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Runs readers on hostile input and says how many executions there were and what was found.
#[derive(Debug, Parser)]
#[command(name = "dtkc-fuzz")]
struct Args {
    /// Minutes in all, divided between the targets
    #[arg(long, default_value_t = 1.0, conflicts_with = "executions")]
    minutes: f64,
    /// Executions of each target, instead of a time
    #[arg(long)]
    executions: Option<u64>,
    /// Only these targets [default: all]
    #[arg(long, value_delimiter = ',')]
    target: Vec<String>,
    /// Number of the first input; the next run can go on where this one ended
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Where inputs that end badly are written
    #[arg(long, default_value = "fuzz-findings")]
    findings: PathBuf,
    /// Memory of a target's process
    #[arg(long, default_value_t = 2048)]
    memory_mib: u64,
    /// Seconds after which an input counts as one that hangs
    #[arg(long, default_value_t = 10)]
    hang_seconds: u64,
    /// Writes one input of the one target to this file, and ends
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Runs a target in this process; says in this file where it is
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
}

fn main() -> ExitCode {
    dtkc_dataset::trial::answer_or_enable(dtkc_data::import::read_structure);
    let args = Args::parse();
    let done = match (&args.child, &args.write, args.target.as_slice()) {
        (Some(place), _, [name]) => child::run(name, args.from, place).map(|()| true),
        (None, Some(file), [name]) => child::write(name, args.from, file).map(|()| true),
        _ => parent::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
