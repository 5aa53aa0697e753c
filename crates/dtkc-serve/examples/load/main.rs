//! Load for a running dtkc-serve: how many images per second, how late one image, what happens with too much.
//! Started by scripts/load-serve.sh.

mod client;
mod measure;
mod overload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

/// Load for a running dtkc-serve.
#[derive(Parser)]
struct Flags {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Write images like those of the model: `COUNT` PNGs into a folder.
    Images { model: PathBuf, folder: PathBuf, count: usize },
    /// Images per second with keep-alive clients that post groups of images.
    Throughput {
        address: SocketAddr,
        folder: PathBuf,
        #[arg(long, default_value_t = 4)]
        clients: usize,
        #[arg(long, default_value_t = 32)]
        group: usize,
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
    /// Time of one image at low load, against decoding and inference in this process.
    Latency {
        address: SocketAddr,
        folder: PathBuf,
        model: PathBuf,
        #[arg(long, default_value_t = 300)]
        count: usize,
    },
    /// Far more than the service can do; ends with 1 where it does not hold.
    Overload {
        address: SocketAddr,
        folder: PathBuf,
        #[arg(long, default_value_t = 60.0)]
        seconds: f64,
        #[arg(long, default_value_t = 10.0)]
        times: f64,
    },
}

fn main() -> anyhow::Result<()> {
    match Flags::parse().what {
        What::Images { model, folder, count } => measure::write_images(&model, &folder, count),
        What::Throughput { address, folder, clients, group, seconds } => {
            let bodies = measure::groups(&folder, group)?;
            let rate = measure::throughput(address, &bodies, clients, Duration::from_secs_f64(seconds))?;
            println!("{rate:.0}");
            Ok(())
        }
        What::Latency { address, folder, model, count } => measure::latency(address, &folder, &model, count),
        What::Overload { address, folder, seconds, times } => {
            overload::overload(address, &folder, Duration::from_secs_f64(seconds), times)
        }
    }
}
