//! Initial values, drawn from our own seeded generator.

pub(crate) use dtkc_views::random::generator;
use dtkc_views::random::{ChaCha8Rng, signed, unit};

/// `len` values uniform in [-limit, limit).
pub(crate) fn uniform(rng: &mut ChaCha8Rng, len: usize, limit: f32) -> Vec<f32> {
    (0..len).map(|_| signed(rng) * limit).collect()
}

/// `len` values of a normal distribution with mean 0 (Box-Muller).
pub(crate) fn normal(rng: &mut ChaCha8Rng, len: usize, deviation: f32) -> Vec<f32> {
    let pair = |rng: &mut ChaCha8Rng| {
        // In (0, 1], so that the logarithm is finite.
        let (u, angle) = (1.0 - f64::from(unit(rng)), std::f64::consts::TAU * f64::from(unit(rng)));
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * angle.cos(), radius * angle.sin()]
    };
    let values = (0..len.div_ceil(2)).flat_map(|_| pair(rng)).take(len);
    values.map(|value| (value * f64::from(deviation)) as f32).collect()
}

/// `count` random vectors of `len` values, orthonormal, one after the other; `count` is at most `len`.
pub(crate) fn orthonormal(rng: &mut ChaCha8Rng, count: usize, len: usize) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::with_capacity(count * len);
    for _ in 0..count {
        let mut vector: Vec<f64> = normal(rng, len, 1.0).into_iter().map(f64::from).collect();
        // Twice, because a vector that nearly lies in the space of the others loses its digits the first time.
        for _ in 0..2 {
            for other in all.chunks_exact(len) {
                let product: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(other).for_each(|(value, other)| *value -= product * other);
            }
            let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            vector.iter_mut().for_each(|value| *value /= length);
        }
        all.extend(vector);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_values_fill_their_range() {
        let values = uniform(&mut generator(7, b"test....", 0, 0), 100_000, 0.5);
        assert!(values.iter().all(|v| (-0.5..0.5).contains(v)));
        let mean: f64 = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 1e5;
        let square: f64 = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 5e-3 && (square - 1.0 / 12.0).abs() < 1e-3, "{mean} {square}");
    }

    #[test]
    fn normal_values_have_their_deviation() {
        let values = normal(&mut generator(7, b"test....", 0, 0), 100_001, 0.5);
        let moment = |power: i32| values.iter().map(|&v| f64::from(v).powi(power)).sum::<f64>() / values.len() as f64;
        assert_eq!(values.len(), 100_001);
        // Moments of N(0, 1/4): 0, 1/4, 0, 3/16.
        assert!(moment(1).abs() < 5e-3 && (moment(2) - 0.25).abs() < 5e-3, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 1e-2 && (moment(4) - 0.1875).abs() < 1e-2, "{} {}", moment(3), moment(4));
    }

    #[test]
    fn orthonormal_vectors_are() {
        let all = orthonormal(&mut generator(3, b"test....", 0, 0), 16, 48);
        for (i, a) in all.chunks_exact(48).enumerate() {
            for (j, b) in all.chunks_exact(48).enumerate() {
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} {j} {product}");
            }
        }
    }
}
