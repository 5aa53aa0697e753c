//! Under graph capture the operations are burn's ordinary ones, which an exporter knows.
#![allow(clippy::unwrap_used)]

use burn::tensor::{Device, Tensor};
use dtkc_ops::{Padding, conv2d, projector_distances, scale_relu_pool};

#[test]
fn a_capture_records_ordinary_operations() {
    let device = Device::capture();
    let captured = device
        .capture_scope(|scope| {
            let x = Tensor::<4>::zeros([2, 8, 8, 3], &device);
            let y = conv2d(x, Tensor::zeros([3, 3, 3, 4], &device), Tensor::zeros([4], &device), Padding::Same, true);
            let y = scale_relu_pool(y, Tensor::ones([4], &device), Tensor::zeros([4], &device), 2);
            let _ = projector_distances(y.reshape([2, 4, 16]));
            scope.complete([], [])
        })
        .unwrap();
    let text = format!("{:?}", captured.graph.operations);
    for name in ["Conv2d", "Relu", "MaxPool2d"] {
        assert!(text.contains(name), "no {name} in the captured graph");
    }
}
