//! `dtkc-data`: one HDF5 dataset from any image collection.

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let program = commands::Program::parse();
    dtkc_cli::run(|| program.run())
}
