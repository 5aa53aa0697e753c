//! What a run will take of the machine, before it begins: time from the arithmetic of a step and the rate of a convolution or
//! a matrix product, memory from the shapes of the network. Only methods that count both say anything.

use std::time::Duration;

use dtkc_human as human;
use dtkc_item::{ItemKind, ItemShape};
use dtkc_methods::Learner;
use dtkc_methods::learner::Extent;

use crate::bench::conv;
use crate::bench::sgemm::Product;
use crate::config::{DataConfig, RunConfig};
use crate::device::DeviceName;
use crate::error::TrainError;
use crate::resources;

/// The part of a convolution's rate that a step on images reaches by the plain formulas, measured with and without companion
/// objectives, and the part of a matrix product's rate that other steps do; see `dtkc-train bench`.
const OF_A_CONVOLUTION: f64 = 0.8;
const OF_A_PRODUCT: f64 = 0.65;
/// Side of the matrices that are multiplied to find the rate.
const SIDE: usize = 512;
/// Convolutions or products that are timed: some tenths of a second.
const ROUNDS: usize = 9;
/// What the process holds beside data and steps: code, threads, HDF5.
const PROCESS: u64 = 90 << 20;
/// The windows of a set that is streamed; see the loader's options.
const WINDOW: u64 = 256 << 20;

/// What a run takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Bytes of memory.
    pub memory: u64,
    /// Arithmetic of a step, in GFLOP.
    pub gflop: f64,
}

impl Forecast {
    /// For a run with this learner; `None` where its method does not count, or on another device than the CPU.
    pub fn of(config: &RunConfig, learner: &dyn Learner) -> Option<Self> {
        if config.run.device != DeviceName::CPU {
            return None;
        }
        let gflop = learner.step_flops(usual(config))? / 1e9;
        Some(Self { memory: memory(config, learner.clusters())?, gflop })
    }

    /// Seconds for `items` items in steps of `per_step`, where a step reaches `rate` GFLOP a second.
    fn seconds(&self, items: u64, per_step: usize, rate: f64) -> f64 {
        items as f64 / per_step.max(1) as f64 * self.gflop / rate
    }

    /// For the plan: `about 12 min on this machine, 300 MiB of memory`.
    pub fn text(&self, items: u64, config: &RunConfig) -> Result<String, TrainError> {
        let per_step = config.items_per_step().min(config.data.items);
        let seconds = self.seconds(items, per_step, rate(config)?);
        let time = human::duration(rounded(seconds));
        Ok(format!("about {time} on this machine, {} of memory", human::bytes(self.memory)))
    }
}

/// GFLOP a second that a step reaches, by the rate of what most of it is: convolutions for images, matrix products for the rest.
fn rate(config: &RunConfig) -> Result<f64, TrainError> {
    let device = config.run.device.open()?;
    if config.data.input.kind() == ItemKind::Images {
        return Ok(OF_A_CONVOLUTION * conv::usual_rate(ROUNDS, &device));
    }
    let mut product = Product::new(SIDE, &device);
    (0..ROUNDS).for_each(|_| product.time());
    Ok(OF_A_PRODUCT * product.usual_rate())
}

/// Rows of a full step: a set that is smaller than a batch has fewer.
fn rows(config: &RunConfig) -> usize {
    let per_step = config.items_per_step();
    let views = if per_step < config.plan.batch { 2 } else { 1 };
    config.plan.batch.min(config.data.items.saturating_mul(views))
}

/// What a step has as a rule.
fn usual(config: &RunConfig) -> Extent {
    let (rows, DataConfig { items, steps, .. }) = (rows(config), &config.data);
    Extent { rows, steps: rows * steps.as_ref().map_or(0, |steps| steps.all.div_ceil((*items).max(1))) }
}

/// What a step has where the longest sequences come together.
fn largest(config: &RunConfig) -> Extent {
    let rows = rows(config);
    let views = rows.div_ceil(config.items_per_step().min(config.data.items).max(1));
    let steps = config.data.steps.as_ref().map_or(0, |steps| steps.most(rows.div_ceil(views.max(1))));
    // A view may be longer than what it is one of.
    Extent { rows, steps: if views > 1 { steps * views + steps / 4 } else { steps } }
}

