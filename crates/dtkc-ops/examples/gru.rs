//! Times a stack of bidirectional recurrent layers, forward and backward, on random sequences: one line of JSON.
//!
//! `gru BATCH LEAST LONGEST DIM UNITS LAYERS THREADS SECONDS`; `scripts/bench-gru.sh` runs it beside PyTorch.

use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use dtkc_ops::{GruOperands, GruStates, Lengths, gru, set_threads};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [batch, least, longest, dim, units, layers, threads, seconds] = numbers[..] else {
        eprintln!("use: gru BATCH LEAST LONGEST DIM UNITS LAYERS THREADS SECONDS");
        std::process::exit(2);
    };
    set_threads(threads);
    let device = Device::flex().autodiff();
    // Evenly spread lengths, in a mixed order; scripts/bench/torch_gru.py has the same.
    let length = |i: usize| least + i * 7919 % batch * (longest - least) / (batch - 1).max(1);
    let lengths = Lengths::new(&(0..batch).map(length).collect::<Vec<_>>());
    let x = Tensor::<2>::random([lengths.steps(), dim], Distribution::Uniform(-1.0, 1.0), &device);
    let bound = (units as f64).sqrt().recip();
    let weights: Vec<GruOperands> = (0..layers)
        .map(|layer| {
            let (inputs, range) = (if layer == 0 { dim } else { 2 * units }, Distribution::Uniform(-bound, bound));
            GruOperands {
                input: Tensor::random([2, 3 * units, inputs], range, &device).require_grad(),
                recurrent: Tensor::random([2, 3 * units, units], range, &device).require_grad(),
                input_bias: Tensor::random([2, 3 * units], range, &device).require_grad(),
                recurrent_bias: Tensor::random([2, 3 * units], range, &device).require_grad(),
            }
        })
        .collect();
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < 5 || begin.elapsed().as_secs() < seconds as u64 {
        let start = Instant::now();
        let mut y = x.clone();
        for (layer, weights) in weights.iter().enumerate() {
            let states = if layer + 1 == layers { GruStates::Last } else { GruStates::All };
            y = gru(y, weights.clone(), &lengths, states);
        }
        let forward = start.elapsed().as_secs_f64();
        let gradients = y.square().sum().backward();
        let found = weights.iter().all(|weights| weights.input.grad(&gradients).is_some());
        assert!(found, "every layer has a gradient");
        times.push((forward, start.elapsed().as_secs_f64()));
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (forward, all) = times[times.len() / 2];
    println!("{{\"forward_ms\": {:.3}, \"ms\": {:.3}, \"steps\": {}}}", forward * 1e3, all * 1e3, lengths.steps());
}
