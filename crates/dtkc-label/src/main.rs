//! `dtkc-label`: labels whole collections of images or sequences with a model file.

mod commands;

use std::process::ExitCode;

/// Decoders allocate and free large buffers on every thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dtkc_dataset::trial::answer_or_enable(|_| ());
    dtkc_cli::interrupt::install();
    dtkc_store::install(dtkc_cli::interrupt::requested);
    dtkc_cli::run(|| dtkc_cli::parse::<commands::Program>()?.run())
}
