//! The rate of a convolution with its gradients: most of a step on images, and what ours reach of a machine differs from what
//! a matrix product does (more than it with AVX2, less with AVX-512).

use std::time::{Duration, Instant};

use burn::tensor::{Device, Distribution, Tensor};
use dtkc_ops::{Padding, conv2d};

/// Rows, side and channels of what is convolved, as in the first block of an image of 28x28.
const ROWS: usize = 24;
const SIDE: usize = 24;
const CHANNELS: usize = 32;
/// Side of the kernel.
const KERNEL: usize = 5;

/// GFLOP/s of so many convolutions, forward and back: of the median one, which is what the machine does with whatever else it
/// has to do now.
pub(crate) fn usual_rate(rounds: usize, device: &Device) -> f64 {
    let device = device.clone().autodiff();
    let random = Distribution::Uniform(-1.0, 1.0);
    let x = Tensor::<4>::random([ROWS, SIDE, SIDE, CHANNELS], random, &device).require_grad();
    let weight = Tensor::<4>::random([KERNEL, KERNEL, CHANNELS, CHANNELS], random, &device).require_grad();
    let bias = Tensor::<1>::zeros([CHANNELS], &device).require_grad();
    let time = || {
        let begin = Instant::now();
        let y = conv2d(x.clone(), weight.clone(), bias.clone(), Padding::Valid, true);
        let gradients = y.sum().backward();
        // Reading one value waits for a device that computes later.
        let _ = bias.grad(&gradients).map(|gradient| gradient.narrow(0, 0, 1).into_data());
        begin.elapsed()
    };
    // The first one makes room for all.
    time();
    let mut times: Vec<Duration> = (0..rounds).map(|_| time()).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::NAN, |time| gflop() / time.as_secs_f64().max(1e-9))
}

/// By the plain formulas: forward, to the weights and to the input.
fn gflop() -> f64 {
    let side = SIDE + 1 - KERNEL;
    3.0 * 2.0 * (ROWS * side * side * KERNEL * KERNEL * CHANNELS * CHANNELS) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_found() {
        let rate = usual_rate(3, &Device::flex());
        assert!(rate.is_finite() && rate > 0.0, "{rate}");
    }
}
