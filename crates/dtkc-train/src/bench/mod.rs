//! How long a training step takes, where the time goes, and how near that is to what the machine can do.

pub(crate) mod conv;
pub(crate) mod sgemm;

use std::fmt::Write as _;
use std::time::Duration;

use burn::tensor::Device;
use dtkc_core::augment::BatchKey;
use dtkc_human as human;
use dtkc_item::{Batch, ImageShape, ItemShape, Items};
use dtkc_methods::learner::{Extent, INITIALISATION, Learner, StepClock, StepPlace};
use dtkc_methods::{Method, Task};
use serde::Serialize;

use crate::device::DeviceName;
use crate::error::TrainError;
use crate::resources;

/// What to measure.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Rows per step.
    pub batch: usize,
    /// Side of the square images.
    pub size: usize,
    /// Channels of the images.
    pub channels: usize,
    /// Number of clusters.
    pub clusters: usize,
    /// The method.
    pub method: Method,
    /// Whose settings.
    pub preset: Option<String>,
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
    pub gflop: Option<f64>,
    /// The same per second of the median step.
    pub gflop_per_second: Option<f64>,
    /// What a large matrix product reached at best in the same run.
    pub sgemm_gflop_per_second: f64,
    /// Their ratio.
    pub share_of_sgemm: Option<f64>,
    /// That images are looked at in less detail, where they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reduced: Option<String>,
    /// The most memory that the process held.
    pub peak_memory_bytes: Option<u64>,
}

/// Times training steps on random images.
pub fn measure(options: &BenchOptions) -> Result<Measured, TrainError> {
    let (preset, mut settings, mut plan) = options.method.preset(options.preset.as_deref())?;
    plan.batch = options.batch;
    plan.check()?;
    settings.check(options.method)?;
    let shape = ImageShape { height: options.size, width: options.size, channels: options.channels };
    let reduced = settings.suit(ItemShape::Image(shape));
    let device = options.device.open()?;
    let items = settings.items_per_step(plan.batch);
    let task = Task {
        input: ItemShape::Image(shape),
        clusters: options.clusters,
        plan,
        device: device.clone(),
        pretrained: None,
        length: 0,
        restart: 0,
        common: Default::default(),
    };
    let mut learner = settings.learner(&task, 0)?;
    if learner.stages().first().is_none_or(|stage| stage.name == INITIALISATION) {
        let text = format!(
            "{} begins with no steps of a network, which is what bench times; name another --method",
            options.method
        );
        return Err(TrainError::Setting(text));
    }
    let pixels = random_pixels(items * shape.len());
    let batch = Batch { indices: (0..items).collect(), items: Items::Images { shape, pixels } };
    let (times, sgemm) = time_steps(learner.as_mut(), &device, &batch, options.steps)?;
    let ms = median(times.iter().map(|clock| millis(clock.total())));
    let part = |get: fn(&StepClock) -> Duration| median(times.iter().map(|clock| millis(get(clock))));
    let gflop = learner.step_flops(Extent { rows: options.batch, steps: 0 }).map(|flop| flop / 1e9);
    let gflop_per_second = gflop.map(|gflop| gflop / ms * 1e3);
    Ok(Measured {
        method: options.method.to_string(),
        preset: preset.to_owned(),
        device: options.device.to_string(),
        threads: dtkc_ops::threads(),
        batch: options.batch,
        image: [shape.height, shape.width, shape.channels],
        clusters: options.clusters,
        steps: times.len(),
        ms,
        fastest_ms: times.iter().map(|clock| millis(clock.total())).fold(f64::INFINITY, f64::min),
        parts_ms: PartTimes {
            data: part(|c| c.data),
            forward: part(|c| c.forward),
            kernels: part(|c| c.loss),
            backward: part(|c| c.backward),
            optimiser: part(|c| c.update),
        },
        images_per_second: options.batch as f64 / ms * 1e3,
        gflop,
        gflop_per_second,
        sgemm_gflop_per_second: sgemm,
        share_of_sgemm: gflop_per_second.map(|rate| rate / sgemm),
        reduced,
        peak_memory_bytes: resources::peak_memory(),
    })
}

/// The parts of every step, and the rate of a matrix product that was measured between them, so that both saw the
/// same machine.
fn time_steps(
    learner: &mut dyn Learner,
    device: &Device,
    batch: &Batch,
    steps: usize,
) -> Result<(Vec<StepClock>, f64), TrainError> {
    let mut product = sgemm::Product::new(1024, device);
    let mut times = Vec::with_capacity(steps);
    // The first stage needs nothing but a batch: clustering itself, or pretraining.
    let stage = 0;
    for step in 0..WARMUP + steps {
        let views = BatchKey { seed: 0, epoch: 0, batch: step as u64 };
        let mut clock = StepClock::start();
        let result = learner.step(batch, &StepPlace { stage, epoch: 1.0, epochs: 1, views }, &mut clock);
        if !result.applied {
            return Err(TrainError::NothingTrained(format!("step {step} of the benchmark was not finite")));
        }
        if step >= WARMUP {
            times.push(clock);
        }
        if step % 2 == 0 {
            product.time();
        }
    }
    Ok((times, product.rate()))
}

/// Noise from a plain linear congruential generator: the benchmark needs bytes, not good randomness.
fn random_pixels(len: usize) -> Vec<u8> {
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
        if let Some(reduced) = &self.reduced {
            let _ = writeln!(out, "{reduced}");
        }
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
        if let (Some(gflop), Some(rate), Some(share)) = (self.gflop, self.gflop_per_second, self.share_of_sgemm) {
            let _ = writeln!(
                out,
                "arithmetic  {gflop:>8.2} GFLOP, {rate:.0} GFLOP/s = {:.0} % of a large sgemm ({:.0} GFLOP/s, same run)",
                100.0 * share,
                self.sgemm_gflop_per_second
            );
        }
        if let Some(peak) = self.peak_memory_bytes {
            let _ = writeln!(out, "memory      {} at most", human::bytes(peak));
        }
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
            preset: Some("authors".into()),
            steps: 2,
            device: DeviceName::CPU,
        };
        let measured = measure(&options).unwrap();
        assert!(measured.ms > 0.0 && measured.share_of_sgemm.unwrap() > 0.0 && measured.steps == 2);
        assert!(measured.text().contains("kernels"), "{}", measured.text());
        let error = measure(&BenchOptions { size: 8, ..options.clone() }).unwrap_err().to_string();
        assert!(error.contains("8x8"), "{error}");
        let others = |method| measure(&BenchOptions { method, preset: None, size: 4, ..options.clone() });
        assert!(others(Method::Dec).unwrap().ms > 0.0, "a step of its autoencoder");
        assert!(others(Method::Kmeans).unwrap_err().to_string().contains("kmeans begins with no steps"));
    }
}
