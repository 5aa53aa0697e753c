//! What lies inside a backbone, made small: maps become at most 4 x 4 places of at most 32 channels, vectors at most 512
//! values, so that an image takes at most 2 KiB for each.
//!
//! Places are averaged, as adaptive pooling does. Channels are folded: channel `c` is added to channel `c mod 32` with a sign
//! that looks like chance, which leaves products of two images what they were in the mean (a count sketch), where averages of
//! channels would wipe out what tells images apart. Both are products with constant matrices, so that the graph does them.

use std::collections::HashMap;

use dtkc_item::TapShape;

use super::{Backbone, Channels, wrong};
use crate::OnnxError;
use crate::proto::Node;
use crate::write::builder::{Builder, int, ints};

/// Places along a side of maps, at most.
pub const TAP_SIDE: usize = 4;
/// Channels of maps, at most.
pub const TAP_CHANNELS: usize = 32;
/// Values of a vector, at most.
pub const TAP_VALUES: usize = TAP_SIDE * TAP_SIDE * TAP_CHANNELS;

/// A value inside a backbone and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapReading {
    /// Its name in the file.
    pub name: String,
    /// Its sizes for one image, without the batch: one of a vector, three of maps.
    pub sizes: Vec<usize>,
    /// Where the channels of maps stand.
    pub order: Channels,
}

impl TapReading {
    /// Channels, rows and columns of maps as they are.
    fn maps(&self) -> Option<[usize; 3]> {
        match (self.sizes.as_slice(), self.order) {
            (&[channels, height, width], Channels::First) | (&[height, width, channels], Channels::Last) => {
                Some([channels, height, width])
            }
            _ => None,
        }
    }

    /// What is kept of it.
    pub fn shape(&self) -> Option<TapShape> {
        match self.maps() {
            Some([channels, height, width]) => {
                TapShape::from_sizes(&[channels.min(TAP_CHANNELS), height.min(TAP_SIDE), width.min(TAP_SIDE)])
            }
            None => match self.sizes.as_slice() {
                [size] => TapShape::from_sizes(&[*size.min(&TAP_VALUES)]),
                _ => None,
            },
        }
    }
}

/// Names that an error tells.
const TOLD: usize = 12;

impl Backbone {
    /// Fails where the network has no value of that name, with some of those that it has, from its first to its last.
    pub fn check_tap(&self, name: &str) -> Result<(), OnnxError> {
        let all: Vec<&str> =
            self.graph.node.iter().filter_map(|node| node.output.first()).map(String::as_str).collect();
        if self.graph.node.iter().any(|node| node.output.iter().any(|output| output == name)) {
            return Ok(());
        }
        let step = all.len().div_ceil(TOLD).max(1);
        let told: Vec<String> = all.iter().step_by(step).map(|name| format!("{name:?}")).collect();
        let among = if step > 1 { format!("among its {} values are", all.len()) } else { "its values are".to_owned() };
        Err(wrong(format!("it has no value {name:?}; {among} {}", told.join(", "))))
    }

    /// Where the channels of a value with four dimensions stand: where those operations have them that it comes from.
    /// Convolutions and pooling have them first, whatever the input has.
    pub fn order_of(&self, name: &str) -> Channels {
        let makers: HashMap<&str, &Node> =
            self.graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node))).collect();
        let mut value = name;
        // A graph has no circles, but this one is somebody else's.
        for _ in 0..self.graph.node.len() {
            let Some(node) = makers.get(value) else { break };
            match node.op_type.as_str() {
                "Conv"
                | "ConvTranspose"
                | "MaxPool"
                | "AveragePool"
                | "GlobalAveragePool"
                | "GlobalMaxPool"
                | "BatchNormalization"
                | "InstanceNormalization"
                | "DepthToSpace"
                | "SpaceToDepth" => {
                    return Channels::First;
                }
                "Transpose" => match node.attribute.iter().find(|a| a.name == "perm").map(|a| a.ints.as_slice()) {
                    Some([0, 2, 3, 1]) => return Channels::Last,
                    Some([0, 3, 1, 2]) => return Channels::First,
                    _ => break,
                },
                _ => {}
            }
            let Some(first) = node.input.iter().find(|input| makers.contains_key(input.as_str())) else { break };
            value = first;
        }
        self.input.order
    }
}

