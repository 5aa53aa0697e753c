//! The rate of a large matrix product: what the machine can do at best in f32.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Distribution, Tensor};

/// A product of two square matrices, timed now and then.
pub(crate) struct Product {
    side: usize,
    a: Tensor<2>,
    b: Tensor<2>,
    times: Vec<Duration>,
}

impl Product {
    pub(crate) fn new(side: usize, device: &Device) -> Self {
        let random = || Tensor::random([side, side], Distribution::Uniform(-1.0, 1.0), device);
        let mut product = Self { side, a: random(), b: random(), times: Vec::new() };
        product.time();
        product.times.clear();
        product
    }

    /// Times one product.
    pub(crate) fn time(&mut self) {
        let begin = Instant::now();
        let c = self.a.clone().matmul(self.b.clone());
        // Reading one value waits for a device that computes later.
        let _ = c.narrow(0, 0, 1).narrow(1, 0, 1).into_data();
        self.times.push(begin.elapsed());
    }

    /// GFLOP/s of the fastest product: what the machine can do when nothing else wants it.
    pub(crate) fn rate(&self) -> f64 {
        self.times.iter().min().map_or(f64::NAN, |time| self.rate_at(time))
    }

    /// GFLOP/s of the median product: what the machine does with whatever else it has to do now.
    pub(crate) fn usual_rate(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(f64::NAN, |time| self.rate_at(time))
    }

    fn rate_at(&self, time: &Duration) -> f64 {
        2.0 * (self.side as f64).powi(3) / time.as_secs_f64().max(1e-9) / 1e9
    }
}
