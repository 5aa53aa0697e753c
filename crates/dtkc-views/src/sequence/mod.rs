//! Random views of sequences: time runs unevenly, faster or slower, ends are cut off, a stretch is hidden, dimensions grow
//! and shrink, planar trajectories turn, noise is added. As for images, every sequence has its own random stream.

mod config;
mod time;

pub use config::SequenceViewConfig;
pub use time::resample;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::random::{generator, signed, unit};
use crate::{BatchKey, OutOfRange};
use time::{Clock, at};

/// Planar trajectories have the plane's two dimensions, and perhaps a third: the pen's pressure.
const PLANAR: std::ops::RangeInclusive<usize> = 2..=3;

/// Sequences of one dimension, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Steps {
    /// All steps, `dim` values each.
    pub values: Vec<f32>,
    /// The length of every sequence.
    pub lengths: Vec<usize>,
}

impl Steps {
    /// The values of every sequence.
    fn parts(&self, dim: usize) -> Vec<&[f32]> {
        let mut rest = self.values.as_slice();
        let part = |length: &usize| rest.split_off(..length * dim).unwrap_or_default();
        self.lengths.iter().map(part).collect()
    }
}

/// Makes views of sequences of one dimension.
#[derive(Debug, Clone)]
pub struct SequenceViews {
    config: SequenceViewConfig,
    dim: usize,
}

impl SequenceViews {
    /// Checks the configuration.
    pub fn new(config: &SequenceViewConfig, dim: usize) -> Result<Self, OutOfRange> {
        config.check()?;
        Ok(Self { config: config.clone(), dim })
    }

    /// The sequences and a random view of each, or of a partner of each (a near neighbour): first views, then as many
    /// second views. First views are the sequences themselves unless `sequence_views.both` is set.
    ///
    /// # Panics
    /// Panics when there are not as many partners as sequences.
    pub fn pairs(&self, clean: Steps, partners: Option<&Steps>, key: BatchKey) -> Steps {
        let shown = partners.unwrap_or(&clean);
        assert_eq!(clean.lengths.len(), shown.lengths.len(), "as many partners as sequences");
        let second = self.views(shown, key, 1);
        let mut all = match self.config.both {
            true => self.views(&clean, key, 0),
            false => clean,
        };
        all.values.extend(second.values);
        all.lengths.extend(second.lengths);
        all
    }

    /// One random view of every sequence; `stream` tells first from second views.
    fn views(&self, clean: &Steps, key: BatchKey, stream: u64) -> Steps {
        let place = (key.epoch << 32) ^ key.batch;
        let made: Vec<Vec<f32>> = clean
            .parts(self.dim)
            .par_iter()
            .enumerate()
            .map(|(i, sequence)| {
                self.view(sequence, &mut generator(key.seed, b"sequence", place, (i as u64) << 1 | stream))
            })
            .collect();
        let lengths = made.iter().map(|view| view.len() / self.dim).collect();
        Steps { values: made.concat(), lengths }
    }

    /// One random view of one sequence: never without steps, unless the sequence is.
    fn view(&self, sequence: &[f32], rng: &mut ChaCha8Rng) -> Vec<f32> {
        let (config, dim) = (&self.config, self.dim);
        let length = sequence.len() / dim;
        if length == 0 {
            return Vec::new();
        }
        let clock = Clock::draw(config, length, rng);
        let mut view = vec![0.0; clock.steps() * dim];
        for (step, to) in view.chunks_exact_mut(dim).enumerate() {
            at(sequence, dim, clock.time(step), to);
        }
        self.turn_and_scale(&mut view, rng);
        self.add_noise(sequence, &mut view, rng);
        self.hide(&mut view, rng);
        view
    }

    fn turn_and_scale(&self, view: &mut [f32], rng: &mut ChaCha8Rng) {
        let (config, dim) = (&self.config, self.dim);
        let angle = config.rotation.to_radians() as f32 * signed(rng);
        let changes: Vec<(f32, f32)> =
            (0..dim).map(|_| (1.0 + config.scale as f32 * signed(rng), config.shift as f32 * signed(rng))).collect();
        let (sine, cosine) = if PLANAR.contains(&dim) { angle.sin_cos() } else { (0.0, 1.0) };
        for step in view.chunks_exact_mut(dim) {
            if PLANAR.contains(&dim) {
                let (x, y) = (step[0], step[1]);
                (step[0], step[1]) = (cosine * x - sine * y, sine * x + cosine * y);
            }
            for (value, (scale, shift)) in step.iter_mut().zip(&changes) {
                *value = *value * scale + shift;
            }
        }
    }