/// Puts what is kept of a value behind each other, `[batch, size]`, and gives its name.
pub(super) fn read(builder: &mut Builder, value: &str, tap: &TapReading, number: usize) -> String {
    let named = |part: &str| format!("tap{number}_{part}");
    let flat = named("flat");
    let Some([channels, height, width]) = tap.maps() else {
        let size = tap.sizes.first().copied().unwrap_or(0);
        if size <= TAP_VALUES {
            builder.push("Flatten", &[value], &[&flat], vec![int("axis", 1)]);
            return flat;
        }
        builder.floats(&named("fold"), &[size, TAP_VALUES], &transposed(&fold(size, TAP_VALUES), size));
        builder.push("MatMul", &[value, &named("fold")], &[&flat], vec![]);
        return flat;
    };
    let mut found = named("places");
    // 0 keeps the batch.
    match tap.order {
        Channels::First => {
            builder.integers(&named("sizes"), &[0, channels as i64, (height * width) as i64]);
            builder.push("Reshape", &[value, &named("sizes")], &[&found], vec![]);
        }
        Channels::Last => {
            builder.integers(&named("sizes"), &[0, (height * width) as i64, channels as i64]);
            builder.push("Reshape", &[value, &named("sizes")], &[&named("last")], vec![]);
            builder.push("Transpose", &[&named("last")], &[&found], vec![ints("perm", &[0, 2, 1])]);
        }
    }
    if height > TAP_SIDE || width > TAP_SIDE {
        let (matrix, pooled) = (pooling([height, width]), named("pooled"));
        let kept = height.min(TAP_SIDE) * width.min(TAP_SIDE);
        builder.floats(&named("pooling"), &[height * width, kept], &matrix);
        builder.push("MatMul", &[&found, &named("pooling")], &[&pooled], vec![]);
        found = pooled;
    }
    if channels > TAP_CHANNELS {
        let folded = named("folded");
        builder.floats(&named("fold"), &[TAP_CHANNELS, channels], &fold(channels, TAP_CHANNELS));
        builder.push("MatMul", &[&named("fold"), &found], &[&folded], vec![]);
        found = folded;
    }
    builder.push("Flatten", &[&found], &[&flat], vec![int("axis", 1)]);
    flat
}

/// `[to, from]`: which of the many is added to which of the few, and with which sign.
fn fold(from: usize, to: usize) -> Vec<f32> {
    let mut matrix = vec![0.0; to * from];
    for place in 0..from {
        matrix[place % to * from + place] = sign(place);
    }
    matrix
}

/// The sign of a channel: a bit of its number, mixed (the finaliser of MurmurHash3).
pub fn sign(channel: usize) -> f32 {
    let mut bits = channel as u32 ^ 0x9e37_79b9;
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    if (bits ^ (bits >> 16)) & 1 == 0 { 1.0 } else { -1.0 }
}

/// `[rows, columns]` of so many columns the other way round.
fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    let rows = matrix.len() / columns.max(1);
    (0..matrix.len()).map(|place| matrix[place % rows * columns + place / rows]).collect()
}

/// `[height * width, kept]`: the mean over the places of each of the few parts, whose borders are rounded outwards.
fn pooling([height, width]: [usize; 2]) -> Vec<f32> {
    let parts = |size: usize| {
        let kept = size.min(TAP_SIDE);
        (0..kept).map(move |part| (part * size / kept, ((part + 1) * size).div_ceil(kept))).collect::<Vec<_>>()
    };
    let (rows, columns) = (parts(height), parts(width));
    let kept = rows.len() * columns.len();
    let mut matrix = vec![0.0; height * width * kept];
    for (y, &(top, bottom)) in rows.iter().enumerate() {
        for (x, &(left, right)) in columns.iter().enumerate() {
            let share = 1.0 / ((bottom - top) * (right - left)) as f32;
            for place in (top..bottom).flat_map(|row| (left..right).map(move |column| row * width + column)) {
                matrix[place * kept + y * columns.len() + x] = share;
            }
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_bounded() {
        let tap = |sizes: &[usize], order| TapReading { name: "x".into(), sizes: sizes.to_vec(), order }.shape();
        let maps = |channels, height, width| Some(TapShape::Maps { channels, height, width });
        assert_eq!(tap(&[64, 28, 3], Channels::First), maps(32, 4, 3));
        assert_eq!(tap(&[28, 3, 64], Channels::Last), maps(32, 4, 3));
        assert_eq!(tap(&[7, 1, 1], Channels::First), maps(7, 1, 1));
        assert_eq!(tap(&[2048], Channels::First), Some(TapShape::Vector(512)));
        assert_eq!((tap(&[2, 3], Channels::First), tap(&[0], Channels::First)), (None, None));
    }

    /// Borders as in PyTorch's `adaptive_avg_pool2d`: of 6 rows the parts are 0..2, 1..3, 3..5 and 4..6.
    #[test]
    fn pooling_is_adaptive() {
        let matrix = pooling([6, 1]);
        let column = |part: usize| (0..6).map(|place| matrix[place * 4 + part]).collect::<Vec<_>>();
        assert_eq!(column(0), [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(column(1), [0.0, 0.5, 0.5, 0.0, 0.0, 0.0]);
        assert_eq!(column(2), [0.0, 0.0, 0.0, 0.5, 0.5, 0.0]);
        assert_eq!(column(3), [0.0, 0.0, 0.0, 0.0, 0.5, 0.5]);
    }

    #[test]
    fn folding_keeps_products_in_the_mean() {
        let signs: f32 = (0..1000).map(sign).sum();
        assert!(signs.abs() < 100.0, "{signs}");
        let (from, to) = (96, 32);
        let matrix = fold(from, to);
        assert!((0..from).all(|c| (0..to).filter(|t| matrix[t * from + c] != 0.0).count() == 1));
        assert_eq!(matrix[5 * from + 37], sign(37));
        let turned = transposed(&matrix, from);
        assert!((0..from).all(|c| (0..to).all(|t| turned[c * to + t] == matrix[t * from + c])));
    }
}
