//! Numbers of the optimiser and the course of its learning rate.

use dtkc_core::ConfigError;
use serde::{Deserialize, Serialize};

/// The rule by which a gradient changes weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimKind {
    /// Adam.
    #[default]
    Adam,
    /// Gradient descent with momentum.
    Sgd,
    /// RMSprop.
    Rmsprop,
}

impl OptimKind {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adam => "adam",
            Self::Sgd => "sgd",
            Self::Rmsprop => "rmsprop",
        }
    }
}

/// How the learning rate changes with time, after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// It stays.
    Constant,
    /// Half a cosine, from `lr` to `lr * final_lr` at the last epoch.
    Cosine,
}

/// The rule, its learning rate and the clipping of gradients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimConfig {
    /// The rule: `adam`, `sgd` or `rmsprop`.
    pub kind: OptimKind,
    /// Learning rate.
    pub lr: f64,
    /// Its course.
    pub schedule: Schedule,
    /// Epochs over which it grows from 0; 0 starts at once.
    pub warmup: f64,
    /// What is left of it at the end, as a part; only `cosine` uses it.
    pub final_lr: f64,
    /// Each parameter's gradient is scaled down to this norm; 0 turns clipping off.
    pub clip_norm: f64,
    /// Decay of Adam's mean.
    pub beta1: f64,
    /// Decay of the mean square of Adam and RMSprop.
    pub beta2: f64,
    /// Share of the last step that gradient descent repeats.
    pub momentum: f64,
    /// Added to the root of the mean square.
    pub epsilon: f64,
    /// Added to the gradient as `weight_decay * weight`; 0 turns it off.
    pub weight_decay: f64,
}

impl Default for OptimConfig {
    /// The paper's.
    fn default() -> Self {
        Self::adam(1e-4)
    }
}

impl OptimConfig {
    /// Adam as the papers use it, with this learning rate.
    pub fn adam(lr: f64) -> Self {
        Self {
            kind: OptimKind::Adam,
            lr,
            schedule: Schedule::Constant,
            warmup: 0.0,
            final_lr: 0.0,
            clip_norm: 0.0,
            beta1: 0.9,
            beta2: 0.999,
            momentum: 0.0,
            epsilon: 1e-8,
            weight_decay: 0.0,
        }
    }

    /// Gradient descent with momentum.
    pub fn sgd(lr: f64, momentum: f64) -> Self {
        Self { kind: OptimKind::Sgd, momentum, ..Self::adam(lr) }
    }

    /// RMSprop with the numbers of Keras.
    pub fn rmsprop(lr: f64) -> Self {
        Self { kind: OptimKind::Rmsprop, beta2: 0.9, epsilon: 1e-7, ..Self::adam(lr) }
    }

    /// The learning rate after `epoch` of `epochs` epochs; both may be fractions.
    pub fn lr_at(&self, epoch: f64, epochs: f64) -> f64 {
        if epoch < self.warmup {
            return self.lr * epoch / self.warmup;
        }
        match self.schedule {
            Schedule::Constant => self.lr,
            Schedule::Cosine => {
                let part = ((epoch - self.warmup) / (epochs - self.warmup).max(f64::EPSILON)).clamp(0.0, 1.0);
                let cosine = (1.0 + (std::f64::consts::PI * part).cos()) / 2.0;
                self.lr * (self.final_lr + (1.0 - self.final_lr) * cosine)
            }
        }
    }

    /// Refuses numbers that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        let rows = [
            ("lr", self.lr, 1e-12..=10.0, "between 1e-12 and 10"),
            ("warmup", self.warmup, 0.0..=1e6, "between 0 and 1e6 epochs"),
            ("final_lr", self.final_lr, 0.0..=1.0, "between 0 and 1"),
            ("clip_norm", self.clip_norm, 0.0..=1e9, "between 0 and 1e9"),
            ("beta1", self.beta1, 0.0..=0.99999, "between 0 and 0.99999"),
            ("beta2", self.beta2, 0.0..=0.9999999, "between 0 and 0.9999999"),
            ("momentum", self.momentum, 0.0..=0.99999, "between 0 and 0.99999"),
            ("epsilon", self.epsilon, 1e-12..=1.0, "between 1e-12 and 1"),
            ("weight_decay", self.weight_decay, 0.0..=10.0, "between 0 and 10"),
        ];
        for (name, value, allowed, range) in rows {
            if !allowed.contains(&value) {
                return Err(ConfigError::Range { name: format!("optim.{name}"), value, range });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosine_starts_high_and_ends_low() {
        let config = OptimConfig { schedule: Schedule::Cosine, final_lr: 0.1, warmup: 2.0, ..OptimConfig::adam(1.0) };
        assert_eq!(config.lr_at(0.0, 12.0), 0.0);
        assert_eq!(config.lr_at(1.0, 12.0), 0.5);
        assert_eq!(config.lr_at(2.0, 12.0), 1.0);
        assert!((config.lr_at(7.0, 12.0) - 0.55).abs() < 1e-12);
        assert!((config.lr_at(12.0, 12.0) - 0.1).abs() < 1e-12);
        assert!((config.lr_at(99.0, 12.0) - 0.1).abs() < 1e-12);
        assert!(config.lr_at(2.0, 2.0).is_finite());
    }

    #[test]
    fn constant_stays() {
        assert_eq!(OptimConfig::adam(1e-3).lr_at(50.0, 100.0), 1e-3);
    }
}
