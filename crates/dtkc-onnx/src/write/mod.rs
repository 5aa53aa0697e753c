//! From layers to ONNX nodes.

pub(crate) mod builder;
mod sequences;

use dtkc_item::{ImageShape, ItemKind, ItemShape};
use prost::Message;

use self::builder::{Builder, float, int, ints};
use crate::backbone::FEATURES;
use crate::network::Checked;
use crate::proto::{DataType, Graph, Model, OperatorSet};
use crate::read::append_metadata;
use crate::sizes::Size;
use crate::{Layer, Metadata, Network, OnnxError, Weights};

/// The version of ONNX's operators that the graph uses.
pub const OPSET: i64 = 18;
/// The version of the file format that goes with [`OPSET`].
pub const IR_VERSION: i64 = 8;

/// The bytes of a model file. The same arguments give the same bytes.
///
/// `embedding_size` of the metadata is filled in; its input and clusters must
/// be those of the network.
pub fn write(network: &Network, metadata: &Metadata) -> Result<Vec<u8>, OnnxError> {
    let checked = network.check()?;
    let metadata = Metadata { embedding_size: checked.embedding, ..metadata.clone() };
    fits(&checked, &metadata)?;
    let model = Model {
        ir_version: IR_VERSION,
        producer_name: "dtkc".into(),
        producer_version: metadata.provenance.tool_version.clone(),
        doc_string: about(checked.input.kind()).into(),
        graph: Some(graph(network, &checked)),
        opset_import: vec![OperatorSet { domain: String::new(), version: OPSET }],
        ..Model::default()
    };
    let mut bytes = model.encode_to_vec();
    append_metadata(&mut bytes, &metadata)?;
    Ok(bytes)
}

/// The graph of a checked network.
pub(crate) fn graph(network: &Network, checked: &Checked) -> Graph {
    let mut builder = Builder::with_opset(OPSET);
    let first = match checked.input {
        ItemShape::Image(image) => builder.preprocess(image),
        ItemShape::Sequence { dim } => builder.valid_steps(dim),
        ItemShape::Features(_) => FEATURES.to_owned(),
    };
    builder.layers(network, checked, first);
    builder.finish(checked)
}

fn about(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Images => "Cluster assignment of images: u8 pixels in, cluster, probabilities and embedding out.",
        ItemKind::Features => "Cluster assignment of features: vectors in, cluster, probabilities and embedding out.",
        ItemKind::Sequences => {
            "Cluster assignment of sequences: values and lengths in, cluster, probabilities and embedding out."
        }
    }
}

fn fits(checked: &Checked, metadata: &Metadata) -> Result<(), OnnxError> {
    metadata.check()?;
    let (described, taken) = (metadata.input.shape(), checked.input);
    if described != taken {
        return Err(OnnxError::Mismatch(format!("it describes {described} and the network takes {taken}")));
    }
    fit_clusters(checked, metadata)
}

/// The clusters that are described must be those of the network.
pub(crate) fn fit_clusters(checked: &Checked, metadata: &Metadata) -> Result<(), OnnxError> {
    match (metadata.k(), checked.clusters) {
        (described, actual) if described == actual => Ok(()),
        (described, actual) => {
            Err(OnnxError::Mismatch(format!("it describes {described} clusters and the network has {actual}")))
        }
    }
}

impl Builder {
    /// Pixels to floats, scaled by each image's own minimum and maximum, channels first. Pixels are whole numbers,
    /// so a range below 1 means a constant image: dividing by at least 1 makes it zeros instead of NaN.
    fn preprocess(&mut self, ImageShape { height, width, channels }: ImageShape) -> String {
        let image = [height, width, channels];
        self.floats("one", &[], &[1.0]);
        self.integers("image_axes", &[1, 2, 3]);
        self.node("Cast", "pixels", &["image"], vec![int("to", DataType::Float as i64)], &image);
        self.node("ReduceMin", "lowest", &["pixels", "image_axes"], vec![int("keepdims", 1)], &[1, 1, 1]);
        self.node("ReduceMax", "highest", &["pixels", "image_axes"], vec![int("keepdims", 1)], &[1, 1, 1]);
        self.node("Sub", "range", &["highest", "lowest"], vec![], &[1, 1, 1]);
        self.node("Max", "divisor", &["range", "one"], vec![], &[1, 1, 1]);
        self.node("Sub", "shifted", &["pixels", "lowest"], vec![], &image);
        self.node("Div", "scaled", &["shifted", "divisor"], vec![], &image);
        let order = vec![ints("perm", &[0, 3, 1, 2])];
        self.node("Transpose", "planes", &["scaled"], order, &[channels, height, width])
    }

