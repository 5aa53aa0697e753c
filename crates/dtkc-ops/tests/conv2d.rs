//! `conv2d` against burn's own convolution, values and gradients.
#![allow(clippy::unwrap_used)]

mod common;

use burn::tensor::{Tensor, activation, module, ops::ConvOptions};
use common::{assert_tensors, device, random};
use dtkc_ops::{Padding, conv2d};

struct Case {
    n: usize,
    size: (usize, usize),
    kernel: (usize, usize),
    channels: (usize, usize),
    padding: Padding,
    relu: bool,
}

/// burn's own convolution between two changes of layout.
fn burn_conv2d(x: Tensor<4>, weight: Tensor<4>, bias: Tensor<1>, case: &Case) -> Tensor<4> {
    let mut options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
    options.padding = [case.padding.amounts(case.kernel.0), case.padding.amounts(case.kernel.1)];
    let y = module::conv2d(x.permute([0, 3, 1, 2]), weight.permute([3, 2, 0, 1]), Some(bias), options);
    let y = if case.relu { activation::relu(y) } else { y };
    y.permute([0, 2, 3, 1])
}

fn check(case: Case) {
    let device = device();
    let (h, w) = case.size;
    let (kh, kw) = case.kernel;
    let (cin, cout) = case.channels;
    let what = format!("{}x{h}x{w}x{cin}, {kh}x{kw}x{cout}, {:?}, relu {}", case.n, case.padding, case.relu);
    let x = random([case.n, h, w, cin], 1, &device).require_grad();
    let weight = random([kh, kw, cin, cout], 2, &device).require_grad();
    let bias = random([cout], 3, &device).require_grad();
    let run = |ours: bool| {
        let (x, weight, bias) = (x.clone(), weight.clone(), bias.clone());
        let y =
            if ours { conv2d(x, weight, bias, case.padding, case.relu) } else { burn_conv2d(x, weight, bias, &case) };
        let upstream = random(y.dims(), 4, &device);
        let grads = (y.clone() * upstream).sum().backward();
        (y.inner(), grads)
    };
    let (y, grads) = run(true);
    let (expected_y, expected) = run(false);
    assert_tensors(y, expected_y, 2e-5, &format!("{what}: y"));
    assert_tensors(x.grad(&grads).unwrap(), x.grad(&expected).unwrap(), 2e-5, &format!("{what}: dx"));
    assert_tensors(weight.grad(&grads).unwrap(), weight.grad(&expected).unwrap(), 2e-5, &format!("{what}: dw"));
    assert_tensors(bias.grad(&grads).unwrap(), bias.grad(&expected).unwrap(), 2e-5, &format!("{what}: db"));
}

#[test]
fn the_layers_of_the_paper() {
    for (size, kernel, channels, relu) in
        [(28, 5, (1, 32), true), (24, 5, (32, 32), false), (10, 3, (32, 32), true), (8, 3, (32, 32), false)]
    {
        let case = Case { n: 3, size: (size, size), kernel: (kernel, kernel), channels, padding: Padding::Valid, relu };
        check(case);
    }
}

#[test]
fn kernels_of_one_to_seven_with_either_border() {
    for kernel in 1..8 {
        for padding in [Padding::Valid, Padding::Same] {
            for channels in [(1, 16), (3, 20), (17, 5), (32, 33)] {
                check(Case { n: 2, size: (11, 9), kernel: (kernel, kernel), channels, padding, relu: kernel % 2 == 0 });
            }
        }
    }
}

#[test]
fn one_to_four_input_channels() {
    for cin in 1..5 {
        check(Case { n: 2, size: (13, 17), kernel: (5, 5), channels: (cin, 32), padding: Padding::Valid, relu: true });
    }
}

#[test]
fn oblong_kernels_and_images() {
    for kernel in [(1, 3), (3, 1), (2, 5), (7, 4)] {
        for padding in [Padding::Valid, Padding::Same] {
            check(Case { n: 2, size: (9, 21), kernel, channels: (6, 18), padding, relu: true });
        }
    }
}

#[test]
fn single_images_and_single_pixels() {
    check(Case { n: 1, size: (24, 24), kernel: (5, 5), channels: (32, 32), padding: Padding::Same, relu: true });
    check(Case { n: 1, size: (5, 5), kernel: (5, 5), channels: (2, 3), padding: Padding::Valid, relu: false });
    check(Case { n: 1, size: (1, 1), kernel: (3, 3), channels: (1, 1), padding: Padding::Same, relu: false });
}

#[test]
fn many_images_with_few_tiles_each() {
    check(Case { n: 61, size: (8, 8), kernel: (3, 3), channels: (16, 24), padding: Padding::Valid, relu: true });
}

#[test]
fn a_view_that_is_not_contiguous() {
    let device = device();
    let x = random([2, 7, 9, 8], 1, &device);
    let weight = random([3, 3, 8, 16], 2, &device);
    let bias = random([16], 3, &device);
    let flipped = x.clone().swap_dims(1, 2);
    let copied = Tensor::from_data(flipped.clone().into_data(), &device);
    let actual = conv2d(flipped, weight.clone(), bias.clone(), Padding::Same, true);
    assert_tensors(actual, conv2d(copied, weight, bias, Padding::Same, true), 0.0, "swapped");
}

#[test]
fn without_gradients_the_result_is_the_same() {
    let tracked = device();
    let plain = burn::tensor::Device::flex();
    let run = |device| {
        let x = random([2, 9, 9, 8], 1, device);
        common::values(conv2d(x, random([3, 3, 8, 8], 2, device), random([8], 3, device), Padding::Valid, true))
    };
    assert_eq!(run(&tracked), run(&plain));
}
