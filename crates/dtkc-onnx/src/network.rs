//! The plain description of a frozen network, and the check that its layers fit together.

use dtkc_item::{ImageShape, ItemShape};

use crate::OnnxError;

/// A tensor of weights: a shape and its values in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Sizes of the dimensions, outermost first.
    pub shape: Vec<usize>,
    /// The values, last dimension fastest.
    pub data: Vec<f32>,
}

impl Weights {
    /// Weights of the given shape.
    pub fn new(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Self {
        Self { shape: shape.into(), data }
    }
}

/// One step of a frozen network.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// Convolution (cross-correlation) with stride 1.
    Conv {
        /// `[out, in, kernel height, kernel width]`.
        weight: Weights,
        /// One value per output channel.
        bias: Vec<f32>,
        /// Rows and columns of zeros: top, left, bottom, right.
        padding: [usize; 4],
    },
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// `gamma (x - mean) / sqrt(variance + epsilon) + beta` per channel (of an image) or per feature (of a vector).
    BatchNorm {
        /// Scale.
        gamma: Vec<f32>,
        /// Shift.
        beta: Vec<f32>,
        /// Running mean.
        mean: Vec<f32>,
        /// Running (biased) variance.
        variance: Vec<f32>,
        /// Added to the variance.
        epsilon: f32,
    },
    /// Largest value of each `size` x `size` square; squares do not overlap, an incomplete one at the border is dropped.
    MaxPool {
        /// Side of the square.
        size: usize,
    },
    /// Mean of each `size` x `size` square, dropped at the border as for [`Layer::MaxPool`].
    AveragePool {
        /// Side of the square.
        size: usize,
    },
    /// An image becomes a vector, channels fastest (the network was trained channels-last).
    Flatten,
    /// `x W + b`.
    Dense {
        /// `[in, out]`.
        weight: Weights,
        /// One value per output.
        bias: Vec<f32>,
    },
    /// Marks the value at this place as the output `embedding`; computes nothing.
    Embedding,
    /// Softmax over the features, behind a dense layer; the last layer, its value is the output `probabilities`.
    Softmax,
    /// `q_j = t_j / sum_j t_j` with `t_j = 1 / (1 + ||z - c_j||^2)`: how close a vector is to each centre by Student's t
    /// with one degree of freedom. The last layer, its value is the output `probabilities`.
    StudentT {
        /// `[clusters, features]`.
        centres: Weights,
    },
}

impl Layer {
    /// The layer's kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Layer::Conv { .. } => "Conv",
            Layer::Relu => "Relu",
            Layer::Tanh => "Tanh",
            Layer::BatchNorm { .. } => "BatchNorm",
            Layer::MaxPool { .. } => "MaxPool",
            Layer::AveragePool { .. } => "AveragePool",
            Layer::Flatten => "Flatten",
            Layer::Dense { .. } => "Dense",
            Layer::Embedding => "Embedding",
            Layer::Softmax => "Softmax",
            Layer::StudentT { .. } => "StudentT",
        }
    }

    /// Whether its value is the probabilities: such a layer is the last one.
    pub fn is_head(&self) -> bool {
        matches!(self, Layer::Softmax | Layer::StudentT { .. })
    }
}

/// A frozen clustering network. An image at its input has values that were scaled to 0..1; the writer adds that
/// scaling and the transpose to channels-first.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// What it takes. So far only networks that take images can be written.
    pub input: ItemShape,
    /// The layers, in order: [`Layer::Embedding`] exactly once; last a dense layer and [`Layer::Softmax`], or
    /// [`Layer::StudentT`].
    pub layers: Vec<Layer>,
}

/// The shape of a value between two layers, without the batch dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Height, width and channels; in the graph the channels come first.
    Image(ImageShape),
    /// Features.
    Vector(usize),
}

impl Size {
    pub(crate) fn dims(self) -> Vec<usize> {
        match self {
            Size::Image(shape) => vec![shape.channels, shape.height, shape.width],
            Size::Vector(features) => vec![features],
        }
    }

    fn channels(self) -> usize {
        match self {
            Size::Image(shape) => shape.channels,
            Size::Vector(features) => features,
        }
    }
}

/// What a checked network takes and produces.
pub(crate) struct Checked {
    /// The images at its input.
    pub image: ImageShape,
    /// The size before each layer, and after the last.
    pub sizes: Vec<Size>,
    /// Width of the embedding.
    pub embedding: usize,
    /// Number of clusters.
    pub clusters: usize,
}

