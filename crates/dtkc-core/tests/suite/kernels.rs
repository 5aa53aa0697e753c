//! Kernels and loss terms against NumPy float64 with an SVD (scripts/golden/core_golden.py).

use crate::support::{assert_close, golden, noise, read, scalar, tensor};
use burn::tensor::{Tensor, activation};
use dtkc_core::kernel::{Bandwidth, BandwidthRule, Unfolding, distances, distances_by};
use dtkc_core::loss::{self, MembershipSum, d_cs, orthogonality, simplex_closeness};
use dtkc_core::{CompanionKernel, Companions};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    membership_shape: [usize; 2],
    membership: Vec<f64>,
    terms: Terms,
    cases: Vec<Case>,
    paired: Paired,
    narrow: Narrow,
    fine: Fine,
}

/// The factor .15 of the presets, over outputs that lie in groups: among far ones every kernel would be the identity.
#[derive(Deserialize)]
struct Narrow {
    cases: Vec<Case>,
    terms: BTreeMap<String, Terms>,
}

#[derive(Deserialize)]
struct Terms {
    separation: f64,
    orthogonality: f64,
    orthogonality_mean: f64,
    simplex: f64,
    orthogonality_gradient: Vec<f64>,
    simplex_gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    shape: Vec<usize>,
    output: Vec<f64>,
    distances: Vec<f64>,
    rules: BTreeMap<String, Rule>,
}

#[derive(Deserialize)]
struct Rule {
    sigma: f64,
    bandwidth: f64,
    kernel: Vec<f64>,
    objective: f64,
    output_gradient: Vec<f64>,
    membership_gradient: Vec<f64>,
}

#[derive(Deserialize)]
struct Paired {
    shape: [usize; 2],
    logits: Vec<f64>,
    temperature: f64,
    threshold: f64,
    terms: BTreeMap<String, Term>,
}

/// Fine clusters of two views, more of them than images.
#[derive(Deserialize)]
struct Fine {
    shape: [usize; 2],
    logits: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    /// The cluster of every first and second view where all are certain.
    labels: [Vec<usize>; 2],
    certain_value: f64,
}

#[derive(Deserialize)]
struct Term {
    value: f64,
    gradient: Vec<f64>,
}

pub fn bandwidth(rule: &str, sigma: f64) -> Bandwidth {
    let rule = if rule == "distance" { BandwidthRule::Distance } else { BandwidthRule::Squared };
    Bandwidth { rule, sigma }
}

#[test]
fn every_rank_agrees_with_the_svd() {
    let golden: Golden = golden("kernels");
    assert!(golden.narrow.cases.iter().flat_map(|case| case.rules.values()).all(|rule| rule.sigma == 0.15));
    for case in golden.cases.iter().chain(&golden.narrow.cases) {
        match case.shape.len() {
            2 => check::<2>(case, &golden),
            3 => check::<3>(case, &golden),
            4 => check::<4>(case, &golden),
            _ => check::<5>(case, &golden),
        }
    }
}

fn check<const D: usize>(case: &Case, golden: &Golden) {
    let shape: [usize; D] = case.shape.clone().try_into().unwrap();
    let name = &case.name;
    // The projectors carry a ridge of 1e-5 of the mean eigenvalue, the SVD has none.
    let tolerance = if D == 2 { 3e-6 } else { 5e-4 };
    let found = distances(tensor(&case.output, shape));
    assert_close(&format!("{name}: distances"), &read(found.clone()), &case.distances, tolerance);
    for (rule, expected) in &case.rules {
        let bandwidth = bandwidth(rule, expected.sigma);
        assert_close(&format!("{name}, {rule}: bandwidth"), &[bandwidth.of(&found)], &[expected.bandwidth], tolerance);
        let kernel = read(bandwidth.kernel(found.clone()));
        assert_close(&format!("{name}, {rule}: kernel"), &kernel, &expected.kernel, tolerance);

        let output = tensor(&case.output, shape).require_grad();
        let membership = tensor(&golden.membership, golden.membership_shape).require_grad();
        let objective = Companions { kernel: CompanionKernel::Tensor, bandwidth, unfolding: Unfolding::Short }
            .objective(output.clone(), membership.clone());
        assert_close(
            &format!("{name}, {rule}: objective"),
            &[scalar(objective.clone())],
            &[expected.objective],
            tolerance,
        );
        let gradients = objective.backward();
        let of_output = read(output.grad(&gradients).unwrap());
        assert_close(
            &format!("{name}, {rule}: gradient of output"),
            &of_output,
            &expected.output_gradient,
            4.0 * tolerance,
        );
        let of_membership = read(membership.grad(&gradients).unwrap());
        let what = format!("{name}, {rule}: gradient of membership");
        assert_close(&what, &of_membership, &expected.membership_gradient, 4.0 * tolerance);
    }
}

