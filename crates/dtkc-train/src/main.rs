//! `dtkc-train`: trains, resumes, evaluates, exports.

mod commands;

use std::process::ExitCode;

use clap::Parser;

/// burn's large temporaries otherwise go through page faults at every step.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = commands::Cli::parse();
    dtkc_cli::interrupt::install();
    dtkc_cli::run(|| cli.run())
}
