//! `dtkc-data`: one HDF5 dataset from any image collection.

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    dtkc_dataset::trial::answer_or_enable(dtkc_data::import::read_structure);
    dtkc_store::install(dtkc_cli::interrupt::requested);
    dtkc_cli::run(|| dtkc_cli::parse::<commands::Program>()?.run())
}
