//! The graph from pixels to features: bytes are brought to what the other network takes, go through it, and become vectors
//! of the length 1.

use std::collections::{HashMap, HashSet};

use dtkc_item::ImageShape;
use prost::Message as _;

use super::{Backbone, Channels, PREFIX, TapReading, taps, wrong};
use crate::OnnxError;
use crate::proto::{DataType, Graph, Model, ValueInfo};
use crate::read::{Field, GRAPH_TAG, fields};
use crate::write::IR_VERSION;
use crate::write::builder::{Builder, Dim, int, ints, text, value_info};

/// The output of such a graph: f32 `[batch, dim]`.
pub const FEATURES: &str = "features";

/// The version of ONNX's operators since which images can be made smaller without leaving pixels out.
const ANTIALIAS: i64 = 18;

/// How the pixels of a set become what a backbone takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    /// The images of the set.
    pub image: ImageShape,
    /// Rows and columns that the backbone gets.
    pub size: [usize; 2],
    /// Taken away from every channel, of pixels between 0 and 1.
    pub mean: Vec<f32>,
    /// What is left is divided by it.
    pub deviation: Vec<f32>,
}

/// How a value of a backbone becomes one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Whatever it is: to find out what it looks like.
    Raw,
    /// It is one: `[batch, dim]`.
    Vector,
    /// The mean over all places of `[batch, channels, height, width]`, or with channels last.
    Maps(Channels),
    /// The first of `[batch, tokens, dim]`, which stands for the whole image in transformers.
    FirstToken,
}

impl Backbone {
    /// An ONNX file with the input `image`, u8 `[batch, height, width, channels]` of the set, and the output [`FEATURES`].
    pub fn prefix(&self, preparation: &Preparation, layer: &str, reading: Reading) -> Result<Vec<u8>, OnnxError> {
        self.prefix_with_taps(preparation, layer, reading, &[])
    }

