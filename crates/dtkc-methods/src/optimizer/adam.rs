//! Adam with its state in plain sight.
//!
//! The moments live on the host as plain vectors: saving and restoring them is exact, each tensor's gradient can be
//! clipped and checked on its own, and a network of this size (about 0.1 million weights) is updated in one pass in
//! far less than a millisecond. On a GPU all gradients come back in one transaction per step.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData, Transaction};
use dtkc_core::{NamedArray, StateError, Values};

use super::OptimConfig;

/// The numbers of Adam.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Largest norm of a tensor's gradient; a longer one is shortened to it.
    pub clip: Option<f64>,
    /// Added to the (clipped) gradient as `weight_decay * weight`.
    pub weight_decay: f64,
}

impl From<&OptimConfig> for AdamConfig {
    fn from(optim: &OptimConfig) -> Self {
        let OptimConfig { beta1, beta2, epsilon, clip_norm, weight_decay, .. } = *optim;
        Self { beta1, beta2, epsilon, clip: (clip_norm > 0.0).then_some(clip_norm), weight_decay }
    }
}

/// Adam (Kingma and Ba, 2015): `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`,
/// `w -= lr m' / (sqrt(v') + e)` with `m' = m / (1 - b1^t)` and `v' = v / (1 - b2^t)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    moments: Vec<Moments>,
}

#[derive(Debug, Clone, PartialEq)]
struct Moments {
    /// Steps since they were zero: a layer that was replaced starts anew while the others go on.
    steps: u64,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Adam {
    /// No step done yet.
    pub fn new(config: AdamConfig) -> Self {
        Self { config, moments: Vec::new() }
    }

    /// Steps done so far.
    pub fn steps(&self) -> u64 {
        self.moments.iter().map(|moments| moments.steps).max().unwrap_or(0)
    }

    /// Forgets what it learnt about these parameters of `model`, because they were replaced.
    pub fn forget<M: Module>(&mut self, model: &M, parameters: &[ParamId]) {
        let mut trained = Trained::default();
        model.visit(&mut trained);
        for (moments, _) in self.moments.iter_mut().zip(&trained.ids).filter(|(_, id)| parameters.contains(id)) {
            *moments = Moments::zero(moments.first.len());
        }
    }

    /// One step. Where a gradient is not finite nothing changes and the model comes back with `false`.
    pub fn step<M: Module>(&mut self, model: M, gradients: &mut Gradients, lr: f64) -> (M, bool) {
        let mut gather = Gather { gradients, transaction: Some(Transaction::default()), present: Vec::new() };
        model.visit(&mut gather);
        let present = gather.present;
        let mut data = gather.transaction.unwrap_or_default().execute().into_iter();
        let mut weights = Vec::with_capacity(present.len());
        let mut slopes = Vec::with_capacity(present.len());
        for has_gradient in present {
            weights.extend(data.next().map(to_vec));
            slopes.push(if has_gradient { data.next().map(to_vec) } else { None });
        }
        let Some(scales) = self.scales(&slopes) else { return (model, false) };
        self.update(&mut weights, &slopes, &scales, lr);
        (model.map(&mut Scatter { weights: weights.into_iter() }), true)
    }

    /// The factor that clips each gradient; `None` when one of them is not finite.
    fn scales(&self, slopes: &[Option<Vec<f32>>]) -> Option<Vec<f32>> {
        slopes.iter().map(|slope| self.scale(slope.as_deref().unwrap_or_default())).collect()
    }

    fn scale(&self, slope: &[f32]) -> Option<f32> {
        // Eight sums side by side: they vectorise, and their order is fixed.
        let (chunks, rest) = slope.as_chunks::<8>();
        let mut sums = [0f64; 8];
        for chunk in chunks {
            for (sum, &x) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(x) * f64::from(x);
            }
        }
        let square = sums.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        let norm = square.sqrt();
        if !norm.is_finite() {
            return None;
        }
        Some(self.config.clip.map_or(1.0, |clip| if norm > clip { (clip / norm) as f32 } else { 1.0 }))
    }

