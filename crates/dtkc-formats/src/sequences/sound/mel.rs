//! Mel-frequency cepstral coefficients from a magnitude spectrum.

use std::f64::consts::PI;

/// Bands of the mel scale.
const BANDS: usize = 26;
/// Coefficients that are kept.
pub const COEFFICIENTS: usize = 13;
/// Less energy than this is silence.
const SILENCE: f64 = 1e-10;

/// Prepared for one rate and length.
#[derive(Debug)]
pub struct Mel {
    /// For each band its first frequency and the weights from there on.
    bands: Vec<(usize, Vec<f64>)>,
}

impl Mel {
    /// Triangles from 0 to half the rate, whose middles are evenly apart on the scale 2595 log10(1 + f / 700).
    pub fn new(rate: u32, bins: usize) -> Self {
        let top = f64::from(rate) / 2.0;
        let mel = |f: f64| 2595.0 * (1.0 + f / 700.0).log10();
        let edge = |i: usize| 700.0 * (10f64.powf(mel(top) * i as f64 / (BANDS + 1) as f64 / 2595.0) - 1.0);
        let frequency = |bin: usize| top * bin as f64 / (bins - 1) as f64;
        let band = |i: usize| {
            let (low, middle, high) = (edge(i), edge(i + 1), edge(i + 2));
            let weight = |bin: usize| {
                let f = frequency(bin);
                ((f - low) / (middle - low)).min((high - f) / (high - middle)).max(0.0)
            };
            let first = (0..bins).find(|&bin| weight(bin) > 0.0).unwrap_or(0);
            (first, (first..bins).map(weight).take_while(|&weight| weight > 0.0).collect())
        };
        Self { bands: (0..BANDS).map(band).collect() }
    }

    /// The coefficients: the cosine transform (type 2, orthonormal) of the logarithms of the bands' energies.
    pub fn coefficients(&self, magnitudes: &[f64]) -> [f64; COEFFICIENTS] {
        let energy = |(first, weights): &(usize, Vec<f64>)| -> f64 {
            weights.iter().zip(&magnitudes[*first..]).map(|(weight, m)| weight * m * m).sum()
        };
        let logs: Vec<f64> = self.bands.iter().map(|band| energy(band).max(SILENCE).ln()).collect();
        std::array::from_fn(|k| {
            let share = |(i, log): (usize, &f64)| log * (PI * k as f64 * (2 * i + 1) as f64 / (2 * BANDS) as f64).cos();
            let sum: f64 = logs.iter().enumerate().map(share).sum();
            sum * (if k == 0 { 1.0 } else { 2.0 } / BANDS as f64).sqrt()
        })
    }
}
