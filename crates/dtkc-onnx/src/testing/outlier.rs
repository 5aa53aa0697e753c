//! Distances of a training set to test with, and a plain evaluation to compare with.

use super::Random;
use crate::Outlier;

impl Outlier {
    /// Random ones for an embedding of that width: a matrix to scale with, or, for `plain`, a factor for each value.
    pub fn sample(width: usize, plain: bool, seed: u64) -> Self {
        let mut random = Random(seed);
        let shape = if plain { vec![width] } else { vec![width, width] };
        let scaling = random.weights(&shape, 1.0);
        let (shift, points) = (random.values(width, -1.0, 1.0), random.weights(&[9, width], 2.0));
        let steps = random.values(8, 0.05, 0.6);
        let knots = steps.iter().scan(0.0, |end, step| {
            *end += step;
            Some(*end)
        });
        Self { scaling, shift, points, knots: std::iter::once(0.0).chain(knots).collect(), items: 100 }
    }

    /// The value of an embedding by definition, in f64: from differences to every point, and a search for the stretch that the
    /// distance lies on. Shares nothing with the writer.
    pub fn evaluate(&self, embedding: &[f64]) -> f64 {
        let width = embedding.len();
        let scaled = |at: usize| {
            let sum: f64 = match self.scaling.shape.len() {
                1 => embedding[at] * f64::from(self.scaling.data[at]),
                _ => (0..width).map(|row| embedding[row] * f64::from(self.scaling.data[row * width + at])).sum(),
            };
            sum + f64::from(self.shift[at])
        };
        let scaled: Vec<f64> = (0..width).map(scaled).collect();
        let apart = |point: &[f32]| scaled.iter().zip(point).map(|(x, p)| (x - f64::from(*p)).powi(2)).sum::<f64>();
        let distance = self.points.data.chunks(width).map(apart).fold(f64::MAX, f64::min).sqrt();
        let knots: Vec<f64> = self.knots.iter().map(|knot| f64::from(*knot)).collect();
        let stretches = knots.len() - 1;
        match knots.iter().position(|&knot| distance < knot) {
            Some(next) => {
                let (low, high) = (knots[next - 1], knots[next]);
                0.99 * ((next - 1) as f64 + (distance - low) / (high - low)) / stretches as f64
            }
            None => 1.0 - 0.01 * knots[stretches] / distance,
        }
    }
}