/// What the loader and the items of a step hold.
fn loader(config: &RunConfig) -> u64 {
    let DataConfig { input, items, steps, .. } = &config.data;
    let per_step = config.items_per_step().min(*items);
    let (set, batch) = match (input, steps) {
        (ItemShape::Image(shape), _) => ((shape.len() * items) as u64, (shape.len() * per_step) as u64),
        (ItemShape::Sequence { dim }, Some(steps)) => {
            ((4 * dim * steps.all) as u64, (4 * dim * steps.most(per_step)) as u64)
        }
        (ItemShape::Sequence { .. }, None) => (0, 0),
        (ItemShape::Features(shape), _) => ((4 * shape.len() * items) as u64, (4 * shape.len() * per_step) as u64),
    };
    let budget = config.run.memory_budget;
    let held = if set <= budget { set } else { 2 * WINDOW.min(budget / 3) };
    held + 2 * batch
}

/// No more digits than a forecast deserves.
fn rounded(seconds: f64) -> Duration {
    let unit = match seconds {
        s if s < 10.0 => 1.0,
        s if s < 120.0 => 10.0,
        s if s < 7200.0 => 60.0,
        _ => 600.0,
    };
    Duration::try_from_secs_f64(((seconds / unit).round() * unit).max(1.0)).unwrap_or(Duration::MAX)
}

/// Bytes that a run with so many clusters takes; `None` where its method does not count, or on another device.
pub fn memory(config: &RunConfig, clusters: usize) -> Option<u64> {
    let step = config.settings.step_memory(config.data.input, clusters, largest(config))?;
    (config.run.device == DeviceName::CPU).then(|| PROCESS + loader(config) + step)
}

/// Refuses a run that does not fit into the memory that is free now.
pub fn check_memory(config: &RunConfig) -> Result<(), TrainError> {
    match (memory(config, config.largest_k()), resources::available_memory()) {
        (Some(needed), Some(free)) if needed > free => Err(TrainError::Setting(refusal(config, needed, free))),
        _ => Ok(()),
    }
}

fn refusal(config: &RunConfig, needed: u64, free: u64) -> String {
    let remedy = match (loader(config) > needed / 2, config.data.input.kind()) {
        (true, _) => "let the set be streamed (--memory-budget 512MiB)",
        (false, ItemKind::Sequences) => {
            "take a smaller --batch, or leave the longest sequences out or cut them before you import them"
        }
        (false, ItemKind::Features) => "take a smaller --batch",
        (false, ItemKind::Images) => {
            "take a smaller --batch, look at the images in less detail (--set network.reduce=0), or import them with fewer \
             pixels (dtkc-data import --size 32x32)"
        }
    };
    format!(
        "training on {} with {} a step needs about {} of memory, and {} are free: {remedy}",
        config.data.input,
        human::many(rows(config), "row"),
        human::bytes(needed),
        human::bytes(free)
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_item::{ImageShape, ItemShape};

    fn config(text: &str, side: usize, items: usize) -> RunConfig {
        let mut config = RunConfig::resolve(&[text.parse().unwrap()]).unwrap();
        config.data.input = ItemShape::Image(ImageShape { height: side, width: side, channels: 3 });
        config.data.items = items;
        config
    }

    #[test]
    fn time_is_steps_times_arithmetic_by_rate() {
        let forecast = Forecast { memory: 0, gflop: 13.0 };
        // 10 epochs of 1200 images in steps of 120 are 100 steps of 13 GFLOP, at 65 GFLOP a second.
        assert!((forecast.seconds(12_000, 120, 65.0) - 20.0).abs() < 1e-9);
        let shown = [0.2, 44.0, 734.0, 40_000.0].map(|seconds| rounded(seconds).as_secs());
        assert_eq!(shown, [1, 40, 720, 40_200]);
    }

    #[test]
    fn a_small_set_fills_no_large_batch() {
        let config = config("plan.batch = 4000", 32, 300);
        assert_eq!(rows(&config), 600, "two views of every image");
        assert_eq!(loader(&config), 300 * 3072 * 3);
        let large = self::config("", 32, 10_000_000);
        assert_eq!(loader(&large), (512 << 20) + 2 * 3072 * 120, "streamed");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_remedy() {
        let large = config("preset = 'authors'", 256, 5000);
        let needed = memory(&large, 10).unwrap();
        assert!(needed > 4 << 30, "{needed}");
        let text = refusal(&large, needed, 2 << 30);
        assert!(text.contains("2.0 GiB are free") && text.contains("network.reduce"), "{text}");
        let reduced = config("network.reduce = 8", 256, 5000);
        assert!(memory(&reduced, 10).unwrap() < 2 << 30);
        assert!(refusal(&reduced, memory(&reduced, 10).unwrap(), 1 << 20).contains("--memory-budget"));
        assert_eq!(memory(&config("method = 'kmeans'", 32, 100), 10), None);
    }
}
