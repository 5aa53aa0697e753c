//! Times whole training steps of the paper's network built from this crate's operations: forward, loss, backward, Adam.
//!
//! `cargo run --release -p dtkc-ops --example step -- [size] [channels] [clusters] [batch] [threads] [steps]`
//! (defaults 28 1 10 120 2 15). `dtkc-train bench` times the same step inside the trainer, beside more figures.

use std::time::Instant;

use burn::{
    module::{Module, Param},
    optim::{AdamConfig, GradientsParams},
    tensor::{
        Device, Tensor, TensorData, activation,
        module::{batch_norm_train, linear},
    },
};
use dtkc_ops::{Padding, batch_norm_relu_pool, conv2d, projector_distances, set_threads};
use rand::{RngExt, SeedableRng};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Weights of one block.
#[derive(Module, Debug)]
struct Block {
    first: Param<Tensor<4>>,
    second: Param<Tensor<4>>,
    biases: Vec<Param<Tensor<1>>>,
    norm: Vec<Param<Tensor<1>>>,
}

#[derive(Module, Debug)]
struct Network {
    blocks: Vec<Block>,
    hidden: Param<Tensor<2>>,
    output: Param<Tensor<2>>,
    biases: Vec<Param<Tensor<1>>>,
    norm: Vec<Param<Tensor<1>>>,
}

/// Seeded values in [-bound, bound).
fn random<const D: usize>(shape: [usize; D], bound: f32, seed: u64, device: &Device) -> Tensor<D> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-bound..bound)).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn vectors(length: usize, first: f32, device: &Device) -> Vec<Param<Tensor<1>>> {
    [first, 0.0].map(|value| Param::from_tensor(Tensor::full([length], value, device))).into()
}

impl Network {
    fn new(size: usize, channels: usize, clusters: usize, device: &Device) -> Network {
        let block = |kernel: usize, channels: usize, seed: u64| {
            let weight = |channels: usize, seed| {
                let bound = (6.0 / (kernel * kernel * channels) as f32).sqrt();
                Param::from_tensor(random([kernel, kernel, channels, 32], bound, seed, device))
            };
            Block {
                first: weight(channels, seed),
                second: weight(32, seed + 1),
                biases: vectors(32, 0.0, device),
                norm: vectors(32, 1.0, device),
            }
        };
        let side = ((size - 8) / 2 - 4) / 2;
        let features = 32 * side * side;
        let dense = |rows: usize, columns: usize, seed| {
            Param::from_tensor(random([rows, columns], (6.0 / rows as f32).sqrt(), seed, device))
        };
        let mut biases = vectors(100, 0.0, device);
        biases[1] = Param::from_tensor(Tensor::zeros([clusters], device));
        Network {
            blocks: vec![block(5, channels, 1), block(3, 32, 3)],
            hidden: dense(features, 100, 5),
            output: dense(100, clusters, 6),
            biases,
            norm: vectors(100, 1.0, device),
        }
    }

    /// Block outputs, embedding and memberships.
    fn forward(&self, x: Tensor<4>) -> (Vec<Tensor<4>>, Tensor<2>, Tensor<2>) {
        let (mut y, mut outputs) = (x, Vec::new());
        for block in &self.blocks {
            y = conv2d(y, block.first.val(), block.biases[0].val(), Padding::Valid, true);
            y = conv2d(y, block.second.val(), block.biases[1].val(), Padding::Valid, false);
            y = batch_norm_relu_pool(y, block.norm[0].val(), block.norm[1].val(), 1e-3, 2).y;
            outputs.push(y.clone());
        }
        let z = activation::relu(linear(y.flatten(1, 3), self.hidden.val(), Some(self.biases[0].val())));
        let z = batch_norm_train(z, self.norm[0].val(), self.norm[1].val(), 1e-3).output;
        let u = activation::softmax(linear(z.clone(), self.output.val(), Some(self.biases[1].val())), 1);
        (outputs, z, u)
    }
}