    pub(crate) fn layers(&mut self, network: &Network, checked: &Checked, mut value: String) {
        for (position, layer) in network.layers.iter().enumerate() {
            let (before, after) = (checked.sizes[position], checked.sizes[position + 1]);
            let next = network.layers.get(position + 1);
            let previous = position.checked_sub(1).map(|p| (&network.layers[p], checked.sizes[p]));
            value = self.layer(Step { position, layer, previous, next, before, after }, value);
        }
        self.node("ArgMax", "cluster", &[&value], vec![int("axis", 1), int("keepdims", 0)], &[]);
    }

    fn layer(&mut self, step: Step<'_>, value: String) -> String {
        let dims = step.after.dims();
        let name = step.name();
        match step.layer {
            Layer::Conv { weight, bias, padding } => {
                let (kernel, shift) = (format!("{name}_weight"), format!("{name}_bias"));
                self.floats(&kernel, &weight.shape, &weight.data);
                self.floats(&shift, &[bias.len()], bias);
                let shape = [weight.shape[2] as i64, weight.shape[3] as i64];
                let attributes = vec![ints("kernel_shape", &shape), ints("pads", &padding.map(|p| p as i64))];
                self.node("Conv", &name, &[&value, &kernel, &shift], attributes, &dims)
            }
            // ONNX calls both as we do.
            Layer::Relu | Layer::Tanh => self.sized(step.layer.kind(), &name, &[&value], vec![], step.after),
            Layer::BatchNorm { gamma, beta, mean, variance, epsilon } => {
                let parts = [("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)];
                let mut inputs = vec![value];
                for (part, values) in parts {
                    let constant = format!("{name}_{part}");
                    self.floats(&constant, &[values.len()], values);
                    inputs.push(constant);
                }
                let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
                self.node("BatchNormalization", &name, &inputs, vec![float("epsilon", *epsilon)], &dims)
            }
            Layer::MaxPool { size } | Layer::AveragePool { size } => {
                let square = [*size as i64, *size as i64];
                let attributes = vec![ints("kernel_shape", &square), ints("strides", &square)];
                // ONNX calls both as we do.
                self.node(step.layer.kind(), &name, &[&value], attributes, &dims)
            }
            Layer::Standardize { mean, deviation } => self.standardize(&name, [mean, deviation], step.after, &value),
            Layer::Gru { forward, backward, keep } => self.gru(&name, [forward, backward], *keep, &value),
            Layer::Resample { steps } => self.resample(&name, *steps, step.after, &value),
            Layer::Flatten => self.flatten(&step, &name, value),
            Layer::Dense { weight, bias } => {
                let (matrix, shift) = (format!("{name}_weight"), format!("{name}_bias"));
                self.floats(&matrix, &weight.shape, &channels_first_rows(weight, step.previous));
                self.floats(&shift, &[bias.len()], bias);
                self.node("Gemm", &name, &[&value, &matrix, &shift], vec![], &dims)
            }
            Layer::Embedding => self.node("Identity", "embedding", &[&value], vec![], &dims),
            Layer::Softmax => self.node("Softmax", "probabilities", &[&value], vec![int("axis", 1)], &dims),
            Layer::StudentT { centres } => self.student_t(&name, centres, &value),
        }
    }

    /// Differences to each centre are squared and added, not taken from a product: a vector that lies on a centre must be
    /// at the distance 0.
    fn student_t(&mut self, name: &str, centres: &Weights, value: &str) -> String {
        let (clusters, width) = (centres.shape[0], centres.shape[1]);
        let part = |part: &str| format!("{name}_{part}");
        let (rows, axis, last, one) = (part("centres"), part("axis"), part("last"), part("one"));
        self.floats(&rows, &[1, clusters, width], &centres.data);
        self.floats(&one, &[], &[1.0]);
        self.integers(&axis, &[1]);
        self.integers(&last, &[2]);
        let row = self.node("Unsqueeze", &part("row"), &[value, &axis], vec![], &[1, width]);
        let apart = self.node("Sub", &part("apart"), &[&row, &rows], vec![], &[clusters, width]);
        let keep = || vec![int("keepdims", 0)];
        // Until version 18 that operator had its axes in another place; behind a backbone there are older ones.
        let far = match self.opset() >= OPSET {
            true => self.node("ReduceSumSquare", &part("far"), &[&apart, &last], keep(), &[clusters]),
            false => {
                let square = self.node("Mul", &part("square"), &[&apart, &apart], vec![], &[clusters, width]);
                self.node("ReduceSum", &part("far"), &[&square, &last], keep(), &[clusters])
            }
        };
        let more = self.node("Add", &part("more"), &[&far, &one], vec![], &[clusters]);
        let near = self.node("Reciprocal", &part("near"), &[&more], vec![], &[clusters]);
        let all = self.node("ReduceSum", &part("all"), &[&near, &axis], vec![int("keepdims", 1)], &[1]);
        self.node("Div", "probabilities", &[&near, &all], vec![], &[clusters])
    }

    /// The network flattens channels-last and the graph holds channels-first. A dense layer that follows has its
    /// rows reordered instead (nothing to do at run time); before anything else the value itself is transposed.
    fn flatten(&mut self, step: &Step<'_>, name: &str, value: String) -> String {
        let mut value = value;
        if let (Size::Image(ImageShape { height, width, channels }), false) = (step.before, step.folds()) {
            let order = vec![ints("perm", &[0, 2, 3, 1])];
            value = self.node("Transpose", &format!("{name}_order"), &[&value], order, &[height, width, channels]);
        }
        self.node("Flatten", name, &[&value], vec![int("axis", 1)], &step.after.dims())
    }
}

/// A layer and what is around it.
struct Step<'a> {
    position: usize,
    layer: &'a Layer,
    previous: Option<(&'a Layer, Size)>,
    next: Option<&'a Layer>,
    before: Size,
    after: Size,
}

impl Step<'_> {
    fn name(&self) -> String {
        format!("{}_{}", self.layer.kind().to_lowercase(), self.position)
    }

    /// Whether a flatten's order can be folded into the next layer.
    fn folds(&self) -> bool {
        matches!(self.next, Some(Layer::Dense { .. }))
    }
}

/// The rows of a dense layer in the order of the value it gets: after a flatten that value is channels-first, and
/// the weights were trained channels-last.
fn channels_first_rows(weight: &Weights, previous: Option<(&Layer, Size)>) -> Vec<f32> {
    let Some((Layer::Flatten, Size::Image(ImageShape { height, width, channels }))) = previous else {
        return weight.data.clone();
    };
    let out = weight.shape[1];
    let mut data = Vec::with_capacity(weight.data.len());
    for channel in 0..channels {
        for pixel in 0..height * width {
            let row = pixel * channels + channel;
            data.extend_from_slice(&weight.data[row * out..(row + 1) * out]);
        }
    }
    data
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::{Color, ImageSpec};

    use super::*;
    use crate::InputSpec;
    use crate::testing::Sample;

    fn model(network: &Network) -> Model {
        Model::decode(&*write(network, &Sample::small().metadata()).unwrap()).unwrap()
    }

    #[test]
    fn layers_become_nodes_one_to_one() {
        let graph = model(&Sample::small().network()).graph.unwrap();
        let kinds: Vec<&str> = graph.node.iter().map(|node| node.op_type.as_str()).collect();
        let scaling = ["Cast", "ReduceMin", "ReduceMax", "Sub", "Max", "Sub", "Div", "Transpose"];
        let block = ["Conv", "Relu", "Conv", "BatchNormalization", "Relu", "MaxPool"];
        let head = ["Flatten", "Gemm", "Relu", "BatchNormalization", "Identity", "Gemm", "Softmax", "ArgMax"];
        assert_eq!(kinds, [&scaling[..], &block, &block, &head].concat());
    }

    #[test]
    fn the_same_network_gives_the_same_bytes() {
        let bytes = || write(&Sample::small().network(), &Sample::small().metadata()).unwrap();
        assert_eq!(bytes(), bytes());
    }

    #[test]
    fn the_order_of_a_flatten_is_folded_where_a_dense_layer_follows() {
        let mut network = Sample::small().network();
        let transposes = |network: &Network| {
            let nodes = model(network).graph.unwrap().node;
            nodes.iter().filter(|node| node.op_type == "Transpose").count()
        };
        assert_eq!(transposes(&network), 1);
        network.layers.insert(13, Layer::Relu);
        assert_eq!(transposes(&network), 2);
    }

    #[test]
    fn metadata_of_another_network_is_refused() {
        let refusal = |change: fn(&mut Metadata)| {
            let mut metadata = Sample::small().metadata();
            change(&mut metadata);
            write(&Sample::small().network(), &metadata).unwrap_err().to_string()
        };
        let described = |change: fn(&mut ImageSpec)| {
            let mut metadata = Sample::small().metadata();
            let InputSpec::Image(input) = &mut metadata.input else { panic!("images") };
            change(&mut input.image);
            write(&Sample::small().network(), &metadata).unwrap_err().to_string()
        };
        assert!(described(|image| image.width = 28).contains("describes images of 22x28x3"));
        assert!(
            described(|image| image.color = Color::Gray).contains("22x27x1 and the network takes images of 22x27x3")
        );
        let sequences = refusal(|metadata| metadata.input = InputSpec::Sequence { dim: 3 });
        assert!(sequences.contains("sequences of 3 values a step and the network takes images of 22x27x3"));
        assert!(refusal(|metadata| metadata.clusters.truncate(3)).contains("3 clusters and the network has 4"));
    }
}
