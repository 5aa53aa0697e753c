//! The rate of a large matrix product: what the machine can do at best in f32.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Distribution, Tensor};

const SIDE: usize = 1024;

/// A product of two square matrices, timed now and then.
pub(super) struct Product {
    a: Tensor<2>,
    b: Tensor<2>,
    times: Vec<Duration>,
}

impl Product {
    pub(super) fn new(device: &Device) -> Self {
        let random = || Tensor::random([SIDE, SIDE], Distribution::Uniform(-1.0, 1.0), device);
        let mut product = Self { a: random(), b: random(), times: Vec::new() };
        product.time();
        product.times.clear();
        product
    }

    /// Times one product.
    pub(super) fn time(&mut self) {
        let begin = Instant::now();
        let c = self.a.clone().matmul(self.b.clone());
        // Reading one value waits for a device that computes later.
        let _ = c.narrow(0, 0, 1).narrow(1, 0, 1).into_data();
        self.times.push(begin.elapsed());
    }

    /// GFLOP/s of the fastest product: what the machine can do when nothing else wants it.
    pub(super) fn rate(&self) -> f64 {
        let seconds = self.times.iter().map(Duration::as_secs_f64).fold(f64::INFINITY, f64::min);
        2.0 * (SIDE * SIDE * SIDE) as f64 / seconds / 1e9
    }
}
