//! How a gradient changes weights: Adam, momentum, RMSprop.

use super::{OptimConfig, OptimKind};

/// A rule with its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    kind: OptimKind,
    beta1: f64,
    beta2: f64,
    momentum: f64,
    epsilon: f64,
    weight_decay: f64,
}

impl Rule {
    pub(super) fn new(config: &OptimConfig) -> Self {
        let OptimConfig { kind, beta1, beta2, momentum, epsilon, weight_decay, .. } = *config;
        Self { kind, beta1, beta2, momentum, epsilon, weight_decay }
    }

    /// Its name in checkpoints.
    pub(super) fn name(self) -> &'static str {
        self.kind.name()
    }

    /// Whether it remembers two numbers for every weight instead of one.
    pub(super) fn has_second(self) -> bool {
        self.kind == OptimKind::Adam
    }
}

/// What one step does to the weights of one tensor. The gradient g is scaled (clipped) and `weight_decay * w` added.
///
/// | rule | step |
/// |---|---|
/// | Adam (Kingma and Ba, 2015) | `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, `w -= lr m' / (sqrt(v') + e)` with `m' = m / (1 - b1^t)` and `v' = v / (1 - b2^t)` |
/// | momentum | `m = mu m + g`, `w -= lr m` |
/// | RMSprop | `m = b2 m + (1 - b2) g^2`, `w -= lr g / (sqrt(m) + e)` |
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    kind: OptimKind,
    scale: f32,
    decay: f32,
    /// Learning rate, with Adam's correction of the first moment.
    rate: f32,
    /// Adam's correction of the root of the second moment.
    root: f32,
    beta1: f32,
    beta2: f32,
    momentum: f32,
    epsilon: f32,
}

impl Change {
    /// For step number `steps`, counted from 1.
    pub(super) fn new(rule: Rule, steps: u64, scale: f32, lr: f64) -> Self {
        let steps = i32::try_from(steps).unwrap_or(i32::MAX);
        let (rate, root) = match rule.kind {
            OptimKind::Adam => (lr / (1.0 - rule.beta1.powi(steps)), (1.0 - rule.beta2.powi(steps)).sqrt().recip()),
            OptimKind::Sgd | OptimKind::Rmsprop => (lr, 1.0),
        };
        Self {
            kind: rule.kind,
            scale,
            decay: rule.weight_decay as f32,
            rate: rate as f32,
            root: root as f32,
            beta1: rule.beta1 as f32,
            beta2: rule.beta2 as f32,
            momentum: rule.momentum as f32,
            epsilon: rule.epsilon as f32,
        }
    }

    /// Changes weights `w` with gradient `g` and what is remembered of them.
    pub(super) fn apply(&self, w: &mut [f32], g: &[f32], first: &mut [f32], second: &mut [f32]) {
        let Self { scale, decay, rate, root, beta1, beta2, momentum, epsilon, .. } = *self;
        let values = w.iter_mut().zip(g).zip(first);
        match self.kind {
            OptimKind::Adam => values.zip(second).for_each(|(((w, g), m), v)| {
                let g = g * scale + decay * *w;
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                *w -= rate * *m / (v.sqrt() * root + epsilon);
            }),
            OptimKind::Sgd => values.for_each(|((w, g), m)| {
                *m = momentum * *m + (g * scale + decay * *w);
                *w -= rate * *m;
            }),
            OptimKind::Rmsprop => values.for_each(|((w, g), m)| {
                let g = g * scale + decay * *w;
                *m = beta2 * *m + (1.0 - beta2) * g * g;
                *w -= rate * g / (m.sqrt() + epsilon);
            }),
        }
    }
}