fn kernel(distances: Tensor<2>) -> Tensor<2> {
    let mut values: Vec<f32> = distances.clone().detach().into_data().iter::<f32>().collect();
    let middle = values.len() / 2;
    let (_, median, _) = values.select_nth_unstable_by(middle, f32::total_cmp);
    (distances * (-1.0 / (0.15 * f64::from(*median)).max(1e-9))).exp()
}

fn tensor_kernel(y: Tensor<4>) -> Tensor<2> {
    let [n, h, w, c] = y.dims();
    let height = projector_distances(y.clone().reshape([n, h, w * c]));
    let width = projector_distances(y.clone().swap_dims(1, 2).reshape([n, w, h * c]));
    kernel(height + width + projector_distances(y.reshape([n, h * w, c])))
}

fn mask(k: usize, keep: fn(usize, usize) -> bool, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = (0..k * k).map(|i| f32::from(keep(i / k, i % k))).collect();
    Tensor::from_data(TensorData::new(values, [k, k]), device)
}

fn d_cs(a: Tensor<2>, kernel: Tensor<2>) -> Tensor<1> {
    let [_, k] = a.dims();
    let device = a.device();
    let products = a.clone().transpose().matmul(kernel.matmul(a));
    let diagonal = (products.clone() * mask(k, |i, j| i == j, &device)).sum_dim(1);
    let norms = (diagonal.clone().matmul(diagonal.transpose()) + 1e-6).sqrt();
    (products / norms * mask(k, |i, j| i < j, &device)).sum() * (2.0 / (k * (k - 1)) as f64)
}

fn loss(outputs: Vec<Tensor<4>>, z: Tensor<2>, u: Tensor<2>, companions: bool) -> Tensor<1> {
    let norms = z.clone().square().sum_dim(1);
    let distances = norms.clone() + norms.transpose() - z.clone().matmul(z.transpose()) * 2.0;
    let kz = kernel(activation::relu(distances));
    let corners = (u.clone() * 2.0 - u.clone().square().sum_dim(1) - 1.0).exp();
    let sums = (u.clone().sum_dim(0).square().sum() - u.clone().square().sum()) * 0.5;
    let mut total = d_cs(u.clone(), kz.clone()) + sums + d_cs(corners, kz);
    if companions {
        for y in outputs {
            total = total + d_cs(u.clone(), tensor_kernel(y)) * 0.01;
        }
    }
    total
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |index: usize, default| numbers.get(index).copied().unwrap_or(default);
    let (size, channels, clusters, batch) = (number(0, 28), number(1, 1), number(2, 10), number(3, 120));
    set_threads(number(4, 2));
    let device = Device::flex().autodiff();
    for companions in [false, true] {
        let mut network = Network::new(size, channels, clusters, &device);
        let mut adam = AdamConfig::new().init();
        let x = random([batch, size, size, channels], 0.5, 9, &device) + 0.5;
        let mut times = Vec::new();
        let mut parts = [f64::MAX; 4];
        for _ in 0..number(5, 15) + 3 {
            let start = Instant::now();
            let (outputs, z, u) = network.forward(x.clone());
            let forward = start.elapsed();
            let value = loss(outputs, z, u, companions);
            let kernels = start.elapsed();
            let grads = value.backward();
            let backward = start.elapsed();
            let grads = GradientsParams::from_grads(grads, &network);
            network = adam.step(1e-3, network, grads);
            let whole = start.elapsed();
            let marks = [forward, kernels - forward, backward - kernels, whole - backward];
            for (part, mark) in parts.iter_mut().zip(marks) {
                *part = part.min(mark.as_secs_f64() * 1e3);
            }
            times.push(whole.as_secs_f64() * 1e3);
        }
        let mut times = times.split_off(3);
        times.sort_by(f64::total_cmp);
        println!(
            "{:5} {:8.2} ms/step median, {:8.2} fastest (forward {:.2}, loss {:.2}, backward {:.2}, adam {:.2})",
            if companions { "dtkc" } else { "ddc" },
            times[times.len() / 2],
            times[0],
            parts[0],
            parts[1],
            parts[2],
            parts[3],
        );
    }
}
