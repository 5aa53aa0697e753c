//! The leading eigenvectors of a large sparse symmetric matrix whose eigenvalues are between -1 and 1.
//!
//! A block of vectors is multiplied with a Chebyshev polynomial of the matrix, which is small on the eigenvalues that are
//! not wanted and large on those that are; then the best combinations of the block are taken (Rayleigh-Ritz); and again.
//! A block, because a graph in several parts has the eigenvalue 1 several times, of which a method with one vector
//! finds one.

use dtkc_ops::for_each;

use super::block::Block;
use super::embedding::SpectralOptions;
use super::graph::Graph;
use crate::LearnError;
use crate::random::Random;
use crate::symmetric::eigen;

/// Degree of the polynomial.
const DEGREE: usize = 40;
/// Rounds after which what was found counts, if it is good enough.
const MOST_ROUNDS: usize = 100;
/// How well it must hold at least, after the last round.
const WORST_RESIDUAL: f64 = 1e-4;
/// Rows of a part of a product.
const PART: usize = 1024;

/// Leading eigenvalues, largest first, and their eigenvectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Leading {
    /// Eigenvalues.
    pub values: Vec<f64>,
    /// `[n, count]`, of length 1 by columns.
    pub vectors: Vec<f64>,
}

/// The largest eigenvalues of a matrix, as many as there are clusters.
pub(super) fn leading(
    matrix: &Graph,
    options: &SpectralOptions,
    stop: &dyn Fn() -> bool,
) -> Result<Leading, LearnError> {
    let n = matrix.len();
    let count = options.clusters.min(n);
    // A few more than are wanted: what lies between the last wanted eigenvalue and the first left out is what counts.
    let width = (count + (count / 2).clamp(6, 40)).min(n);
    let mut random = Random::new(options.seed, b"subspace", 0);
    let mut block = Block::random(n, width, &mut random);
    let (mut values, mut worst) = (Vec::new(), f64::INFINITY);
    let mut cut = 0.0;
    for round in 0..MOST_ROUNDS {
        if stop() {
            return Err(LearnError::Stopped);
        }
        if round > 0 {
            block = filtered(matrix, block, cut);
        }
        block.orthonormalise(&mut random);
        let mut image = Block::zero(n, width);
        multiply(matrix, &block, |_, row, sum| row.copy_from_slice(sum), &mut image);
        let found = eigen(block.products(&image), width);
        (block, image) = (block.combined(&found.vectors), image.combined(&found.vectors));
        values = found.values;
        worst = (0..count).map(|j| image.residual(&block, values[j], j)).fold(0.0, f64::max);
        if worst <= options.residual || width == n {
            break;
        }
        // The damped part ends where the block ends: below the last of its values there are only unwanted ones.
        cut = values[width - 1].clamp(-0.99, 0.999_999);
    }
    if worst > WORST_RESIDUAL {
        return Err(LearnError::Unsuitable(format!(
            "the eigenvectors of the neighbour graph did not converge (a residual of {worst:.1e} is left): use more \
             neighbours (--set neighbours=N) or another number of clusters"
        )));
    }
    values.truncate(count);
    Ok(Leading { values, vectors: block.columns(count) })
}

