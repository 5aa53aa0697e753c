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
}