    /// The same with what is kept of other values behind the vector of each image, one after the other.
    pub fn prefix_with_taps(
        &self,
        preparation: &Preparation,
        layer: &str,
        reading: Reading,
        taps: &[TapReading],
    ) -> Result<Vec<u8>, OnnxError> {
        self.check_layer(layer)?;
        taps.iter().try_for_each(|tap| self.check_tap(&tap.name))?;
        let mut before = Builder::with_opset(self.opset);
        self.prepare(&mut before, preparation)?;
        let mut after = Builder::with_opset(self.opset);
        let vector = if taps.is_empty() { FEATURES } else { "features_vector" };
        read(&mut after, &format!("{PREFIX}{layer}"), vector, reading);
        if !taps.is_empty() {
            let kept = taps.iter().enumerate();
            let kept = kept.map(|(number, tap)| taps::read(&mut after, &format!("{PREFIX}{}", tap.name), tap, number));
            let parts: Vec<String> = std::iter::once(vector.to_owned()).chain(kept).collect();
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            after.push("Concat", &parts, &[FEATURES], vec![int("axis", 1)]);
        }
        let (before, after) = (before.into_graph(), after.into_graph());
        let image = preparation.image;
        let sizes = [image.height, image.width, image.channels].map(Dim::Size);
        let mut graph = Graph {
            name: "features".into(),
            input: vec![value_info("image", DataType::Uint8, &[&[Dim::Batch], &sizes[..]].concat())],
            // What it looks like is found out by running it.
            output: vec![ValueInfo { name: FEATURES.into(), r#type: None }],
            ..before
        }
        .encode_to_vec();
        let wanted: Vec<&str> = std::iter::once(layer).chain(taps.iter().map(|tap| tap.name.as_str())).collect();
        graph.extend(self.renamed(&wanted)?);
        graph.extend(after.encode_to_vec());
        let mut file = Model {
            ir_version: IR_VERSION,
            producer_name: "dtkc".into(),
            doc_string: "Images to features: u8 pixels in, one vector for each out.".into(),
            ..Model::default()
        }
        .encode_to_vec();
        self.copy_versions(&mut file)?;
        prost::encoding::bytes::encode(GRAPH_TAG as u32, &graph, &mut file);
        Ok(file)
    }

    /// Pixels become what the input is called in the other file.
    fn prepare(&self, builder: &mut Builder, preparation: &Preparation) -> Result<(), OnnxError> {
        let Preparation { image, size: [height, width], mean, deviation } = preparation;
        let (height, width, wanted) = (*height, *width, self.input.channels);
        if image.channels > wanted {
            return Err(wrong("it takes gray images and the set has colours; import the set with --color gray"));
        }
        if [mean.len(), deviation.len()] != [wanted; 2] || deviation.iter().any(|value| *value <= 0.0) {
            return Err(wrong(format!(
                "mean and deviation need {wanted} numbers each, deviations above 0 (--backbone-mean, --backbone-std)"
            )));
        }
        let ImageShape { height: rows, width: columns, channels } = *image;
        let cast = |kind: DataType| vec![int("to", kind as i64)];
        builder.node("Cast", "pixels", &["image"], cast(DataType::Float), &[rows, columns, channels]);
        let order = vec![ints("perm", &[0, 3, 1, 2])];
        let mut value = builder.node("Transpose", "planes", &["pixels"], order, &[channels, rows, columns]);
        if [rows, columns] != [height, width] {
            value = resize(builder, &value, [channels, height, width], height < rows || width < columns);
        }
        if channels < wanted {
            let copies = vec![value.as_str(); wanted];
            value = builder.node("Concat", "coloured", &copies, vec![int("axis", 1)], &[wanted, height, width]);
        }
        let sizes = [wanted, height, width];
        if !self.input.takes_bytes {
            let constant = |values: &[f32]| values.iter().map(|value| value * 255.0).collect::<Vec<f32>>();
            builder.floats("prepared_mean", &[1, wanted, 1, 1], &constant(mean));
            builder.floats("prepared_deviation", &[1, wanted, 1, 1], &constant(deviation));
            let centred = builder.node("Sub", "prepared_centred", &[&value, "prepared_mean"], vec![], &sizes);
            value = builder.node("Div", "prepared_scaled", &[&centred, "prepared_deviation"], vec![], &sizes);
        }
        if self.input.order == Channels::Last {
            let order = vec![ints("perm", &[0, 2, 3, 1])];
            value = builder.node("Transpose", "prepared_order", &[&value], order, &[height, width, wanted]);
        }
        let name = format!("{PREFIX}{}", self.input.name);
        let dims = match self.input.order {
            Channels::First => [wanted, height, width],
            Channels::Last => [height, width, wanted],
        };
        match self.input.takes_bytes {
            true => {
                // Bilinear resizing stays within 0 and 255, but not on whole numbers.
                let whole = builder.node("Round", "prepared_whole", &[&value], vec![], &dims);
                builder.push("Cast", &[&whole], &[&name], cast(DataType::Uint8));
                builder.value(&name, DataType::Uint8, &[&[Dim::Batch], &dims.map(Dim::Size)[..]].concat());
            }
            false => {
                builder.node("Identity", &name, &[&value], vec![], &dims);
            }
        }
        Ok(())
    }

    /// The nodes and weights that lead to some values, as bytes, with other names.
    fn renamed(&self, wanted: &[&str]) -> Result<Vec<u8>, OnnxError> {
        const NODE: u64 = 1;
        const INITIALIZER: u64 = 5;
        let needed = self.needed(wanted);
        let (bytes, mut out) = (self.graph_bytes()?, Vec::new());
        let (mut node, mut initializer) = (0, 0);
        for Field { tag, value, .. } in fields(bytes)? {
            match tag {
                NODE => {
                    if needed.nodes.contains(&node) {
                        let renamed = rename(&bytes[value], &[1, 2, 3])?;
                        prost::encoding::bytes::encode(NODE as u32, &renamed, &mut out);
                    }
                    node += 1;
                }
                INITIALIZER => {
                    let name = self.graph.initializer.get(initializer).map(|tensor| tensor.name.as_str());
                    if name.is_some_and(|name| needed.values.contains(name)) {
                        let renamed = rename(&bytes[value], &[8])?;
                        prost::encoding::bytes::encode(INITIALIZER as u32, &renamed, &mut out);
                    }
                    initializer += 1;
                }
                _ => {}
            }
        }
        Ok(out)
    }

    /// What they are computed from.
    fn needed(&self, wanted: &[&str]) -> Needed<'_> {
        let mut makers = HashMap::new();
        for (place, node) in self.graph.node.iter().enumerate() {
            makers.extend(node.output.iter().map(|name| (name.as_str(), place)));
        }
        let mut needed = Needed::default();
        // Names that live as long as the graph: so do those that are found below.
        let mut left: Vec<&str> =
            wanted.iter().filter_map(|name| makers.get_key_value(*name)).map(|(name, _)| *name).collect();
        while let Some(name) = left.pop() {
            if name.is_empty() || !needed.values.insert(name) {
                continue;
            }
            if let Some(&place) = makers.get(name)
                && needed.nodes.insert(place)
            {
                left.extend(self.graph.node[place].input.iter().map(String::as_str));
            }
        }
        needed
    }

    /// The versions of operators, as the other file has them.
    fn copy_versions(&self, out: &mut Vec<u8>) -> Result<(), OnnxError> {
        const OPSET_IMPORT: u64 = 8;
        for Field { tag, range, .. } in fields(&self.bytes)? {
            if tag == OPSET_IMPORT {
                out.extend_from_slice(&self.bytes[range]);
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Needed<'a> {
    nodes: HashSet<usize>,
    values: HashSet<&'a str>,
}

/// The same message with a prefix before the texts of some fields.
pub(super) fn rename(bytes: &[u8], tags: &[u64]) -> Result<Vec<u8>, OnnxError> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    for Field { tag, range, value } in fields(bytes)? {
        match tags.contains(&tag) && !value.is_empty() {
            true => {
                let name = String::from_utf8_lossy(&bytes[value]);
                prost::encoding::string::encode(tag as u32, &format!("{PREFIX}{name}"), &mut out);
            }
            false => out.extend_from_slice(&bytes[range]),
        }
    }
    Ok(out)
}

/// To another size, by the sizes themselves and not by factors, which round.
fn resize(builder: &mut Builder, value: &str, [channels, height, width]: [usize; 3], is_smaller: bool) -> String {
    builder.integers("resized_first", &[0]);
    builder.integers("resized_second", &[2]);
    builder.integers("resized_sides", &[height as i64, width as i64]);
    builder.push("Shape", &[value], &["resized_shape"], vec![]);
    builder.push("Slice", &["resized_shape", "resized_first", "resized_second"], &["resized_kept"], vec![]);
    builder.push("Concat", &["resized_kept", "resized_sides"], &["resized_sizes"], vec![int("axis", 0)]);
    let mut attributes = vec![text("mode", "linear"), text("coordinate_transformation_mode", "half_pixel")];
    if is_smaller && builder.opset() >= ANTIALIAS {
        attributes.push(int("antialias", 1));
    }
    builder.node("Resize", "resized", &[value, "", "", "resized_sizes"], attributes, &[channels, height, width])
}

/// From a value of the network to `to`: one vector for each image, of the length 1, so that a product of two says how
/// alike they are.
fn read(builder: &mut Builder, value: &str, to: &str, reading: Reading) {
    let vector = match reading {
        Reading::Raw => {
            builder.push("Identity", &[value], &[to], vec![]);
            return;
        }
        Reading::Vector => value.to_owned(),
        Reading::Maps(order) => {
            let axes: &[i64] = match order {
                Channels::First => &[2, 3],
                Channels::Last => &[1, 2],
            };
            builder.mean("features_mean", value, axes)
        }
        Reading::FirstToken => {
            builder.scalar("features_place", 0);
            builder.push("Gather", &[value, "features_place"], &["features_first"], vec![int("axis", 1)]);
            "features_first".to_owned()
        }
    };
    builder.push("LpNormalization", &[&vector], &[to], vec![int("axis", 1), int("p", 2)]);
}
