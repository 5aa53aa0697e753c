//! The tensor kernel's gradients where unfoldings lack rank, against NumPy float64 with an SVD
//! (scripts/golden/core_golden.py).
//!
//! A projector jumps where the rank of its matrix changes: there the companion objective has no gradient, and no
//! reference value exists. It does have slopes along moves that keep the rank of every unfolding: equal rows that move
//! together, live channels, slices of a constant image (which stays a product of vectors), every entry of an image of
//! full rank. The golden file lists such moves with their slopes. Of all other directions, among them every direction
//! of a blank image, these tests ask only that the gradient is finite and no larger than where it is defined.

use crate::kernels::bandwidth;
use crate::support::{assert_close, golden, largest, read, scalar, tensor};
use dtkc_core::kernel::{Unfolding, distances};
use dtkc_core::{CompanionKernel, Companions};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    membership_shape: [usize; 2],
    membership: Vec<f64>,
    deficient: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    shape: Vec<usize>,
    output: Vec<f64>,
    distances: Vec<f64>,
    /// Places of the entries that grow alike, for every move.
    moves: Vec<Vec<usize>>,
    rules: BTreeMap<String, Rule>,
}

#[derive(Deserialize)]
struct Rule {
    sigma: f64,
    bandwidth: f64,
    kernel: Vec<f64>,
    objective: f64,
    /// The slope of the objective along every move.
    slopes: Vec<f64>,
    membership_gradient: Vec<f64>,
}

/// Largest relative errors. The projectors carry a ridge of 1e-5 of the mean eigenvalue, the SVD has none.
const VALUES: f64 = 3e-4;
const SLOPES: f64 = 1e-3;

#[test]
fn slopes_that_keep_the_rank_agree_with_the_svd() {
    let golden: Golden = golden("kernels");
    assert_eq!(golden.deficient.len(), 6);
    for case in &golden.deficient {
        match case.shape.len() {
            3 => check::<3>(case, &golden),
            _ => check::<4>(case, &golden),
        }
    }
}

fn check<const D: usize>(case: &Case, golden: &Golden) {
    let shape: [usize; D] = case.shape.clone().try_into().unwrap();
    let found = distances(tensor(&case.output, shape));
    assert_close(&format!("{}: distances", case.name), &read(found.clone()), &case.distances, VALUES);
    for (rule, expected) in &case.rules {
        let name = format!("{}, {rule}", case.name);
        let bandwidth = bandwidth(rule, expected.sigma);
        assert_close(&format!("{name}: bandwidth"), &[bandwidth.of(&found)], &[expected.bandwidth], VALUES);
        assert_close(&format!("{name}: kernel"), &read(bandwidth.kernel(found.clone())), &expected.kernel, VALUES);

        let output = tensor(&case.output, shape).require_grad();
        let membership = tensor(&golden.membership, golden.membership_shape).require_grad();
        let objective = Companions { kernel: CompanionKernel::Tensor, bandwidth, unfolding: Unfolding::Short }
            .objective(output.clone(), membership.clone());
        assert_close(&format!("{name}: objective"), &[scalar(objective.clone())], &[expected.objective], VALUES);
        let gradients = objective.backward();
        let of_membership = read(membership.grad(&gradients).unwrap());
        let what = format!("{name}: gradient of membership");
        assert_close(&what, &of_membership, &expected.membership_gradient, 4.0 * VALUES);
        check_slopes(&name, case, &read(output.grad(&gradients).unwrap()), &expected.slopes);
    }
}

/// Compares image by image, so that a steep one does not hide another.
fn check_slopes(name: &str, case: &Case, gradient: &[f64], expected: &[f64]) {
    let size = case.output.len() / case.shape[0];
    let steepest = largest(expected.iter().copied());
    // All entries, the undefined directions among them; a NaN or an infinity is not below the limit.
    let bound = largest(gradient.iter().copied());
    assert!(bound <= 1.01 * steepest, "{name}: {bound} but {steepest}");
    for image in 0..case.shape[0] {
        let own = case.moves.iter().zip(expected).filter(|(places, _)| places[0] / size == image);
        let (found, expected): (Vec<f64>, Vec<f64>) =
            own.map(|(places, slope)| (places.iter().map(|&at| gradient[at]).sum::<f64>(), *slope)).unzip();
        // The differences of the reference are good to about 1e-10.
        if largest(expected.iter().copied()) > 1e-3 * steepest {
            assert_close(&format!("{name}: slopes of image {image}"), &found, &expected, SLOPES);
        }
    }
}