/// The block times a polynomial of the matrix that is at most 1 on [-1, cut] and grows steeply above, scaled so that it is
/// 1 at 1 (Zhou and Saad's recurrence).
fn filtered(matrix: &Graph, block: Block, cut: f64) -> Block {
    let (half, centre) = ((cut + 1.0) / 2.0, (cut - 1.0) / 2.0);
    let mut sigma = half / (1.0 - centre);
    let tau = 2.0 / sigma;
    let mut now = Block::zero(matrix.len(), block.width());
    let mut before = block;
    {
        let factor = sigma / half;
        let old = &before;
        multiply(
            matrix,
            old,
            |at, row, sum| {
                row.iter_mut().zip(sum).zip(old.row(at)).for_each(|((to, sum), x)| *to = (sum - centre * x) * factor);
            },
            &mut now,
        );
    }
    for _ in 1..DEGREE {
        let next = 1.0 / (tau - sigma);
        let (factor, damping) = (2.0 * next / half, sigma * next);
        let current = &now;
        // The block before the current one is overwritten by the one after it.
        multiply(
            matrix,
            current,
            |at, row, sum| {
                let values = row.iter_mut().zip(sum).zip(current.row(at));
                values.for_each(|((to, sum), x)| *to = (sum - centre * x) * factor - damping * *to);
            },
            &mut before,
        );
        std::mem::swap(&mut before, &mut now);
        sigma = next;
    }
    now
}

/// `matrix * block`, row by row; `write` puts the sums of a row where they belong.
fn multiply(matrix: &Graph, block: &Block, write: impl Fn(usize, &mut [f64], &[f64]) + Sync, out: &mut Block) {
    let width = block.width();
    for_each(out.parts_mut(PART), |(first, rows)| {
        let mut sum = vec![0.0; width];
        for (offset, row) in rows.chunks_exact_mut(width).enumerate() {
            sum.fill(0.0);
            let (ends, weights) = matrix.edges(first + offset);
            for (&end, &weight) in ends.iter().zip(weights) {
                sum.iter_mut().zip(block.row(end as usize)).for_each(|(sum, value)| *sum += weight * value);
            }
            write(first + offset, row, &sum);
        }
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Affinity, EXACT};
    use super::*;

    fn cycle(lengths: &[usize]) -> Graph {
        let mut graph = Graph { starts: vec![0], ends: Vec::new(), weights: Vec::new() };
        let mut first = 0;
        for &length in lengths {
            for i in 0..length {
                let mut ends = [(first + (i + 1) % length) as u32, (first + (i + length - 1) % length) as u32];
                ends.sort_unstable();
                graph.ends.extend(ends);
                graph.weights.extend([1.0, 1.0]);
                graph.starts.push(graph.ends.len());
            }
            first += length;
        }
        graph.normalised()
    }

    fn wanted(clusters: usize) -> SpectralOptions {
        SpectralOptions { clusters, neighbours: 2, affinity: Affinity::Connectivity, residual: EXACT, seed: 1 }
    }

    #[test]
    fn eigenvalues_of_a_cycle_are_known() {
        // cos(2 pi j / n), each twice but the first.
        let found = leading(&cycle(&[300]), &wanted(5), &|| false).unwrap();
        let cosine = |j: f64| (std::f64::consts::TAU * j / 300.0).cos();
        for (value, expected) in found.values.iter().zip([1.0, cosine(1.0), cosine(1.0), cosine(2.0), cosine(2.0)]) {
            assert!((value - expected).abs() < 1e-12, "{:?}", found.values);
        }
    }

    #[test]
    fn parts_without_an_edge_between_them_have_an_eigenvalue_each() {
        let found = leading(&cycle(&[40, 50, 60]), &wanted(3), &|| false).unwrap();
        assert!(found.values.iter().all(|value| (value - 1.0).abs() < 1e-12), "{:?}", found.values);
        // The vectors are constant on every part.
        for part in [0..40, 40..90, 90..150] {
            for item in part.clone() {
                for j in 0..3 {
                    assert!((found.vectors[item * 3 + j] - found.vectors[part.start * 3 + j]).abs() < 1e-8);
                }
            }
        }
    }

    #[test]
    fn small_matrices_and_stops() {
        let found = leading(&cycle(&[4]), &wanted(9), &|| false).unwrap();
        let expected = [1.0, 0.0, 0.0, -1.0];
        assert!(found.values.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{:?}", found.values);
        assert!(matches!(leading(&cycle(&[9]), &wanted(2), &|| true), Err(LearnError::Stopped)));
    }
}