impl Network {
    /// The number of clusters: the width of the last dense layer.
    pub fn clusters(&self) -> Result<usize, OnnxError> {
        Ok(self.check()?.clusters)
    }

    /// The width of the embedding.
    pub fn embedding_size(&self) -> Result<usize, OnnxError> {
        Ok(self.check()?.embedding)
    }

    /// Renumbers the clusters: new cluster `i` is the old cluster `order[i]`. The columns of the last dense layer, or the
    /// centres, are permuted, so the probabilities stay the same in another order.
    pub fn reorder_clusters(&mut self, order: &[usize]) -> Result<(), OnnxError> {
        let clusters = self.clusters()?;
        let mut seen = vec![false; clusters];
        for &old in order {
            match seen.get_mut(old) {
                Some(slot) if !*slot => *slot = true,
                _ => return Err(OnnxError::Network(format!("{order:?} is not an order of its {clusters} clusters"))),
            }
        }
        if order.len() != clusters {
            return Err(OnnxError::Network(format!("{order:?} is not an order of its {clusters} clusters")));
        }
        // `check` has made sure that a softmax stands behind a dense layer.
        match self.layers.iter_mut().rev().find(|layer| !matches!(layer, Layer::Softmax)) {
            Some(Layer::Dense { weight, bias }) => {
                let permute = |row: &[f32]| order.iter().map(|&old| row[old]).collect::<Vec<_>>();
                weight.data = weight.data.chunks_exact(clusters).flat_map(permute).collect();
                *bias = permute(bias);
            }
            Some(Layer::StudentT { centres }) => {
                let width = centres.shape[1];
                centres.data = order.iter().flat_map(|&old| &centres.data[old * width..][..width]).copied().collect();
            }
            _ => {}
        }
        Ok(())
    }

    /// Follows the shapes through the layers.
    pub(crate) fn check(&self) -> Result<Checked, OnnxError> {
        let image = self.check_input()?;
        let mut size = Size::Image(image);
        let mut sizes = vec![size];
        let mut embedding = None;
        for (position, layer) in self.layers.iter().enumerate() {
            let fail = |reason: String| OnnxError::Layer { layer: position, kind: layer.kind(), reason };
            size = next_size(layer, size).map_err(fail)?;
            sizes.push(size);
            if let (Layer::Embedding, Size::Vector(features)) = (layer, size)
                && embedding.replace(features).is_some()
            {
                return Err(fail("there is a second embedding".into()));
            }
            if layer.is_head() && position + 1 != self.layers.len() {
                return Err(fail("it gives the probabilities and must be the last layer".into()));
            }
        }
        let Some(embedding) = embedding else {
            return Err(OnnxError::Network("no layer is marked as the embedding".into()));
        };
        self.check_head()?;
        match size {
            Size::Vector(clusters) if clusters >= 2 => Ok(Checked { image, sizes, embedding, clusters }),
            _ => Err(OnnxError::Network("it needs at least two clusters".into())),
        }
    }

    fn check_input(&self) -> Result<ImageShape, OnnxError> {
        let Some(image) = self.input.image() else {
            let reason = format!("it takes {}, and only networks that take images can be written so far", self.input);
            return Err(OnnxError::Network(reason));
        };
        if image.color().is_none() {
            return Err(OnnxError::Network(format!("images have 1 or 3 channels, not {}", image.channels)));
        }
        if image.is_empty() {
            return Err(OnnxError::Network(format!("the input is {} x {} pixels", image.height, image.width)));
        }
        Ok(image)
    }

    /// What gives the probabilities must be something whose clusters can be renumbered by permuting weights.
    fn check_head(&self) -> Result<(), OnnxError> {
        let mut head = self.layers.iter().rev();
        match (head.next(), head.next()) {
            (Some(Layer::Softmax), Some(Layer::Dense { .. })) | (Some(Layer::StudentT { .. }), _) => Ok(()),
            _ => Err(OnnxError::Network("it must end with a dense layer and a softmax, or with Student's t".into())),
        }
    }
}

