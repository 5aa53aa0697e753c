//! All numbers of a model as named arrays, for checkpoints.

use super::Model;
use super::layers::{Block, Conv, Dense, Norm};
use crate::StateError;
use burn::module::{Param, ParamId};
use burn::tensor::{Gradients, Tensor, TensorData};

/// The values of a named array, last dimension fastest.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Weights, running statistics, moments.
    F32(Vec<f32>),
    /// Sums and losses.
    F64(Vec<f64>),
    /// Positions and cluster numbers.
    U32(Vec<u32>),
    /// Counts.
    U64(Vec<u64>),
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of an array of weights; none where the array holds something else.
    pub fn weights(&self) -> &[f32] {
        match self {
            Self::F32(values) => values,
            _ => &[],
        }
    }
}

/// Part of a state that must come back to the last bit, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedArray {
    /// Where it belongs, as in `blocks.0.convs.1.weight`.
    pub name: String,
    /// Sizes of its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Values,
}

impl NamedArray {
    /// A plain list.
    pub fn list(name: impl Into<String>, values: Values) -> Self {
        Self { name: name.into(), shape: vec![values.len()], values }
    }

    /// The array of that name.
    pub fn find<'a>(arrays: &'a [Self], name: &str) -> Option<&'a Self> {
        arrays.iter().find(|array| array.name == name)
    }
}

/// A new output layer: weight `[hidden, k]` row-major, bias `[k]`.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputLayer {
    /// Weights.
    pub weight: Vec<f32>,
    /// Bias.
    pub bias: Vec<f32>,
}

impl Model {
    /// All weights and running statistics, always in the same order.
    pub fn state(&self) -> Vec<NamedArray> {
        state(self)
    }

    /// Replaces all weights and running statistics, keeping device, gradients and parameter ids.
    ///
    /// The arrays must be those of [`state`](Self::state) of a model with the same configuration, in any order. On
    /// an error the model is unchanged.
    pub fn load_state(&mut self, state: &[NamedArray]) -> Result<(), StateError> {
        load_state(self, state)
    }

    /// The gradients of the weights of blocks and recurrent layers in a row; 0 where a loss does not depend on them.
    pub fn backbone_gradient(&self, gradients: &Gradients) -> Vec<f32> {
        gradient(self, |name| name.starts_with("blocks.") || name.starts_with("recurrent."), gradients)
    }

    /// The parameters of the output layer.
    pub fn output_parameters(&self) -> [ParamId; 2] {
        [self.output.weight.id, self.output.bias.id]
    }

    /// Replaces the output layer.
    pub fn replace_output(&mut self, layer: OutputLayer) -> Result<(), StateError> {
        let [inputs, outputs] = self.output.weight.dims();
        let array = |name: &str, shape, values| NamedArray { name: name.into(), shape, values: Values::F32(values) };
        self.output.weight.write(&array("output.weight", vec![inputs, outputs], layer.weight))?;
        self.output.bias.write(&array("output.bias", vec![outputs], layer.bias))
    }
}

impl Parameters for Model {
    fn each(&mut self, f: &mut Visit<'_>) -> Result<(), StateError> {
        for (b, block) in self.blocks.iter_mut().enumerate() {
            each_of_block(&format!("blocks.{b}"), block, f)?;
        }
        if let Some(scaling) = &mut self.scaling {
            f("scaling.mean".into(), &mut scaling.mean)?;
            f("scaling.deviation".into(), &mut scaling.deviation)?;
        }
        for (l, layer) in self.recurrent.iter_mut().enumerate() {
            layer.each(&format!("recurrent.{l}"), f)?;
        }
        each_of_dense("hidden", &mut self.hidden, f)?;
        if let Some(norm) = &mut self.hidden_norm {
            each_of_norm("hidden_norm", norm, f)?;
        }
        each_of_dense("output", &mut self.output, f)?;
        self.fine.as_mut().map_or(Ok(()), |fine| each_of_dense("fine", fine, f))
    }
}

