//! `dtkc-data fetch`.

/// Flags of `fetch`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs the command.
pub fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("fetch is not there yet")
}
