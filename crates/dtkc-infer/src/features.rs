//! A graph from pixels to features: the backbone of somebody else with our preparation before it.

use dtkc_item::ImageShape;
use dtkc_onnx::FEATURES;
use ort::value::TensorRef;

use crate::error::clause;
use crate::onnxruntime;
use crate::{InferError, Runtime, SessionOptions};

/// How the graph is called in messages.
const NAME: &str = "the backbone";

/// A loaded graph that [`dtkc_onnx::Backbone::prefix`] made. It runs one batch at a time.
pub struct FeatureSession {
    session: ort::session::Session,
    image: ImageShape,
}

/// What it says about some images.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// All sizes, the number of images first.
    pub dims: Vec<usize>,
    /// The values, last dimension fastest.
    pub values: Vec<f32>,
}

impl FeatureSession {
    /// Loads a graph that takes such images. A device that is not there is an error.
    pub fn new(
        runtime: &Runtime,
        graph: &[u8],
        image: ImageShape,
        options: &SessionOptions,
    ) -> Result<Self, InferError> {
        Ok(Self { session: onnxruntime::open(runtime, NAME, graph, options)?, image })
    }

    /// The features of images that lie one after the other.
    pub fn run(&mut self, pixels: &[u8]) -> Result<Features, InferError> {
        let failed = |reason: String| InferError::Run { model: NAME.into(), reason };
        let ImageShape { height, width, channels } = self.image;
        let count = pixels.len() / self.image.len().max(1);
        let image = TensorRef::from_array_view(([count, height, width, channels], pixels));
        let image = image.map_err(|error| failed(clause(&error)))?;
        let outputs = self.session.run(ort::inputs!["image" => image]).map_err(|error| failed(clause(&error)))?;
        let value = outputs.get(FEATURES).ok_or_else(|| failed("its output is missing".into()))?;
        let (dims, values) = value.try_extract_tensor::<f32>().map_err(|error| failed(clause(&error)))?;
        let dims = dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        Ok(Features { dims, values: values.to_vec() })
    }
}
