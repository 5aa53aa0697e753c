//! The program's two commands: labelling, which needs no name, and `merge`.

mod label;
mod merge;
mod outgoing;
mod report;

use clap::{Parser, Subcommand};
use dtkc_label::LabelError;

/// Sorts every image or sequence of a collection into the clusters of a model.
#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = label::EXAMPLES)]
pub struct Program {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    label: Option<label::LabelArgs>,
}

#[derive(Subcommand)]
enum Command {
    Merge(merge::MergeArgs),
}

impl Program {
    /// Does what was asked for.
    pub fn run(self) -> anyhow::Result<()> {
        match (self.command, self.label) {
            (Some(Command::Merge(args)), _) => args.run(),
            (None, Some(args)) => args.run(),
            (None, None) => Err(dtkc_cli::Usage("--model, --input and --output are needed; see --help".into()).into()),
        }
    }
}

/// Keeps apart what ends with different exit codes; a closed pipe must be seen as the system's error that it is.
fn failed(error: LabelError) -> anyhow::Error {
    // Who waits for a store and asks to stop is not told that the store failed.
    if dtkc_cli::interrupt::requested() && dtkc_source::remote::trouble().is_some() {
        return dtkc_cli::exit::Interrupted("before the store had answered".into()).into();
    }
    match error {
        LabelError::Usage(text) => dtkc_cli::Usage(text).into(),
        LabelError::Io(error) => error.into(),
        other => other.into(),
    }
}
