//! `dtkc-train devices`.

use std::fmt::Write as _;

use dtkc_train::device;

use super::{print, print_json};

/// Flags of `devices`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let devices = device::list();
    if args.json {
        return print_json(&devices);
    }
    let mut text = String::new();
    for line in devices {
        let mark = if line.present { "yes" } else { "no" };
        writeln!(text, "{:<8}  {mark:<3}  {}", line.device, line.description)?;
    }
    print(&text)
}
