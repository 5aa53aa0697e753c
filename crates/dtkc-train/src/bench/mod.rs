//! How long a training step takes, where the time goes, and how near that is to what the machine can do.

mod flops;
mod sgemm;

use dtkc_item::ImageShape;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use dtkc_core::augment::BatchKey;
use dtkc_core::{Method, ModelConfig, Preset, Settings};
use serde::Serialize;

use crate::device::DeviceName;
use crate::error::TrainError;
use crate::recipe::{Parts, Recipe, StepPlace};

pub use flops::step_flops;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct BenchOptions {
    /// Rows per step.
    pub batch: usize,
    /// Side of the square images.
    pub size: usize,
    /// Channels of the images.
    pub channels: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// With companion objectives or without.
    pub method: Method,
    /// Whose settings.
    pub preset: Preset,
    /// Steps that count; a few more come first.
    pub steps: usize,
    /// Where.
    pub device: DeviceName,
}

/// Steps before those that count.
const WARMUP: usize = 3;

/// Milliseconds of each part, medians over the steps.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PartTimes {
    /// Scaling and augmentation.
    pub data: f64,
    /// The network, forward.
    pub forward: f64,
    /// Kernels and terms of the loss, forward.
    pub kernels: f64,
    /// All gradients.
    pub backward: f64,
    /// Clipping, Adam, running statistics.
    pub optimiser: f64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Method.
    pub method: String,
    /// Preset.
    pub preset: String,
    /// Device.
    pub device: String,
    /// Threads.
    pub threads: usize,
    /// Rows per step.
    pub batch: usize,
    /// Rows, columns and channels of an image.
    pub image: [usize; 3],
    /// Number of clusters.
    pub clusters: usize,
    /// Steps that were timed.
    pub steps: usize,
    /// Median time of a step.
    pub ms: f64,
    /// Fastest step.
    pub fastest_ms: f64,
    /// Its parts.
    pub parts_ms: PartTimes,
    /// Rows per second.
    pub images_per_second: f64,
    /// Multiplications and additions of a step, by the plain formulas.
    pub gflop: f64,
    /// The same per second of the median step.
    pub gflop_per_second: f64,
    /// What a large matrix product reached at best in the same run.
    pub sgemm_gflop_per_second: f64,
    /// Their ratio.
    pub share_of_sgemm: f64,
}

/// Times training steps on random images.
pub fn measure(options: &BenchOptions) -> Result<Measured, TrainError> {
    let mut settings = Settings::preset(options.preset, options.method);
    settings.plan.batch = options.batch;
    settings.check()?;
    let size = ImageShape { height: options.size, width: options.size, channels: options.channels };
    let valid = ModelConfig::new(size, options.clusters).with_network(settings.network.clone()).check()?;
    let gflop = step_flops(&valid, options.batch, settings.loss.lambda > 0.0) / 1e9;
    let device = options.device.open()?;
    let recipe = Recipe::new(&settings, valid, device.clone())?;
    let images = random_images(settings.images_per_step() * size.len());
    let (times, sgemm) = time_steps(&recipe, &device, &images, options.steps)?;
    let ms = median(times.iter().map(|parts| millis(parts.total())));
    let part = |get: fn(&Parts) -> Duration| median(times.iter().map(|parts| millis(get(parts))));
    Ok(Measured {
        method: options.method.to_string(),
        preset: options.preset.to_string(),
        device: options.device.to_string(),
        threads: dtkc_ops::threads(),
        batch: options.batch,
        image: [size.height, size.width, size.channels],
        clusters: options.clusters,
        steps: times.len(),
        ms,
        fastest_ms: times.iter().map(|parts| millis(parts.total())).fold(f64::INFINITY, f64::min),
        parts_ms: PartTimes {
            data: part(|p| p.data),
            forward: part(|p| p.forward),
            kernels: part(|p| p.kernels),
            backward: part(|p| p.backward),
            optimiser: part(|p| p.optimiser),
        },
        images_per_second: options.batch as f64 / ms * 1e3,
        gflop,
        gflop_per_second: gflop / ms * 1e3,
        sgemm_gflop_per_second: sgemm,
        share_of_sgemm: gflop / ms * 1e3 / sgemm,
    })
}

/// The parts of every step, and the rate of a matrix product that was measured between them, so that both saw the
/// same machine.
fn time_steps(recipe: &Recipe, device: &Device, images: &[u8], steps: usize) -> Result<(Vec<Parts>, f64), TrainError> {
    let (mut model, mut adam) = (recipe.init(0), recipe.adam());
    let mut product = sgemm::Product::new(device);
    let mut times = Vec::with_capacity(steps);
    for step in 0..WARMUP + steps {
        let place = StepPlace { key: BatchKey { seed: 0, epoch: 0, batch: step as u64 }, epoch: 1.0 };
        let mut parts = Parts::default();
        let begin = Instant::now();
        let result = recipe.step(&mut model, &mut adam, images, place, &mut parts);
        if !result.applied {
            return Err(TrainError::NothingTrained(format!("step {step} of the benchmark was not finite")));
        }
        debug_assert!(parts.total() <= begin.elapsed());
        if step >= WARMUP {
            times.push(parts);
        }
        if step % 2 == 0 {
            product.time();
        }
    }
    Ok((times, product.rate()))
}

/// Noise from a plain linear congruential generator: the benchmark needs bytes, not good randomness.
fn random_images(len: usize) -> Vec<u8> {
    let mut state = 12345u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

impl Measured {
    /// The result for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let Self { method, preset, device, threads, batch, image: [h, w, c], clusters, .. } = self;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{method} ({preset}), batch {batch} of {h}x{w}x{c}, k = {clusters}, {device}, {threads} threads"
        );
        let _ = writeln!(
            out,
            "step        {:>8.2} ms median of {}, fastest {:.2}; {:.0} images/s",
            self.ms, self.steps, self.fastest_ms, self.images_per_second
        );
        let PartTimes { data, forward, kernels, backward, optimiser } = self.parts_ms;
        let parts = [
            ("data", data),
            ("forward", forward),
            ("kernels", kernels),
            ("backward", backward),
            ("optimiser", optimiser),
        ];
        for (name, ms) in parts {
            let _ = writeln!(out, "  {name:<10}{ms:>8.2} ms  {:>5.1} %", 100.0 * ms / self.ms);
        }
        let _ = writeln!(
            out,
            "arithmetic  {:>8.2} GFLOP, {:.0} GFLOP/s = {:.0} % of a large sgemm ({:.0} GFLOP/s, same run)",
            self.gflop,
            self.gflop_per_second,
            100.0 * self.share_of_sgemm,
            self.sgemm_gflop_per_second
        );
        out
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }

    #[test]
    fn a_small_step_is_measured() {
        let options = BenchOptions {
            batch: 8,
            size: 20,
            channels: 1,
            clusters: 3,
            method: Method::Dtkc,
            preset: Preset::Authors,
            steps: 2,
            device: DeviceName::CPU,
        };
        let measured = measure(&options).unwrap();
        assert!(measured.ms > 0.0 && measured.share_of_sgemm > 0.0 && measured.steps == 2);
        assert!(measured.text().contains("kernels"), "{}", measured.text());
        let error = measure(&BenchOptions { size: 8, ..options }).unwrap_err().to_string();
        assert!(error.contains("8x8"), "{error}");
    }
}
