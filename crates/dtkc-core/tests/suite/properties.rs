//! What must hold for any input.

use crate::support::{largest, membership, noise, read, scalar, tensor};
use burn::tensor::Tensor;
use dtkc_core::kernel::{Bandwidth, BandwidthRule, distances};
use dtkc_core::loss::{MembershipSum, d_cs, orthogonality, simplex_closeness};
use proptest::prelude::*;

fn bandwidth(squared: bool, sigma: f64) -> Bandwidth {
    Bandwidth { rule: if squared { BandwidthRule::Squared } else { BandwidthRule::Distance }, sigma }
}

/// Whether `A + slack I` has a Cholesky factor.
fn is_positive(matrix: &[f64], n: usize, slack: f64) -> bool {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|m| l[i * n + m] * l[j * n + m]).sum();
            let value = (matrix[i * n + j] + matrix[j * n + i]) / 2.0 - dot;
            if i == j {
                if value + slack <= 0.0 {
                    return false;
                }
                l[i * n + i] = (value + slack).sqrt();
            } else {
                l[i * n + j] = value / l[j * n + j];
            }
        }
    }
    true
}

fn check_kernel(d: Tensor<2>, bandwidth: Bandwidth) -> Result<(), TestCaseError> {
    let [n, _] = d.dims();
    let distances = read(d.clone());
    let kernel = read(bandwidth.kernel(d));
    for i in 0..n {
        prop_assert_eq!(kernel[i * n + i], 1.0);
        prop_assert_eq!(distances[i * n + i], 0.0);
        for j in 0..n {
            prop_assert!((0.0..=1.0).contains(&kernel[i * n + j]));
            prop_assert!(distances[i * n + j] >= 0.0);
            prop_assert!((kernel[i * n + j] - kernel[j * n + i]).abs() < 1e-5);
        }
    }
    prop_assert!(is_positive(&kernel, n, 1e-4), "not positive semi-definite");
    Ok(())
}