    fn update(&mut self, weights: &mut [Vec<f32>], slopes: &[Option<Vec<f32>>], scales: &[f32], lr: f64) {
        let AdamConfig { beta1, beta2, epsilon, weight_decay, .. } = self.config;
        if self.moments.is_empty() {
            self.moments = weights.iter().map(|weight| Moments::zero(weight.len())).collect();
        }
        let (decay, floor) = (weight_decay as f32, epsilon as f32);
        for (((weight, slope), scale), moments) in weights.iter_mut().zip(slopes).zip(scales).zip(&mut self.moments) {
            // A step is a step for every weight, also for one that this loss does not reach.
            moments.steps += 1;
            let Some(slope) = slope else { continue };
            let steps = i32::try_from(moments.steps).unwrap_or(i32::MAX);
            let rate = (lr / (1.0 - beta1.powi(steps))) as f32;
            let root = (1.0 - beta2.powi(steps)).sqrt().recip() as f32;
            let (beta1, beta2) = (beta1 as f32, beta2 as f32);
            let values = weight.iter_mut().zip(slope).zip(moments.first.iter_mut().zip(&mut moments.second));
            for ((w, g), (m, v)) in values {
                let g = g * scale + decay * *w;
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                *w -= rate * *m / (v.sqrt() * root + floor);
            }
        }
    }

    /// The moments and the number of steps as named arrays.
    pub fn save(&self) -> Vec<NamedArray> {
        let steps = self.moments.iter().map(|moments| moments.steps).collect();
        let mut arrays = vec![NamedArray::list("adam.steps", Values::U64(steps))];
        for (i, Moments { first, second, .. }) in self.moments.iter().enumerate() {
            arrays.push(NamedArray::list(format!("adam.first.{i}"), Values::F32(first.clone())));
            arrays.push(NamedArray::list(format!("adam.second.{i}"), Values::F32(second.clone())));
        }
        arrays
    }

    /// The state of [`Adam::save`]; fails when the arrays do not belong together or to this model's weights.
    pub fn restore<M: Module>(config: AdamConfig, arrays: &[NamedArray], model: &M) -> Result<Self, StateError> {
        let steps = match NamedArray::find(arrays, "adam.steps").map(|array| &array.values) {
            Some(Values::U64(steps)) => steps,
            _ => return Err(StateError::Missing("adam.steps".into())),
        };
        let mut trained = Trained::default();
        model.visit(&mut trained);
        // Moments appear with the first step.
        if !steps.is_empty() && steps.len() != trained.sizes.len() {
            let (name, found) = ("adam.steps".into(), vec![steps.len()]);
            return Err(StateError::Shape { name, found, expected: vec![trained.sizes.len()] });
        }
        let moments = steps.iter().zip(trained.sizes).enumerate().map(|(i, (&steps, size))| {
            let of = |name: String| match NamedArray::find(arrays, &name).map(|array| &array.values) {
                Some(Values::F32(values)) if values.len() == size => Ok(values.clone()),
                Some(values) => Err(StateError::Shape { name, found: vec![values.len()], expected: vec![size] }),
                None => Err(StateError::Missing(name)),
            };
            Ok(Moments { steps, first: of(format!("adam.first.{i}"))?, second: of(format!("adam.second.{i}"))? })
        });
        Ok(Self { config, moments: moments.collect::<Result<_, StateError>>()? })
    }
}

impl Moments {
    fn zero(len: usize) -> Self {
        Self { steps: 0, first: vec![0.0; len], second: vec![0.0; len] }
    }
}

fn to_vec(data: TensorData) -> Vec<f32> {
    match data.as_slice::<f32>() {
        Ok(values) => values.to_vec(),
        Err(_) => data.iter::<f32>().collect(),
    }
}

/// Registers every trained weight and its gradient for reading.
struct Gather<'a> {
    gradients: &'a mut Gradients,
    transaction: Option<Transaction>,
    present: Vec<bool>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        if !value.is_require_grad() {
            return;
        }
        let gradient = value.grad_remove(self.gradients);
        self.present.push(gradient.is_some());
        let transaction = self.transaction.take().unwrap_or_default().register(value.inner());
        self.transaction = Some(match gradient {
            Some(gradient) => transaction.register(gradient),
            None => transaction,
        });
    }
}

/// Replaces every trained weight.
struct Scatter {
    weights: std::vec::IntoIter<Vec<f32>>,
}

impl ModuleMapper for Scatter {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !param.is_require_grad() {
            return param;
        }
        let Some(values) = self.weights.next() else { return param };
        param.map(|old| Tensor::from_data(TensorData::new(values, old.shape()), &old.device()).require_grad())
    }
}

/// The trained weights, in order.
#[derive(Default)]
struct Trained {
    ids: Vec<ParamId>,
    sizes: Vec<usize>,
}

impl ModuleVisitor for Trained {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        if value.is_require_grad() {
            self.ids.push(param.id);
            self.sizes.push(value.shape().num_elements());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[derive(Module, Debug)]
    struct Toy {
        trained: Param<Tensor<2>>,
        idle: Param<Tensor<1>>,
        constant: Param<Tensor<1>>,
    }