/// A network whose parameters have names; their order is part of the checkpoint format.
pub(crate) trait Parameters: Clone {
    fn each(&mut self, f: &mut Visit<'_>) -> Result<(), StateError>;
}

/// What is done with a parameter and its name.
pub(crate) type Visit<'a> = dyn FnMut(String, &mut dyn Slot) -> Result<(), StateError> + 'a;

/// All parameters as named arrays, always in the same order.
pub(crate) fn state(network: &impl Parameters) -> Vec<NamedArray> {
    let mut state = Vec::new();
    // Reading does not fail.
    let _ = network.clone().each(&mut |name, slot| {
        state.push(slot.read(name));
        Ok(())
    });
    state
}

/// Replaces all parameters by the arrays of [`state`], in any order. On an error nothing is changed.
pub(crate) fn load_state(network: &mut impl Parameters, state: &[NamedArray]) -> Result<(), StateError> {
    let mut loaded = network.clone();
    let mut known = std::collections::HashSet::new();
    loaded.each(&mut |name, slot| {
        let array = NamedArray::find(state, &name).ok_or_else(|| StateError::Missing(name.clone()))?;
        known.insert(name);
        slot.write(array)
    })?;
    if let Some(stranger) = state.iter().find(|a| !known.contains(&a.name)) {
        return Err(StateError::Unknown(stranger.name.clone()));
    }
    *network = loaded;
    Ok(())
}

pub(crate) fn each_of_block(path: &str, block: &mut Block, f: &mut Visit<'_>) -> Result<(), StateError> {
    for (c, conv) in block.convs.iter_mut().enumerate() {
        each_of_conv(&format!("{path}.convs.{c}"), conv, f)?;
    }
    match &mut block.norm {
        Some(norm) => each_of_norm(&format!("{path}.norm"), norm, f),
        None => Ok(()),
    }
}

pub(crate) fn each_of_conv(path: &str, conv: &mut Conv, f: &mut Visit<'_>) -> Result<(), StateError> {
    f(format!("{path}.weight"), &mut conv.weight)?;
    f(format!("{path}.bias"), &mut conv.bias)
}

fn each_of_norm(path: &str, norm: &mut Norm, f: &mut Visit<'_>) -> Result<(), StateError> {
    f(format!("{path}.gamma"), &mut norm.gamma)?;
    f(format!("{path}.beta"), &mut norm.beta)?;
    f(format!("{path}.mean"), &mut norm.mean)?;
    f(format!("{path}.variance"), &mut norm.variance)
}

pub(crate) fn each_of_dense(path: &str, dense: &mut Dense, f: &mut Visit<'_>) -> Result<(), StateError> {
    f(format!("{path}.weight"), &mut dense.weight)?;
    f(format!("{path}.bias"), &mut dense.bias)
}

/// The gradients of the parameters that `wanted` names, in a row; 0 where a loss does not depend on one.
pub(crate) fn gradient(network: &impl Parameters, wanted: fn(&str) -> bool, gradients: &Gradients) -> Vec<f32> {
    let mut all = Vec::new();
    // Reading does not fail.
    let _ = network.clone().each(&mut |name, slot| {
        if wanted(&name) {
            all.extend(slot.gradient(gradients));
        }
        Ok(())
    });
    all
}

/// A parameter of any rank.
pub(crate) trait Slot {
    fn gradient(&self, gradients: &Gradients) -> Vec<f32>;
    fn read(&self, name: String) -> NamedArray;
    fn write(&mut self, array: &NamedArray) -> Result<(), StateError>;
}

impl<const D: usize> Slot for Param<Tensor<D>> {
    fn gradient(&self, gradients: &Gradients) -> Vec<f32> {
        let tensor = self.val();
        tensor.grad(gradients).map_or_else(|| vec![0.0; tensor.dims().iter().product()], values)
    }

    fn read(&self, name: String) -> NamedArray {
        let tensor = self.val();
        NamedArray { name, shape: tensor.dims().to_vec(), values: Values::F32(values(tensor)) }
    }

    fn write(&mut self, array: &NamedArray) -> Result<(), StateError> {
        let old = self.val();
        let shape = old.dims();
        let values = match &array.values {
            Values::F32(values) if array.shape == shape && values.len() == shape.iter().product::<usize>() => values,
            _ => {
                let (name, found) = (array.name.clone(), array.shape.clone());
                return Err(StateError::Shape { name, found, expected: shape.to_vec() });
            }
        };
        let value = Tensor::<D>::from_data(TensorData::new(values.clone(), shape), &old.device());
        let requires = old.is_require_grad();
        *self = self.clone().map(|_| value.set_require_grad(requires));
        Ok(())
    }
}

/// The values of a tensor, row-major.
pub(crate) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.detach().into_data().iter::<f32>().collect()
}
