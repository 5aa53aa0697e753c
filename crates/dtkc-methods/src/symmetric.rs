//! Eigenvalues of small symmetric matrices, by Jacobi's rotations: exact to the last digits, and equal eigenvalues are no
//! special case.

/// Rotations over the whole matrix after which it would have converged long ago.
const MOST_SWEEPS: usize = 60;

/// Eigenvalues, largest first, and their eigenvectors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Eigen {
    pub(crate) values: Vec<f64>,
    /// One eigenvector per row; the entry of largest size is positive.
    pub(crate) vectors: Vec<f64>,
}

/// The eigenvalues of a symmetric matrix `[side, side]`.
pub(crate) fn eigen(mut matrix: Vec<f64>, side: usize) -> Eigen {
    let mut vectors = vec![0.0; side * side];
    (0..side).for_each(|i| vectors[i * side + i] = 1.0);
    let size: f64 = matrix.iter().map(|value| value * value).sum();
    for _ in 0..MOST_SWEEPS {
        let off: f64 =
            (0..side).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| matrix[i * side + j].powi(2)).sum();
        if off <= size * 1e-32 {
            break;
        }
        for p in 0..side {
            for q in p + 1..side {
                rotate(&mut matrix, &mut vectors, side, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..side).collect();
    order.sort_by(|&a, &b| matrix[b * side + b].total_cmp(&matrix[a * side + a]).then(a.cmp(&b)));
    Eigen {
        values: order.iter().map(|&i| matrix[i * side + i]).collect(),
        vectors: order.iter().flat_map(|&i| upright(&vectors[i * side..][..side])).collect(),
    }
}

/// Makes the entry at (p, q) zero.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], side: usize, p: usize, q: usize) {
    let off = matrix[p * side + q];
    if off == 0.0 {
        return;
    }
    let theta = (matrix[q * side + q] - matrix[p * side + p]) / (2.0 * off);
    let sign = if theta < 0.0 { -1.0 } else { 1.0 };
    let tangent = sign / (theta.abs() + theta.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    for i in 0..side {
        turn(matrix, i * side + p, i * side + q, cosine, sine);
    }
    for i in 0..side {
        turn(matrix, p * side + i, q * side + i, cosine, sine);
        turn(vectors, p * side + i, q * side + i, cosine, sine);
    }
}

fn turn(values: &mut [f64], p: usize, q: usize, cosine: f64, sine: f64) {
    let (a, b) = (values[p], values[q]);
    values[p] = cosine * a - sine * b;
    values[q] = sine * a + cosine * b;
}

/// The vector with a sign that does not depend on how it was found.
fn upright(vector: &[f64]) -> impl Iterator<Item = f64> {
    let largest =
        vector.iter().copied().fold(0.0, |best: f64, value| if value.abs() > best.abs() { value } else { best });
    let sign = if largest < 0.0 { -1.0 } else { 1.0 };
    vector.iter().map(move |value| value * sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(matrix: &[f64], side: usize) -> Eigen {
        let found = eigen(matrix.to_vec(), side);
        for (i, vector) in found.vectors.chunks_exact(side).enumerate() {
            for row in 0..side {
                let image: f64 = (0..side).map(|j| matrix[row * side + j] * vector[j]).sum();
                assert!((image - found.values[i] * vector[row]).abs() < 1e-12, "{found:?}");
            }
            for (j, other) in found.vectors.chunks_exact(side).enumerate() {
                let product: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        assert!(found.values.windows(2).all(|pair| pair[0] >= pair[1]));
        found
    }

    #[test]
    fn known_eigenvalues_are_found() {
        let found = check(&[2.0, 1.0, 1.0, 2.0], 2);
        assert!((found.values[0] - 3.0).abs() < 1e-14 && (found.values[1] - 1.0).abs() < 1e-14);
        // A path of five vertices: 2 - 2 cos(pi j / 5).
        let path: Vec<f64> = (0..25usize)
            .map(|at| match (at / 5, at % 5) {
                (0, 0) | (4, 4) => 1.0,
                (i, j) if i == j => 2.0,
                (i, j) if i.abs_diff(j) == 1 => -1.0,
                _ => 0.0,
            })
            .collect();
        for (value, j) in check(&path, 5).values.iter().zip((0..5).rev()) {
            assert!((value - (2.0 - 2.0 * (std::f64::consts::PI * f64::from(j) / 5.0).cos())).abs() < 1e-13);
        }
    }

    #[test]
    fn equal_eigenvalues_and_nothing_are_no_special_case() {
        check(&[3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, -1.0], 3);
        check(&[1.0; 16], 4);
        assert_eq!(check(&[0.0; 9], 3).values, [0.0; 3]);
        assert_eq!(eigen(Vec::new(), 0).values, [0.0; 0]);
    }
}
