//! Items as an autoencoder sees them, and the codes of all of them.

use burn::module::Module as _;
use burn::tensor::{Device, Tensor, TensorData};
use dtkc_core::{Autoencoder, Norms, StatisticsPass};
use dtkc_item::{ImageShape, Items};

use crate::LearnError;
use crate::kmeans::Points;
use crate::learner::{Passes, joined};
use crate::places::Pass;
use crate::vectors::Vectors;

/// Images of a forward pass without gradients.
const CHUNK: usize = 500;
/// Images after which batch-norm statistics no longer change in a digit that matters.
const STATISTICS_IMAGES: usize = 20_000;

/// How items become tensors.
#[derive(Debug, Clone)]
pub(crate) struct Images {
    pub(crate) vectors: Vectors,
    pub(crate) device: Device,
}

impl Images {
    /// Scaled items, for a pass without gradients.
    pub(crate) fn read(&self, items: &Items) -> Tensor<4> {
        self.read_on(items, &self.device)
    }

    /// Scaled items, for a pass with gradients.
    pub(crate) fn read_to_train(&self, items: &Items) -> Tensor<4> {
        self.read_on(items, &self.device.clone().autodiff())
    }

    fn read_on(&self, items: &Items, device: &Device) -> Tensor<4> {
        let ImageShape { height, width, channels } = self.vectors.shape();
        let data = TensorData::new(self.vectors.values(items), [items.len(), height, width, channels]);
        Tensor::from_data(data, device)
    }

    /// Values of an item.
    pub(crate) fn len(&self) -> usize {
        self.vectors.len()
    }
}

/// Something said about every item, in the order of the set.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Codes {
    pub(crate) values: Vec<f32>,
    pub(crate) width: usize,
}

impl Codes {
    pub(crate) fn points(&self) -> Points<'_> {
        Points { values: &self.values, width: self.width }
    }

    /// The rows of some items.
    pub(crate) fn rows(&self, indices: impl Iterator<Item = usize>) -> Vec<f32> {
        indices.flat_map(|index| &self.values[index * self.width..][..self.width]).copied().collect()
    }
}

/// The codes of all items.
pub(crate) fn all_codes(
    autoencoder: &Autoencoder,
    images: &Images,
    data: &mut dyn Passes,
) -> Result<Codes, LearnError> {
    let autoencoder = autoencoder.valid();
    let mut codes = Codes::default();
    let items = data.len();
    for batch in joined(data.batches(Pass::Everything), CHUNK) {
        let batch = batch?;
        let code = autoencoder.encode(images.read(&batch.items), Norms::Running).code;
        codes.width = code.dims()[1];
        codes.values.resize(items * codes.width, 0.0);
        let values: Vec<f32> = code.into_data().iter::<f32>().collect();
        for (&index, row) in batch.indices.iter().zip(values.chunks_exact(codes.width)) {
            codes.values[index * codes.width..][..codes.width].copy_from_slice(row);
        }
    }
    match codes.values.iter().find(|value| !value.is_finite()) {
        None => Ok(codes),
        // Neighbours and centres of such codes mean nothing.
        Some(value) => Err(LearnError::Diverged(format!(
            "the autoencoder's codes hold {value}, so pretraining went wrong; use a smaller --set \
             pretraining.optim.lr=X, or --lr if the codes were right before"
        ))),
    }
}

/// Replaces batch-norm statistics, which pretraining does not follow, by those of the images.
pub(crate) fn measure_statistics(
    autoencoder: &mut Autoencoder,
    images: &Images,
    data: &mut dyn Passes,
) -> Result<(), LearnError> {
    if !autoencoder.has_statistics() {
        return Ok(());
    }
    let valid = autoencoder.valid();
    let mut pass = StatisticsPass::new();
    for batch in joined(data.batches(Pass::Everything), CHUNK) {
        valid.encode(images.read(&batch?.items), Norms::Batch).add_to(&mut pass);
        if pass.images() >= STATISTICS_IMAGES {
            break;
        }
    }
    autoencoder.set_statistics(&pass);
    Ok(())
}
