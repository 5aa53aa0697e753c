//! Time that runs unevenly, and values between steps.

use rand_chacha::ChaCha8Rng;

use super::SequenceViewConfig;
use crate::random::{signed, unit};

/// Stretches of time with a speed of their own.
const STRETCHES: usize = 6;

/// Where in a sequence every step of a view is.
pub(super) struct Clock {
    steps: usize,
    /// The first place in time, and the last.
    ends: (f64, f64),
    /// The part of the way that is behind at the end of each stretch, the first 0, the last 1.
    behind: [f64; STRETCHES + 1],
}

impl Clock {
    pub(super) fn draw(config: &SequenceViewConfig, length: usize, rng: &mut ChaCha8Rng) -> Self {
        let last = (length - 1) as f64;
        let cut = config.crop * f64::from(unit(rng)) * last;
        let first = cut * f64::from(unit(rng));
        let factor = 1.0 + config.speed * f64::from(signed(rng));
        let steps = ((last - cut) * factor).round() as usize + 1;
        let mut behind = [0.0; STRETCHES + 1];
        for stretch in 0..STRETCHES {
            behind[stretch + 1] = behind[stretch] + (config.warp * f64::from(signed(rng))).exp();
        }
        let way = behind[STRETCHES];
        behind.iter_mut().for_each(|part| *part /= way);
        Self { steps, ends: (first, last - cut + first), behind }
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// When in the sequence a step of the view is.
    pub(super) fn time(&self, step: usize) -> f64 {
        let part = step as f64 / (self.steps.max(2) - 1) as f64 * STRETCHES as f64;
        let stretch = (part as usize).min(STRETCHES - 1);
        let (before, after) = (self.behind[stretch], self.behind[stretch + 1]);
        let way = before + (after - before) * (part - stretch as f64);
        self.ends.0 + (self.ends.1 - self.ends.0) * way
    }
}

/// The values of a sequence at any time, on the line between the steps around it.
pub(super) fn at(sequence: &[f32], dim: usize, time: f64, to: &mut [f32]) {
    let last = sequence.len() / dim - 1;
    let time = time.clamp(0.0, last as f64);
    let (before, part) = (time as usize, (time - time.floor()) as f32);
    let after = (before + 1).min(last);
    for (d, to) in to.iter_mut().enumerate() {
        let (a, b) = (sequence[before * dim + d], sequence[after * dim + d]);
        *to = a + (b - a) * part;
    }
}

/// A sequence of any length as one of `steps` steps: step i lies at `i (length - 1) / (steps - 1)`, on the line between the
/// two steps around that place. A sequence without steps gives zeros.
///
/// # Shapes
/// - sequence: `length x dim`
/// - result: `steps x dim`
pub fn resample(sequence: &[f32], dim: usize, steps: usize) -> Vec<f32> {
    let mut all = vec![0.0; steps * dim];
    if dim == 0 || sequence.len() < dim {
        return all;
    }
    let last = (sequence.len() / dim - 1) as f64;
    for (step, to) in all.chunks_exact_mut(dim).enumerate() {
        at(sequence, dim, step as f64 * last / (steps.max(2) - 1) as f64, to);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;

    #[test]
    fn resampling_is_linear_between_first_and_last() {
        // numpy.interp(numpy.linspace(0, 3, 5), range(4), [0, 2, 6, 6]) and of [1, 1, 0, 4].
        let found = resample(&[0.0, 1.0, 2.0, 1.0, 6.0, 0.0, 6.0, 4.0], 2, 5);
        let expected = [0.0, 1.0, 1.5, 1.0, 4.0, 0.5, 6.0, 1.0, 6.0, 4.0];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        assert_eq!(resample(&[7.0, 8.0], 2, 3), [7.0, 8.0, 7.0, 8.0, 7.0, 8.0]);
        assert_eq!(resample(&[], 2, 2), [0.0; 4]);
    }

    #[test]
    fn time_never_runs_backwards_and_stays_inside() {
        let config = SequenceViewConfig { warp: 2.0, speed: 0.9, crop: 0.9, ..SequenceViewConfig::default() };
        for seed in 0..200 {
            let length = 1 + seed as usize;
            let clock = Clock::draw(&config, length, &mut generator(seed, b"test....", 0, 0));
            let times: Vec<f64> = (0..clock.steps()).map(|step| clock.time(step)).collect();
            assert!(!times.is_empty() && times.windows(2).all(|pair| pair[0] <= pair[1]), "{times:?}");
            assert!(times.iter().all(|time| (-1e-9..=length as f64 - 1.0 + 1e-9).contains(time)), "{times:?}");
        }
    }
}
