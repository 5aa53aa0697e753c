//! `dtkc-train`: trains, resumes, evaluates, exports, explains, compares.

mod commands;

use std::process::ExitCode;

/// burn's large temporaries otherwise go through page faults at every step.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dtkc_cli::interrupt::install();
    dtkc_cli::run(|| dtkc_cli::parse::<commands::Cli>()?.run())
}