    fn toy() -> Toy {
        let device = Device::flex().autodiff();
        let constant = Tensor::<1>::from_data([7.0], &device);
        Toy {
            trained: Param::from_data([[1.0, -2.0], [0.5, 3.0]], &device),
            idle: Param::from_data([5.0], &device),
            constant: Param::initialized(burn::module::ParamId::new(), constant).set_require_grad(false),
        }
    }

    fn config(clip: Option<f64>) -> AdamConfig {
        AdamConfig { beta1: 0.9, beta2: 0.999, epsilon: 1e-7, clip, weight_decay: 0.0 }
    }

    /// Two steps on `sum(w^2 * c)`, whose gradient is `2 w c`.
    fn two_steps(adam: &mut Adam, factor: f32) -> Toy {
        let mut model = toy();
        for _ in 0..2 {
            let loss = (model.trained.val().powi_scalar(2) * factor).sum();
            let (next, finite) = adam.step(model, &mut loss.backward(), 0.1);
            assert!(finite);
            model = next;
        }
        model
    }

    fn weights(model: &Toy) -> Vec<f32> {
        model.trained.val().into_data().try_to_vec().unwrap()
    }

    fn close(found: &[f32], expected: &[f32]) {
        let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-6);
        assert!(near && found.len() == expected.len(), "{found:?} {expected:?}");
    }

    #[test]
    fn steps_equal_numpy() {
        // NumPy in float64 with the formulas of the doc comment: w0 = [[1, -2], [.5, 3]], lr .1, two steps.
        let model = two_steps(&mut Adam::new(config(None)), 1.0);
        close(&weights(&model), &[0.800_412_24, -1.800_166_5, 0.301_187_44, 2.800_102_7]);
        assert_eq!(model.idle.val().into_data().try_to_vec::<f32>().unwrap(), [5.0]);
        assert_eq!(model.constant.val().into_data().try_to_vec::<f32>().unwrap(), [7.0]);
    }

    #[test]
    fn a_long_gradient_is_clipped_to_the_norm() {
        let model = two_steps(&mut Adam::new(AdamConfig { epsilon: 1.0, ..config(Some(0.5)) }), 100.0);
        close(&weights(&model), &[0.976_617_3, -1.958_119, 0.487_585, 2.943_121_7]);
    }

    #[test]
    fn weight_decay_pulls_to_zero() {
        let mut adam = Adam::new(AdamConfig { weight_decay: 2.0, ..config(None) });
        // With no slope from the loss the decay alone is the gradient: the first step has length lr.
        let model = toy();
        let loss = (model.trained.val() * 0.0).sum();
        let (model, _) = adam.step(model, &mut loss.backward(), 0.1);
        close(&weights(&model), &[0.9, -1.9, 0.4, 2.9]);
    }

    #[test]
    fn a_gradient_that_is_not_finite_changes_nothing() {
        let (mut adam, model) = (Adam::new(config(None)), toy());
        let before = weights(&model);
        let loss = (model.trained.val() * f32::NAN).sum();
        let (model, finite) = adam.step(model, &mut loss.backward(), 0.1);
        assert!(!finite && adam.steps() == 0);
        assert_eq!(weights(&model), before);
    }

    #[test]
    fn the_state_survives_a_checkpoint() {
        let mut adam = Adam::new(config(None));
        let model = two_steps(&mut adam, 1.0);
        let back = Adam::restore(config(None), &adam.save(), &model).unwrap();
        assert_eq!(back, adam);
        assert!(Adam::restore(config(None), &adam.save()[1..], &model).is_err());
        let arrays = adam.save();
        assert!(Adam::restore(config(None), &arrays[..arrays.len() - 1], &model).is_err());
        let fresh = Adam::new(config(None));
        assert_eq!(Adam::restore(config(None), &fresh.save(), &model).unwrap(), fresh);
    }

    #[test]
    fn a_replaced_layer_starts_anew_and_the_others_go_on() {
        let mut adam = Adam::new(config(None));
        let model = two_steps(&mut adam, 1.0);
        let mut fresh = adam.clone();
        fresh.forget(&model, &[model.trained.id]);
        // The first step after it has length lr whatever the gradient, as the first step of all: no jump.
        let before = weights(&model);
        let loss = (model.trained.val().powi_scalar(2) * 1.0).sum();
        let (model, _) = fresh.step(model, &mut loss.backward(), 0.1);
        let moved: Vec<f32> = before.iter().zip(weights(&model)).map(|(a, b)| (a - b).abs()).collect();
        close(&moved, &[0.1; 4]);
        assert_eq!(fresh.moments.iter().map(|m| m.steps).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(Adam::restore(config(None), &fresh.save(), &model).unwrap(), fresh);
    }
}
