//! An optimiser with its state in plain sight.
//!
//! The moments live on the host as plain vectors: saving and restoring them is exact, and each tensor's gradient can be
//! clipped and checked on its own. On a GPU all gradients come back in one transaction per step.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData, Transaction};
use dtkc_core::{NamedArray, StateError, Values};
use rayon::prelude::*;

use super::OptimConfig;
use super::rule::{Change, Rule};

/// Values that one thread updates at a time.
const CHUNK: usize = 1 << 14;

/// Changes the weights of one network, and remembers what it needs for that.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    rule: Rule,
    /// Largest norm of a tensor's gradient; a longer one is shortened to it.
    clip: Option<f64>,
    moments: Vec<Moments>,
}

/// What is remembered of one tensor. A list that the rule does not use is empty.
#[derive(Debug, Clone, PartialEq)]
struct Moments {
    /// Steps since they were zero: a layer that was replaced starts anew while the others go on.
    steps: u64,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Optimizer {
    /// No step done yet.
    pub fn new(config: &OptimConfig) -> Self {
        let clip = (config.clip_norm > 0.0).then_some(config.clip_norm);
        Self { rule: Rule::new(config), clip, moments: Vec::new() }
    }

    /// Steps done so far.
    pub fn steps(&self) -> u64 {
        self.moments.iter().map(|moments| moments.steps).max().unwrap_or(0)
    }

    /// Forgets what it learnt about these parameters of `model`, because they were replaced.
    pub fn forget<M: Module>(&mut self, model: &M, parameters: &[ParamId]) {
        let mut trained = Trained::default();
        model.visit(&mut trained);
        for ((moments, id), &size) in self.moments.iter_mut().zip(&trained.ids).zip(&trained.sizes) {
            if parameters.contains(id) {
                *moments = Moments::zero(self.rule, size);
            }
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
        // Sums of parts of one size, added in order: the same whatever the number of threads.
        let parts: Vec<f64> = slope.par_chunks(CHUNK).map(square).collect();
        let norm = parts.iter().sum::<f64>().sqrt();
        if !norm.is_finite() {
            return None;
        }
        Some(self.clip.map_or(1.0, |clip| if norm > clip { (clip / norm) as f32 } else { 1.0 }))
    }

    fn update(&mut self, weights: &mut [Vec<f32>], slopes: &[Option<Vec<f32>>], scales: &[f32], lr: f64) {
        let rule = self.rule;
        if self.moments.is_empty() {
            self.moments = weights.iter().map(|weight| Moments::zero(rule, weight.len())).collect();
        }
        for (((weight, slope), &scale), moments) in weights.iter_mut().zip(slopes).zip(scales).zip(&mut self.moments) {
            // A step is a step for every weight, also for one that this loss does not reach.
            moments.steps += 1;
            let Some(slope) = slope else { continue };
            let change = Change::new(rule, moments.steps, scale, lr);
            let slots = weight.par_chunks_mut(CHUNK).zip(slope.par_chunks(CHUNK));
            let slots = slots.zip(moments.first.par_chunks_mut(CHUNK));
            match rule.has_second() {
                true => slots
                    .zip(moments.second.par_chunks_mut(CHUNK))
                    .for_each(|(((w, g), first), second)| change.apply(w, g, first, second)),
                false => slots.for_each(|((w, g), first)| change.apply(w, g, first, &mut [])),
            }
        }
    }

    /// The moments and the number of steps as named arrays.
    pub fn save(&self) -> Vec<NamedArray> {
        let name = self.rule.name();
        let steps = self.moments.iter().map(|moments| moments.steps).collect();
        let mut arrays = vec![NamedArray::list(format!("{name}.steps"), Values::U64(steps))];
        for (i, Moments { first, second, .. }) in self.moments.iter().enumerate() {
            arrays.push(NamedArray::list(format!("{name}.first.{i}"), Values::F32(first.clone())));
            if self.rule.has_second() {
                arrays.push(NamedArray::list(format!("{name}.second.{i}"), Values::F32(second.clone())));
            }
        }
        arrays
    }

    /// The state of [`Optimizer::save`]; fails when the arrays do not belong together or to this model's weights.
    pub fn restore<M: Module>(config: &OptimConfig, arrays: &[NamedArray], model: &M) -> Result<Self, StateError> {
        let fresh = Self::new(config);
        let kind = fresh.rule.name();
        let counts = format!("{kind}.steps");
        let steps = match NamedArray::find(arrays, &counts).map(|array| &array.values) {
            Some(Values::U64(steps)) => steps,
            _ => return Err(StateError::Missing(counts)),
        };
        let mut trained = Trained::default();
        model.visit(&mut trained);
        // Moments appear with the first step.
        if !steps.is_empty() && steps.len() != trained.sizes.len() {
            let (name, found) = (counts, vec![steps.len()]);
            return Err(StateError::Shape { name, found, expected: vec![trained.sizes.len()] });
        }
        let of = |name: String, size: usize| match NamedArray::find(arrays, &name).map(|array| &array.values) {
            Some(Values::F32(values)) if values.len() == size => Ok(values.clone()),
            Some(values) => Err(StateError::Shape { name, found: vec![values.len()], expected: vec![size] }),
            None => Err(StateError::Missing(name)),
        };
        let moments = steps.iter().zip(trained.sizes).enumerate().map(|(i, (&steps, size))| {
            let first = of(format!("{kind}.first.{i}"), size)?;
            let second = if fresh.rule.has_second() { of(format!("{kind}.second.{i}"), size)? } else { Vec::new() };
            Ok(Moments { steps, first, second })
        });
        Ok(Self { moments: moments.collect::<Result<_, StateError>>()?, ..fresh })
    }
}

impl Moments {
    fn zero(rule: Rule, len: usize) -> Self {
        let second = if rule.has_second() { vec![0.0; len] } else { Vec::new() };
        Self { steps: 0, first: vec![0.0; len], second }
    }
}

/// The sum of squares. Eight sums side by side: they vectorise, and their order is fixed.
fn square(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0f64; 8];
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(x) * f64::from(x);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>()
}

fn to_vec(data: TensorData) -> Vec<f32> {
    // The networks are f32: nothing is converted.
    data.try_into_vec_as::<f32>().unwrap_or_default()
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
    use super::super::OptimKind;
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

    fn config(clip_norm: f64) -> OptimConfig {
        OptimConfig { epsilon: 1e-7, clip_norm, ..OptimConfig::adam(0.1) }
    }

    /// Two steps on `sum(w^2 * c)`, whose gradient is `2 w c`.
    fn two_steps(adam: &mut Optimizer, factor: f32) -> Toy {
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
        let model = two_steps(&mut Optimizer::new(&config(0.0)), 1.0);
        close(&weights(&model), &[0.800_412_24, -1.800_166_5, 0.301_187_44, 2.800_102_7]);
        assert_eq!(model.idle.val().into_data().try_to_vec::<f32>().unwrap(), [5.0]);
        assert_eq!(model.constant.val().into_data().try_to_vec::<f32>().unwrap(), [7.0]);
    }

    #[test]
    fn momentum_and_rmsprop_equal_numpy() {
        // NumPy in float64 with the formulas of `Change`: w0 = [[1, -2], [.5, 3]], lr .1, two steps on w^2.
        let sgd = OptimConfig { kind: OptimKind::Sgd, momentum: 0.9, ..config(0.0) };
        close(&weights(&two_steps(&mut Optimizer::new(&sgd), 1.0)), &[0.46, -0.92, 0.23, 1.38]);
        let rms = OptimConfig { kind: OptimKind::Rmsprop, beta2: 0.9, epsilon: 0.5, ..config(0.0) };
        let expected = [0.696_176_1, -1.607_821_2, 0.292_023_6, 2.566_586];
        close(&weights(&two_steps(&mut Optimizer::new(&rms), 1.0)), &expected);
        for config in [sgd, rms] {
            let mut optimizer = Optimizer::new(&config);
            let model = two_steps(&mut optimizer, 1.0);
            assert_eq!(Optimizer::restore(&config, &optimizer.save(), &model).unwrap(), optimizer);
            assert!(Optimizer::restore(&OptimConfig::adam(0.1), &optimizer.save(), &model).is_err());
        }
    }

    #[test]
    fn a_long_gradient_is_clipped_to_the_norm() {
        let model = two_steps(&mut Optimizer::new(&OptimConfig { epsilon: 1.0, ..config(0.5) }), 100.0);
        close(&weights(&model), &[0.976_617_3, -1.958_119, 0.487_585, 2.943_121_7]);
    }

    #[test]
    fn weight_decay_pulls_to_zero() {
        let mut adam = Optimizer::new(&OptimConfig { weight_decay: 2.0, ..config(0.0) });
        // With no slope from the loss the decay alone is the gradient: the first step has length lr.
        let model = toy();
        let loss = (model.trained.val() * 0.0).sum();
        let (model, _) = adam.step(model, &mut loss.backward(), 0.1);
        close(&weights(&model), &[0.9, -1.9, 0.4, 2.9]);
    }

    #[test]
    fn a_gradient_that_is_not_finite_changes_nothing() {
        let (mut adam, model) = (Optimizer::new(&config(0.0)), toy());
        let before = weights(&model);
        let loss = (model.trained.val() * f32::NAN).sum();
        let (model, finite) = adam.step(model, &mut loss.backward(), 0.1);
        assert!(!finite && adam.steps() == 0);
        assert_eq!(weights(&model), before);
    }

    #[test]
    fn the_state_survives_a_checkpoint() {
        let mut adam = Optimizer::new(&config(0.0));
        let model = two_steps(&mut adam, 1.0);
        let back = Optimizer::restore(&config(0.0), &adam.save(), &model).unwrap();
        assert_eq!(back, adam);
        assert!(Optimizer::restore(&config(0.0), &adam.save()[1..], &model).is_err());
        let arrays = adam.save();
        assert!(Optimizer::restore(&config(0.0), &arrays[..arrays.len() - 1], &model).is_err());
        let fresh = Optimizer::new(&config(0.0));
        assert_eq!(Optimizer::restore(&config(0.0), &fresh.save(), &model).unwrap(), fresh);
    }

    #[test]
    fn a_replaced_layer_starts_anew_and_the_others_go_on() {
        let mut adam = Optimizer::new(&config(0.0));
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
        assert_eq!(Optimizer::restore(&config(0.0), &fresh.save(), &model).unwrap(), fresh);
    }
}