    /// Noise in proportion to the changes from one step of the sequence to the next.
    fn add_noise(&self, sequence: &[f32], view: &mut [f32], rng: &mut ChaCha8Rng) {
        let (noise, dim) = (self.config.noise as f32, self.dim);
        if noise == 0.0 || sequence.len() < 2 * dim {
            return;
        }
        let changes = (sequence.len() / dim - 1) as f64;
        let size = |d: usize| {
            let pairs = sequence[d..].iter().step_by(dim).zip(sequence[d + dim..].iter().step_by(dim));
            let sum: f64 = pairs.map(|(a, b)| f64::from(b - a).powi(2)).sum();
            noise * (sum / changes).sqrt() as f32
        };
        let sizes: Vec<f32> = (0..dim).map(size).collect();
        for step in view.chunks_exact_mut(dim) {
            for (value, size) in step.iter_mut().zip(&sizes) {
                // Four uniform numbers are nearly normal; their sum has the variance 4/3.
                let sum = signed(rng) + signed(rng) + signed(rng) + signed(rng);
                *value += size * sum * 0.866;
            }
        }
    }

    /// Hides a stretch of time behind the mean.
    fn hide(&self, view: &mut [f32], rng: &mut ChaCha8Rng) {
        let length = view.len() / self.dim;
        let hidden = (self.config.mask as f32 * unit(rng) * length as f32) as usize;
        let first = (unit(rng) * (length - hidden + 1) as f32) as usize;
        view[first.min(length - hidden) * self.dim..][..hidden * self.dim].fill(0.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn steps(dim: usize) -> Steps {
        let lengths = vec![30, 1, 2, 57, 9];
        let all: usize = lengths.iter().sum();
        Steps { values: (0..all * dim).map(|i| (i as f32 * 0.37).sin()).collect(), lengths }
    }

    fn key(batch: u64) -> BatchKey {
        BatchKey { seed: 3, epoch: 1, batch }
    }

    #[test]
    fn nothing_to_do_gives_the_sequences_back() {
        let views = SequenceViews::new(&SequenceViewConfig::default(), 3).unwrap();
        let pairs = views.pairs(steps(3), None, key(0));
        let (first, second) = pairs.values.split_at(pairs.values.len() / 2);
        assert_eq!(first, steps(3).values);
        assert!(first.iter().zip(second).all(|(a, b)| (a - b).abs() < 1e-5));
        assert_eq!(pairs.lengths, [steps(3).lengths, steps(3).lengths].concat());
    }

    #[test]
    fn views_depend_on_the_key_and_not_on_threads_and_lengths_stay_near() {
        let views = SequenceViews::new(&SequenceViewConfig::strong(), 2).unwrap();
        let run = |batch| views.pairs(steps(2), None, key(batch));
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| run(0));
        let many = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap().install(|| run(0));
        assert_eq!(alone, many);
        assert_ne!(run(0), run(1));
        for batch in 0..50 {
            let pairs = run(batch);
            assert_eq!(pairs.lengths[..5], steps(2).lengths);
            assert!(pairs.values.iter().all(|value| value.is_finite()));
            for (own, view) in pairs.lengths[..5].iter().zip(&pairs.lengths[5..]) {
                assert!(*view >= 1 && *view as f64 <= (*own as f64 * 1.2).ceil(), "{own} {view}");
            }
        }
    }

    #[test]
    fn only_planar_trajectories_turn() {
        let config = SequenceViewConfig { rotation: 90.0, ..SequenceViewConfig::default() };
        for (dim, turns) in [(1, false), (2, true), (3, true), (4, false)] {
            let views = SequenceViews::new(&config, dim).unwrap();
            let pairs = views.pairs(steps(dim), None, key(0));
            let (first, second) = pairs.values.split_at(pairs.values.len() / 2);
            let moved = first.iter().zip(second).any(|(a, b)| (a - b).abs() > 0.1);
            assert_eq!(moved, turns, "{dim}");
            if dim == 3 {
                let length = |step: &[f32]| step[0].hypot(step[1]);
                let mut pairs = first.chunks(3).zip(second.chunks(3));
                assert!(pairs.all(|(a, b)| (length(a) - length(b)).abs() < 1e-4 && (a[2] - b[2]).abs() < 1e-5));
            }
        }
    }

    #[test]
    fn second_views_may_be_of_partners() {
        let views = SequenceViews::new(&SequenceViewConfig::strong(), 1).unwrap();
        let other = Steps { values: vec![5.0; 10], lengths: vec![2; 5] };
        let pairs = views.pairs(steps(1), Some(&other), key(0));
        assert_eq!(pairs.values[steps(1).values.len()..], views.pairs(other, None, key(0)).values[10..]);
    }
}
