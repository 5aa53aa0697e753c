//! The Rust half of scripts/bench-data.sh: makes a large file and reads it in several ways.
//!
//! Every reading prints one JSON line with the seconds, the bytes and a checksum of what was read, so that
//! the script can compare it with h5py doing the same.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::{Parser, Subcommand};
use dtkc_dataset::{Batches, Compression, Dataset, LoadMode, LoadOptions, Writer, WriterOptions};
use dtkc_item::{Batch, ImageShape};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[derive(Parser)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a dataset of about so many megabytes of RGB images
    Make {
        file: PathBuf,
        #[arg(long, default_value_t = 1000)]
        megabytes: usize,
        #[arg(long, default_value_t = 32)]
        side: usize,
        #[arg(long)]
        gzip: Option<u8>,
    },
    /// Write random batches of indices, one little-endian u64 each, for both sides to read
    Indices {
        file: PathBuf,
        out: PathBuf,
        #[arg(long, default_value_t = 100)]
        batches: usize,
        #[arg(long, default_value_t = 120)]
        batch: usize,
    },
    /// Read those batches
    Random {
        file: PathBuf,
        indices: PathBuf,
        #[arg(long, default_value_t = 120)]
        batch: usize,
    },
    /// Read epochs of shuffled minibatches
    Epochs {
        file: PathBuf,
        #[arg(long, default_value_t = 2)]
        epochs: u64,
        #[arg(long, default_value_t = 120)]
        batch: usize,
        /// Hold the set in memory instead of streaming it
        #[arg(long)]
        memory: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Program::parse().command {
        Command::Make { file, megabytes, side, gzip } => make(&file, megabytes, side, gzip),
        Command::Indices { file, out, batches, batch } => indices(&file, &out, batches * batch),
        Command::Random { file, indices, batch } => random(&file, &indices, batch),
        Command::Epochs { file, epochs, batch, memory } => read_epochs(&file, epochs, batch, memory),
    }
}

fn make(file: &std::path::Path, megabytes: usize, side: usize, gzip: Option<u8>) -> anyhow::Result<()> {
    let shape = ImageShape { height: side, width: side, channels: 3 };
    let compression = gzip.map_or(Compression::None, Compression::Gzip);
    let options = WriterOptions { compression, ..WriterOptions::new(shape, "bench", "random pixels") };
    let mut writer = Writer::create(file, options)?;
    let mut generator = SmallRng::seed_from_u64(1);
    let mut pixels = vec![0; shape.len()];
    let count = megabytes * 1_000_000 / shape.len();
    let start = Instant::now();
    for index in 0..count {
        // Smooth rows with some noise: gzip finds something to do, as in real images.
        let (base, noise) = (index as u8, generator.next_u32());
        for (i, pixel) in pixels.iter_mut().enumerate() {
            *pixel = base.wrapping_add((i / 24) as u8).wrapping_add(((noise >> (i % 29)) & 3) as u8);
        }
        writer.push_image(&pixels, Some((index % 10) as i64), None)?;
    }
    writer.finish()?;
    report("write", start, count * shape.len(), 0)
}

fn indices(file: &std::path::Path, out: &std::path::Path, count: usize) -> anyhow::Result<()> {
    let len = Dataset::open(file)?.len() as u64;
    let mut generator = SmallRng::seed_from_u64(2);
    let bytes: Vec<u8> = (0..count).flat_map(|_| (generator.next_u64() % len).to_le_bytes()).collect();
    Ok(std::fs::write(out, bytes)?)
}

fn random(file: &std::path::Path, indices: &std::path::Path, batch: usize) -> anyhow::Result<()> {
    let bytes = std::fs::read(indices)?;
    let indices: Vec<usize> = bytes.as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b) as usize).collect();
    let dataset = Dataset::open(file)?;
    let row_bytes = dataset.require_images()?.len();
    let (mut sum, mut total) = (0, 0);
    let start = Instant::now();
    for some in indices.chunks(batch) {
        let pixels = dataset.read(some)?;
        sum += checksum(&pixels, row_bytes);
        total += pixels.len();
    }
    report("random", start, total, sum)
}

fn read_epochs(file: &std::path::Path, epochs: u64, batch: usize, memory: bool) -> anyhow::Result<()> {
    let mode = if memory { LoadMode::Memory } else { LoadMode::Stream };
    let mut batches = Batches::new(file, LoadOptions { batch, mode, ..LoadOptions::default() })?;
    let row_bytes = batches.dataset().require_images()?.len();
    let (mut sum, mut total, mut some) = (0, 0, Batch::empty(batches.shape()));
    let start = Instant::now();
    for epoch in 0..epochs {
        let mut epoch = batches.epoch(epoch);
        while epoch.next_into(&mut some)? {
            let pixels = some.items.pixels().unwrap_or_default();
            sum += checksum(pixels, row_bytes);
            total += pixels.len();
        }
    }
    report(if memory { "memory" } else { "stream" }, start, total, sum)
}

/// Some bytes of every row: the same whatever the order of rows, and cheap beside reading them.
fn checksum(pixels: &[u8], row_bytes: usize) -> u64 {
    pixels.chunks_exact(row_bytes).flat_map(|row| row.iter().step_by(1009)).map(|&v| u64::from(v)).sum()
}

fn report(what: &str, start: Instant, bytes: usize, sum: u64) -> anyhow::Result<()> {
    let seconds = start.elapsed().as_secs_f64();
    let rate = bytes as f64 / 1e6 / seconds;
    let line = serde_json::json!({ "what": what, "seconds": seconds, "megabytes_per_second": rate, "checksum": sum });
    writeln!(std::io::stdout(), "{line}").context("cannot print")
}
