//! The autoencoder of dense layers.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use dtkc_item::ImageShape;
use dtkc_onnx::Layer;

use super::{AutoencoderConfig, Encoded, Tapped};
use crate::StateError;
use crate::config::Init;
use crate::mlp::{End, Mlp, MlpOutput};
use crate::model::init::Maker;
use crate::model::state::Visit;

/// Dense layers to the code and back.
#[derive(Module, Debug)]
pub(super) struct DenseAutoencoder {
    encoder: Mlp,
    decoder: Mlp,
}

impl DenseAutoencoder {
    pub(super) fn init(config: &AutoencoderConfig, input: ImageShape, device: &Device, seed: u64) -> Self {
        let mut sizes = vec![input.len()];
        sizes.extend(&config.hidden);
        sizes.push(config.code);
        let mut maker = Maker::new(Init::Uniform, device, seed);
        let encoder = Mlp::make(&mut maker, &sizes, End::Linear, limit);
        sizes.reverse();
        Self { encoder, decoder: Mlp::make(&mut maker, &sizes, End::Linear, limit) }
    }

    pub(super) fn encode(&self, x: Tensor<4>) -> Encoded {
        let [n, height, width, channels] = x.dims();
        let MlpOutput { hidden, output } = self.encoder.forward(x.reshape([n, height * width * channels]));
        let taps = hidden.into_iter().map(Tapped::Vectors).collect();
        Encoded { taps, features: output.clone(), code: output, statistics: Vec::new() }
    }

    pub(super) fn decode(&self, code: Tensor<2>) -> Tensor<2> {
        self.decoder.forward(code).output
    }

    pub(super) fn frozen_encoder(&self) -> Vec<Layer> {
        [vec![Layer::Flatten], self.encoder.frozen()].concat()
    }

    pub(super) fn each(&mut self, f: &mut Visit<'_>) -> Result<(), StateError> {
        self.encoder.each_under("encoder", f)?;
        self.decoder.each_under("decoder", f)
    }
}

/// The bound of DEC's published code: 1 / sqrt(inputs).
fn limit(inputs: usize, _: usize) -> f32 {
    (inputs as f32).sqrt().recip()
}