/// By the definition, from the distances of the SVD.
#[test]
fn the_contrast_between_views_is_that_of_its_definition() {
    let golden: Golden = golden("kernels");
    for case in golden.cases.iter().filter(|case| case.shape.len() == 4 && case.shape[0] % 2 == 0) {
        let (rows, n) = (case.shape[0], case.shape[0] / 2);
        let across = |i: usize, j: usize| case.distances[i * rows + n + j];
        let mut all: Vec<f64> = (0..n * n).map(|at| across(at / n, at % n)).collect();
        all.sort_by(f64::total_cmp);
        let b = 0.5 * (all[(n * n - 1) / 2] + all[n * n / 2]) / 2.0;
        let one = |own: f64, others: &dyn Fn(usize) -> f64| {
            own / b + (0..n).map(|j| (-others(j) / b).exp()).sum::<f64>().ln()
        };
        let both = |i: usize| one(across(i, i), &|j| across(i, j)) + one(across(i, i), &|j| across(j, i));
        let expected = (0..n).map(both).sum::<f64>() / (2 * n) as f64;

        let companions = Companions {
            kernel: CompanionKernel::Tensor,
            bandwidth: bandwidth("squared", 0.5),
            unfolding: Unfolding::Short,
        };
        let shape: [usize; 4] = case.shape.clone().try_into().unwrap();
        let output = tensor(&case.output, shape).require_grad();
        let found = companions.contrast(output.clone());
        assert_close(&format!("{}: contrast", case.name), &[scalar(found.clone())], &[expected], 1e-3);
        // A small step against the gradient lowers it.
        let gradient = output.grad(&found.clone().backward()).unwrap();
        let length = scalar(gradient.clone().square().sum()).sqrt();
        let moved = companions.contrast(output.detach() - gradient * (1e-2 / length));
        assert!(scalar(moved) < scalar(found), "{}", case.name);
    }
}

#[test]
fn the_nearest_rule_goes_by_the_fifth_nearest_other() {
    let places = [0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 21.0];
    let found = distances(tensor::<2>(&places, [7, 1]));
    let b = Bandwidth { rule: BandwidthRule::Nearest, sigma: 0.5 }.of(&found);
    // Five nearest others, by hand: of 0: 1 3 6 10 15; of 1: 1 2 5 9 14; of 3: 2 3 3 7 12; of 6: 3 4 5 6 9; of 10: 4 5 7 9 10; of 15: 5 6 9 12 14;
    // of 21: 6 11 15 18 20. Sorted: 9 10 12 14 14 15 20.
    assert!((b - 0.5 * 14.0 * 14.0).abs() < 1e-3, "{b}");
    let few = distances(tensor::<2>(&[0.0, 2.0], [2, 1]));
    assert!((Bandwidth { rule: BandwidthRule::Nearest, sigma: 1.0 }.of(&few) - 4.0).abs() < 1e-5);
}

#[test]
fn the_papers_terms_agree() {
    let golden: Golden = golden("kernels");
    let kernel = |cases: &[Case], bandwidth: Bandwidth| {
        let vectors = cases.iter().find(|case| case.shape.len() == 2).unwrap();
        bandwidth.kernel(distances(tensor::<2>(&vectors.output, [vectors.shape[0], vectors.shape[1]])))
    };
    check_terms("squared .3", &golden.terms, &golden, &kernel(&golden.cases, bandwidth("squared", 0.3)));
    assert_eq!(golden.narrow.terms.len(), 2);
    for (rule, terms) in &golden.narrow.terms {
        let kernel = kernel(&golden.narrow.cases, bandwidth(rule, 0.15));
        check_terms(&format!("{rule} .15"), terms, &golden, &kernel);
    }
}

fn check_terms(what: &str, terms: &Terms, golden: &Golden, kernel: &Tensor<2>) {
    let membership = || tensor(&golden.membership, golden.membership_shape).require_grad();
    let separation = d_cs(membership(), kernel.clone());
    assert_close(&format!("{what}: separation"), &[scalar(separation)], &[terms.separation], 1e-5);

    let u = membership();
    let sum = orthogonality(u.clone(), MembershipSum::Sum);
    assert_close(&format!("{what}: orthogonality"), &[scalar(sum.clone())], &[terms.orthogonality], 1e-5);
    let gradient = read(u.grad(&sum.backward()).unwrap());
    assert_close(&format!("{what}: orthogonality, gradient"), &gradient, &terms.orthogonality_gradient, 1e-5);
    let mean = orthogonality(membership(), MembershipSum::Mean);
    assert_close(&format!("{what}: orthogonality, mean"), &[scalar(mean)], &[terms.orthogonality_mean], 1e-5);

    let u = membership();
    let simplex = d_cs(simplex_closeness(u.clone()), kernel.clone());
    assert_close(&format!("{what}: simplex"), &[scalar(simplex.clone())], &[terms.simplex], 1e-5);
    let gradient = read(u.grad(&simplex.backward()).unwrap());
    assert_close(&format!("{what}: simplex, gradient"), &gradient, &terms.simplex_gradient, 1e-4);
}

