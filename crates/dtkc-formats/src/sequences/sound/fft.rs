//! The Fourier transform of a power of two values, in double precision.
//!
//! Windows of sounds are short: a library would bring more than it saves here.

use std::f64::consts::PI;

/// Prepared for one length.
#[derive(Debug)]
pub struct Fourier {
    /// `cos` and `-sin` of every turn of `k / length`, for the first half.
    turns: Vec<(f64, f64)>,
    values: Vec<(f64, f64)>,
}

impl Fourier {
    /// For `length` values, a power of two and at least 2.
    pub fn new(length: usize) -> Self {
        debug_assert!(length.is_power_of_two() && length >= 2);
        let turn = |k: usize| (-2.0 * PI * k as f64 / length as f64).sin_cos();
        let turns = (0..length / 2).map(|k| (turn(k).1, turn(k).0)).collect();
        Self { turns, values: vec![(0.0, 0.0); length] }
    }

    /// The magnitudes of frequencies 0 to half the length of real values, which zeros are put after.
    pub fn magnitudes(&mut self, input: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
        let length = self.values.len();
        let bits = length.trailing_zeros();
        self.values.fill((0.0, 0.0));
        for (place, value) in input.take(length).enumerate() {
            self.values[place.reverse_bits() >> (usize::BITS - bits)].0 = value;
        }
        self.transform();
        self.values[..=length / 2].iter().map(|(re, im)| re.hypot(*im))
    }

    /// Joins transforms of 1, 2, 4 and so on values, which lie in reversed order of their bits.
    fn transform(&mut self) {
        let length = self.values.len();
        let mut half = 1;
        while half < length {
            let stride = length / (2 * half);
            for block in self.values.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                    let (cos, sin) = self.turns[k * stride];
                    let turned = (b.0 * cos - b.1 * sin, b.0 * sin + b.1 * cos);
                    *b = (a.0 - turned.0, a.1 - turned.1);
                    *a = (a.0 + turned.0, a.1 + turned.1);
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_are_those_of_the_sums() {
        for length in [2usize, 4, 8, 64] {
            let values: Vec<f64> = (0..length - 1).map(|i| ((i * i * 7 + 3) % 11) as f64 - 5.0).collect();
            let found: Vec<f64> = Fourier::new(length).magnitudes(values.iter().copied()).collect();
            assert_eq!(found.len(), length / 2 + 1);
            for (k, magnitude) in found.iter().enumerate() {
                let turn = |i: usize| -2.0 * PI * (i * k) as f64 / length as f64;
                let re: f64 = values.iter().enumerate().map(|(i, v)| v * turn(i).cos()).sum();
                let im: f64 = values.iter().enumerate().map(|(i, v)| v * turn(i).sin()).sum();
                assert!((magnitude - re.hypot(im)).abs() < 1e-10, "{length} {k}");
            }
        }
    }
}
