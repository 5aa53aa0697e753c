//! Encoder and centres, trained together.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use dtkc_core::{Autoencoder, NamedArray, StateError, Values};

use crate::arrays;

/// The number of the centres' parameter; those of the autoencoder count from 1.
const CENTRES: u64 = 1 << 40;

/// An autoencoder with centres among its codes.
#[derive(Module, Debug)]
pub struct Centred {
    /// The autoencoder.
    pub coder: Autoencoder,
    /// `[k, code]`.
    pub centres: Param<Tensor<2>>,
}

impl Centred {
    /// With all centres at 0.
    pub fn new(coder: Autoencoder, clusters: usize, code: usize, device: &Device) -> Self {
        let mut centred = Self { coder, centres: parameter(vec![0.0; clusters * code], [clusters, code], device) };
        centred.set_centres(vec![0.0; clusters * code]);
        centred
    }

    /// Replaces the centres, `[k, code]`.
    pub fn set_centres(&mut self, values: Vec<f32>) {
        let old = self.centres.val();
        self.centres = parameter(values, old.dims(), &old.device());
    }

    /// The centres as numbers.
    pub fn centres(&self) -> Vec<f32> {
        self.centres.val().detach().into_data().iter::<f32>().collect()
    }

    /// Autoencoder and centres.
    pub fn state(&self) -> Vec<NamedArray> {
        let mut state = self.coder.state();
        let shape = self.centres.val().dims().to_vec();
        state.push(NamedArray { name: "centres".into(), shape, values: Values::F32(self.centres()) });
        state
    }

    /// Takes them back. On an error nothing is changed.
    pub fn load_state(&mut self, state: &[NamedArray]) -> Result<(), StateError> {
        let [clusters, code] = self.centres.val().dims();
        let centres = arrays::f32s(state, "centres", Some(clusters * code))?;
        let rest: Vec<NamedArray> = state.iter().filter(|array| array.name != "centres").cloned().collect();
        self.coder.load_state(&rest)?;
        self.set_centres(centres);
        Ok(())
    }
}

fn parameter(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Param<Tensor<2>> {
    let tensor = Tensor::from_data(TensorData::new(values, shape), device);
    let tensor = if device.is_autodiff() { tensor.require_grad() } else { tensor };
    Param::initialized(ParamId::from(CENTRES), tensor)
}