#[test]
fn terms_between_views_agree() {
    let Paired { shape, logits, temperature, threshold, terms } = golden::<Golden>("kernels").paired;
    let half = shape[0] / 2;
    for (name, expected) in terms {
        let logits = tensor(&logits, shape).require_grad();
        let halves = |x: Tensor<2>| (x.clone().narrow(0, 0, half), x.narrow(0, half, half));
        let (first, second) = halves(logits.clone());
        let membership = activation::softmax(logits.clone(), 1);
        let (u, v) = halves(membership.clone());
        let value = match name.as_str() {
            "consistency" => loss::consistency(first, second, temperature),
            "mutual_information" => loss::mutual_information(u, v),
            "self_label" => loss::self_label(first, second, threshold),
            "balance" => loss::balance(membership),
            _ => loss::certainty(logits.clone()),
        };
        assert_close(&name, &[scalar(value.clone())], &[expected.value], 1e-5);
        let gradient = read(logits.grad(&value.backward()).unwrap());
        assert_close(&format!("{name}, gradient"), &gradient, &expected.gradient, 1e-4);
    }
}

#[test]
fn a_plain_unfolding_with_more_rows_than_columns_only_adds_a_constant() {
    // 8 x (2 x 3): the last mode has 8 rows and 6 columns. NumPy's SVD of such a matrix has a row space of all 6
    // dimensions, so that the authors' 2 (8 - tr(P_a P_b)) is 2 (8 - 6) = 4 for every pair, the diagonal too.
    let x = tensor::<4>(&noise(5 * 2 * 3 * 8, 4), [5, 2, 3, 8]);
    let (short, plain) = (distances_by(x.clone(), Unfolding::Short), distances_by(x.clone(), Unfolding::Plain));
    let rows = |mode: usize| [2, 3, 8][mode];
    assert!(rows(2) > 6 && read(short)[1] > 0.0);
    let found = read(plain);
    assert!((0..5).all(|i| (found[i * 5 + i] - 4.0).abs() < 1e-3), "{found:?}");
    // Without that mode and its constant nothing is left but the other two.
    let other: Vec<f64> = read(dtkc_ops::projector_distances(x.clone().reshape([5, 2, 24])))
        .iter()
        .zip(read(dtkc_ops::projector_distances(x.permute([0, 2, 1, 3]).reshape([5, 3, 16]))))
        .map(|(a, b)| a + b + 4.0)
        .collect();
    assert_close("plain", &found, &other, 1e-4);
}

#[test]
fn overclustering_agrees() {
    let Fine { shape, logits, value, gradient, .. } = golden::<Golden>("kernels").fine;
    let half = shape[0] / 2;
    let logits = tensor(&logits, shape).require_grad();
    let fine = activation::softmax(logits.clone(), 1);
    let found = loss::mutual_information(fine.clone().narrow(0, 0, half), fine.narrow(0, half, half));
    assert_close("overclustering", &[scalar(found.clone())], &[value], 2e-6);
    let found = read(logits.grad(&found.backward()).unwrap());
    assert_close("overclustering, gradient", &found, &gradient, 1e-5);
}

/// Empty clusters have no share in the information. Its gradient for them is infinite in truth, and finite here.
#[test]
fn overclustering_of_certain_memberships_agrees() {
    let Fine { shape: [_, k], labels, certain_value, .. } = golden::<Golden>("kernels").fine;
    let certain = |labels: &[usize]| {
        let mut values = vec![0.0; labels.len() * k];
        labels.iter().enumerate().for_each(|(row, label)| values[row * k + label] = 1.0);
        tensor(&values, [labels.len(), k]).require_grad()
    };
    let (first, second) = (certain(&labels[0]), certain(&labels[1]));
    let found = loss::mutual_information(first.clone(), second.clone());
    assert_close("certain", &[scalar(found.clone())], &[certain_value], 2e-6);
    let gradients = found.backward();
    for view in [first, second] {
        let gradient = read(view.grad(&gradients).unwrap());
        // The joint distribution is held above 1e-12, whose logarithm is -27.6.
        assert!(gradient.iter().all(|g| g.abs() < 60.0), "{gradient:?}");
    }
}