/// A well-conditioned change of basis: the identity plus noise.
fn basis(size: usize, seed: u64) -> Tensor<2> {
    let mut values: Vec<f64> = noise(size * size, seed).iter().map(|v| v * 0.5 / (size as f64).sqrt()).collect();
    values.iter_mut().step_by(size + 1).for_each(|v| *v += 1.0);
    tensor(&values, [size, size])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tensor_kernels_are_kernels(
        n in 1usize..9, h in 1usize..6, w in 1usize..6, c in 1usize..9, seed in any::<u64>(), squared: bool,
        sigma in 0.05f64..2.0, relu: bool,
    ) {
        let values: Vec<f64> = noise(n * h * w * c, seed).iter().map(|v| if relu { v.max(0.0) } else { *v }).collect();
        check_kernel(distances(tensor::<4>(&values, [n, h, w, c])), bandwidth(squared, sigma))?;
    }

    #[test]
    fn vector_kernels_are_kernels(
        n in 1usize..20, d in 1usize..12, seed in any::<u64>(), squared: bool, sigma in 0.05f64..2.0,
        scale in 1e-3f64..1e3,
    ) {
        let values: Vec<f64> = noise(n * d, seed).iter().map(|v| v * scale).collect();
        check_kernel(distances(tensor::<2>(&values, [n, d])), bandwidth(squared, sigma))?;
    }

    /// The rows of an unfolding may be mixed by any invertible matrix: their space stays.
    #[test]
    fn tensor_distances_ignore_the_basis_of_the_rows(n in 2usize..7, r in 1usize..5, extra in 1usize..9, seed in any::<u64>()) {
        let d = r + extra;
        // Rows that are nearly parallel have no space that single precision could find again.
        let apart = |at: usize| if at % d == at / d % r { 4.0 } else { 0.0 };
        let values: Vec<f64> = noise(n * r * d, seed).iter().enumerate().map(|(at, value)| value + apart(at)).collect();
        let x: Tensor<3> = tensor(&values, [n, r, d]);
        let bases: Vec<Tensor<2>> = (0..n).map(|i| basis(r, seed ^ (i as u64 + 1))).collect();
        let mixed = Tensor::stack::<3>(bases, 0).matmul(x.clone());
        let (a, b) = (read(distances(x)), read(distances(mixed)));
        let worst = largest(a.iter().zip(&b).map(|(a, b)| a - b));
        prop_assert!(worst < 2e-2, "{}", worst);
    }

    #[test]
    fn d_cs_is_a_ratio(n in 1usize..15, k in 2usize..9, seed in any::<u64>(), squared: bool, sigma in 0.05f64..2.0) {
        let kernel = bandwidth(squared, sigma).kernel(distances(tensor::<2>(&noise(n * 3, seed), [n, 3])));
        let u = membership(n, k, seed ^ 1);
        for a in [u.clone(), simplex_closeness(u.clone())] {
            let value = scalar(d_cs(a, kernel.clone()));
            prop_assert!((-1e-6..=1.0 + 1e-6).contains(&value), "{}", value);
        }
        let mean = scalar(orthogonality(u, MembershipSum::Mean));
        prop_assert!((-1e-6..=1.0 + 1e-6).contains(&mean), "{}", mean);
    }

    #[test]
    fn losses_do_not_depend_on_the_order_of_images(n in 2usize..10, seed in any::<u64>()) {
        let bandwidth = bandwidth(true, 0.3);
        let y: Tensor<4> = tensor(&noise(n * 48, seed), [n, 4, 3, 4]);
        let u = membership(n, 3, seed ^ 5);
        let value = |y: Tensor<4>, u: Tensor<2>| scalar(d_cs(u, bandwidth.kernel(distances(y))));
        let difference = value(y.clone(), u.clone()) - value(y.flip([0]), u.flip([0]));
        prop_assert!(difference.abs() < 1e-5, "{}", difference);
    }
}

#[test]
fn perfect_clusters_give_zero_and_useless_ones_give_one() {
    // Two far groups; memberships that follow them, and memberships that are all alike.
    let z: Tensor<2> = tensor(&[0.0, 0.1, 0.2, 9.0, 9.1, 9.2], [6, 1]);
    let kernel = Bandwidth { rule: BandwidthRule::Squared, sigma: 0.15 }.kernel(distances(z));
    let follow: Tensor<2> = tensor(&[1., 0., 1., 0., 1., 0., 0., 1., 0., 1., 0., 1.], [6, 2]);
    assert!(scalar(d_cs(follow.clone(), kernel.clone())) < 1e-3);
    assert_eq!(scalar(orthogonality(follow, MembershipSum::Sum)), 6.0);
    let alike: Tensor<2> = tensor(&[0.5; 12], [6, 2]);
    assert!(scalar(d_cs(alike, kernel)) > 0.999);
}

#[test]
fn a_square_mode_of_full_rank_tells_nothing() {
    // The third mode is 8 x 8: every image spans the whole space, so its projectors are equal.
    let values: Vec<f64> = noise(6 * 64, 3).iter().map(|v| v * 0.2).collect();
    let mut x = values.clone();
    for image in x.chunks_mut(64) {
        image.iter_mut().step_by(9).for_each(|v| *v += 1.0);
    }
    let all = read(distances(tensor::<4>(&x, [6, 4, 2, 8])));
    let first = read(dtkc_ops::projector_distances(tensor(&x, [6, 4, 16])));
    let second: Tensor<4> = tensor::<4>(&x, [6, 4, 2, 8]).swap_dims(1, 2);
    let second = read(dtkc_ops::projector_distances(second.reshape([6, 2, 32])));
    let worst = largest(all.iter().zip(first.iter().zip(&second)).map(|(all, (a, b))| all - a - b));
    assert!(worst < 1e-3, "{worst}");
}