/// The size after `layer`, or what does not fit.
fn next_size(layer: &Layer, size: Size) -> Result<Size, String> {
    match (layer, size) {
        (Layer::Conv { weight, bias, padding }, Size::Image(ImageShape { height, width, channels })) => {
            let &[out, input, rows, columns] = weight.shape.as_slice() else {
                return Err(format!("its weight has {} dimensions instead of 4", weight.shape.len()));
            };
            check_weight(weight)?;
            check_vector("bias", bias, out)?;
            if input != channels {
                return Err(format!("its weight expects {input} channels and gets {channels}"));
            }
            let fit = |total: usize, kernel: usize| if kernel == 0 { None } else { (total + 1).checked_sub(kernel) };
            let height = fit(height + padding[0] + padding[2], rows).filter(|&h| h > 0);
            let width = fit(width + padding[1] + padding[3], columns).filter(|&w| w > 0);
            let (Some(height), Some(width)) = (height, width) else {
                return Err(format!("its {rows} x {columns} kernel is larger than what it gets; use larger images"));
            };
            Ok(Size::Image(ImageShape { height, width, channels: out }))
        }
        (Layer::BatchNorm { gamma, beta, mean, variance, epsilon }, size) => {
            for (name, values) in [("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)] {
                check_vector(name, values, size.channels())?;
            }
            if variance.iter().any(|v| v + epsilon <= 0.0) || !epsilon.is_finite() {
                return Err("its variance plus epsilon is not positive".into());
            }
            Ok(size)
        }
        (
            Layer::MaxPool { size } | Layer::AveragePool { size },
            Size::Image(ImageShape { height, width, channels }),
        ) => {
            if *size == 0 || height < *size || width < *size {
                return Err(format!("a {height} x {width} image cannot be pooled by {size}; use larger images"));
            }
            Ok(Size::Image(ImageShape { height: height / size, width: width / size, channels }))
        }
        (Layer::Flatten, Size::Image(shape)) => Ok(Size::Vector(shape.len())),
        (Layer::Dense { weight, bias }, Size::Vector(features)) => {
            let &[input, out] = weight.shape.as_slice() else {
                return Err(format!("its weight has {} dimensions instead of 2", weight.shape.len()));
            };
            check_weight(weight)?;
            check_vector("bias", bias, out)?;
            if input != features {
                return Err(format!("its weight expects {input} features and gets {features}"));
            }
            Ok(Size::Vector(out))
        }
        (Layer::StudentT { centres }, Size::Vector(features)) => {
            let &[clusters, width] = centres.shape.as_slice() else {
                return Err(format!("its centres have {} dimensions instead of 2", centres.shape.len()));
            };
            check_weight(centres)?;
            if width != features {
                return Err(format!("its centres have {width} features and it gets {features}"));
            }
            Ok(Size::Vector(clusters))
        }
        (Layer::Relu | Layer::Tanh, size) => Ok(size),
        (Layer::Embedding | Layer::Softmax, size @ Size::Vector(_)) => Ok(size),
        (_, Size::Image(_)) => Err("it needs a vector and gets an image; add Flatten before it".into()),
        (_, Size::Vector(_)) => Err("it needs an image and gets a vector".into()),
    }
}

fn check_weight(weight: &Weights) -> Result<(), String> {
    let expected: usize = weight.shape.iter().product();
    if expected == 0 || expected != weight.data.len() {
        return Err(format!("its weight of shape {:?} has {} values", weight.shape, weight.data.len()));
    }
    check_finite("weight", &weight.data)
}

fn check_vector(name: &str, values: &[f32], expected: usize) -> Result<(), String> {
    if values.len() != expected {
        return Err(format!("its {name} has {} values instead of {expected}", values.len()));
    }
    check_finite(name, values)
}

fn check_finite(name: &str, values: &[f32]) -> Result<(), String> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(value) => Err(format!("its {name} holds {value}; training went wrong, so use an earlier checkpoint")),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{Sample, forward};

    fn refusal(change: impl FnOnce(&mut Network)) -> String {
        let mut network = Sample::small().network();
        change(&mut network);
        network.clusters().unwrap_err().to_string()
    }

    #[test]
    fn shapes_are_followed() {
        let network = Sample::small().network();
        assert_eq!(network.clusters(), Ok(4));
        assert_eq!(network.embedding_size(), Ok(7));
        // 22 x 27 -> 18 x 23 -> 14 x 19 -> 7 x 9 -> 5 x 7 -> 3 x 5 -> 1 x 2, by hand.
        let sizes = network.check().unwrap().sizes;
        assert_eq!(sizes[12], Size::Image(ImageShape { height: 1, width: 2, channels: 5 }));
        assert_eq!(sizes[13], Size::Vector(10));
    }

    #[test]
    fn layers_that_do_not_fit_are_named() {
        let image = Sample::small().shape();
        let with_input = |image| refusal(|n| n.input = ItemShape::Image(image));
        assert!(with_input(ImageShape { channels: 1, ..image }).contains("layer 0 (Conv)"));
        assert!(with_input(ImageShape { channels: 2, ..image }).contains("1 or 3 channels"));
        assert!(with_input(ImageShape { height: 19, ..image }).contains("use larger images"));
        assert!(with_input(ImageShape { height: 0, ..image }).contains("0 x 27 pixels"));
        let sequences = refusal(|n| n.input = ItemShape::Sequence { dim: 3 });
        assert!(sequences.contains("it takes sequences of 3 values a step, and only networks that take images"));
        assert!(refusal(|n| drop(n.layers.remove(12))).contains("add Flatten before it"));
        assert!(refusal(|n| drop(n.layers.remove(16))).contains("no layer is marked"));
        assert!(refusal(|n| n.layers.insert(16, Layer::Embedding)).contains("second embedding"));
        assert!(refusal(|n| drop(n.layers.pop())).contains("dense layer and a softmax"));
        assert!(refusal(|n| n.layers.push(Layer::Relu)).contains("must be the last layer"));
        assert!(refusal(|n| n.layers.insert(13, Layer::MaxPool { size: 2 })).contains("gets a vector"));
    }

    #[test]
    fn a_head_of_centres_is_checked_and_renumbered() {
        let sample = Sample::small();
        let mut network = sample.student_t();
        assert_eq!((network.clusters(), network.embedding_size()), (Ok(4), Ok(7)));
        let image = &sample.images(1);
        let before = forward(&network, image).probabilities;
        network.reorder_clusters(&[2, 0, 3, 1]).unwrap();
        assert_eq!(forward(&network, image).probabilities, [2, 0, 3, 1].map(|old| before[old]));
        network.layers.push(Layer::Tanh);
        assert!(network.clusters().unwrap_err().to_string().contains("must be the last layer"));
        let centres = Weights::new([4, 6], vec![0.0; 24]);
        let narrow = refusal(|n| n.layers.splice(17.., [Layer::StudentT { centres }]).for_each(drop));
        assert!(narrow.contains("its centres have 6 features and it gets 7"), "{narrow}");
    }

    #[test]
    fn wrong_weights_are_named() {
        let dense = |change: fn(&mut Weights, &mut Vec<f32>)| {
            refusal(|n| {
                if let Layer::Dense { weight, bias } = &mut n.layers[13] {
                    change(weight, bias);
                }
            })
        };
        assert!(dense(|weight, _| weight.data[3] = f32::NAN).contains("its weight holds NaN"));
        assert!(dense(|weight, _| weight.data.truncate(69)).contains("has 69 values"));
        assert!(dense(|_, bias| bias.truncate(6)).contains("6 values instead of 7"));
        assert!(dense(|weight, _| weight.shape = vec![70]).contains("1 dimensions instead of 2"));
        let variance = refusal(|n| {
            if let Layer::BatchNorm { variance, .. } = &mut n.layers[3] {
                variance[0] = -1.0;
            }
        });
        assert!(variance.contains("not positive"));
    }

    #[test]
    fn clusters_are_renumbered() {
        let sample = Sample::small();
        let image = sample.images(1);
        let mut network = sample.network();
        let before = forward(&network, &image);
        network.reorder_clusters(&[2, 0, 3, 1]).unwrap();
        let after = forward(&network, &image);
        let expected: Vec<f64> = [2, 0, 3, 1].iter().map(|&old| before.probabilities[old]).collect();
        assert_eq!(after.probabilities.len(), 4);
        for (found, expected) in after.probabilities.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert_eq!(after.embedding, before.embedding);
    }

    #[test]
    fn only_a_full_order_renumbers() {
        let mut network = Sample::small().network();
        let before = network.clone();
        for order in [&[0, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 4], &[0, 1, 2, 3, 0]] {
            assert!(network.reorder_clusters(order).is_err(), "{order:?}");
        }
        assert_eq!(network, before);
    }
}
