//! Random numbers and angles with the same bits on every machine: only additions, multiplications,
//! divisions and square roots are used, which IEEE 754 fixes to the last bit. Sines of the system's
//! library are not.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A random sequence of its own for each seed and stream.
pub struct Random(ChaCha8Rng);

impl Random {
    /// Stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(b"dtkcsynt");
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Evenly from 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }

    /// Evenly from `low` to `high`.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number from 0 to `n - 1`.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Bell-shaped around 0 with deviation 1, never beyond 3.5: the sum of four even numbers.
    pub fn bell(&mut self) -> f64 {
        let sum = self.unit() + self.unit() + self.unit() + self.unit();
        // Four even numbers have the variance 1/3.
        (sum - 2.0) * 1.732_050_807_568_877_2
    }
}

/// Cosine and sine of an angle in turns (1 is a full circle).
pub fn turn(angle: f64) -> (f64, f64) {
    let angle = angle - angle.floor();
    let quarter = (angle * 4.0) as usize % 4;
    let rest = angle * 4.0 - quarter as f64;
    let (c, s) = octant(rest * std::f64::consts::FRAC_PI_2);
    match quarter {
        0 => (c, s),
        1 => (-s, c),
        2 => (-c, -s),
        _ => (s, -c),
    }
}

/// Taylor series for 0 to a quarter turn, good to 1e-9, which is far below a pixel.
fn octant(x: f64) -> (f64, f64) {
    let x2 = x * x;
    let mut cosine = 0.0;
    let mut sine = 0.0;
    for k in (0..8).rev() {
        let n = f64::from(2 * k);
        cosine = 1.0 - cosine * x2 / ((n + 1.0) * (n + 2.0));
        sine = 1.0 - sine * x2 / ((n + 2.0) * (n + 3.0));
    }
    (cosine, sine * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_match_the_library() {
        for i in -50..150 {
            let angle = f64::from(i) / 37.0;
            let (c, s) = turn(angle);
            let (sine, cosine) = (angle * std::f64::consts::TAU).sin_cos();
            assert!((c - cosine).abs() < 1e-9 && (s - sine).abs() < 1e-9, "{angle}: {c} {s}");
        }
    }

    #[test]
    fn bells_have_deviation_one_and_streams_differ() {
        let mut random = Random::new(3, 0);
        let values: Vec<f64> = (0..20_000).map(|_| random.bell()).collect();
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "{mean} {variance}");
        assert_ne!(Random::new(3, 0).unit(), Random::new(3, 1).unit());
        assert_ne!(Random::new(3, 0).unit(), Random::new(4, 0).unit());
        assert_eq!(Random::new(3, 5).unit(), Random::new(3, 5).unit());
    }
}
