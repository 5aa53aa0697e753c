//! The nodes behind the embedding.

use super::{OUTLIER, Outlier, THRESHOLD};
use crate::proto::{DataType, Graph};
use crate::write::builder::{Builder, Dim, value_info};

/// What is added to a graph.
pub(super) fn part(outlier: &Outlier, width: usize, opset: i64) -> Graph {
    let mut builder = Builder::with_opset(opset);
    builder.floats("outlier_zero", &[], &[0.0]);
    builder.floats("outlier_one", &[], &[1.0]);
    builder.floats("outlier_none", &[1], &[0.0]);
    builder.integers("outlier_axis", &[1]);
    let scaled = scaled(&mut builder, outlier, width);
    let distance = distance(&mut builder, outlier, width, &scaled);
    value(&mut builder, &outlier.knots, &distance);
    let output = vec![value_info(OUTLIER, DataType::Float, &[Dim::Batch])];
    Graph { output, ..builder.into_graph() }
}

fn scaled(builder: &mut Builder, outlier: &Outlier, width: usize) -> String {
    builder.floats("outlier_scaling", &outlier.scaling.shape, &outlier.scaling.data);
    builder.floats("outlier_shift", &[width], &outlier.shift);
    if outlier.scaling.shape.len() == 2 {
        let inputs = ["embedding", "outlier_scaling", "outlier_shift"];
        return builder.node("Gemm", "outlier_scaled", &inputs, vec![], &[width]);
    }
    builder.node("Mul", "outlier_stretched", &["embedding", "outlier_scaling"], vec![], &[width]);
    builder.node("Add", "outlier_scaled", &["outlier_stretched", "outlier_shift"], vec![], &[width])
}

/// To the nearest point `p`: the root of `|x|^2 + min(|p|^2 - 2 x p)`. One matrix product, where differences to every point would
/// take the memory of the widest layer. The scaling keeps lengths small enough for that ([`Outlier`] is made so).
fn distance(builder: &mut Builder, Outlier { points, .. }: &Outlier, width: usize, scaled: &str) -> String {
    let count = points.shape[0];
    let columns = (0..width).flat_map(|at| points.data.iter().skip(at).step_by(width).map(|value| -2.0 * value));
    builder.floats("outlier_points", &[width, count], &columns.collect::<Vec<f32>>());
    let square = |point: &[f32]| point.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() as f32;
    let squares: Vec<f32> = points.data.chunks_exact(width).map(square).collect();
    builder.floats("outlier_squares", &[count], &squares);
    let inputs = [scaled, "outlier_points", "outlier_squares"];
    builder.node("Gemm", "outlier_apart", &inputs, vec![], &[count]);
    builder.reduce("ReduceMin", "outlier_nearest", "outlier_apart", &[1], true);
    builder.value("outlier_nearest", DataType::Float, &[Dim::Batch, Dim::Size(1)]);
    builder.node("Mul", "outlier_square", &[scaled, scaled], vec![], &[width]);
    sum(builder, "outlier_length", "outlier_square", &vec![1.0; width]);
    builder.node("Add", "outlier_far", &["outlier_length", "outlier_nearest"], vec![], &[1]);
    // On a point the sum may be a little below 0.
    builder.node("Max", "outlier_farther", &["outlier_far", "outlier_zero"], vec![], &[1]);
    builder.node("Sqrt", "outlier_distance", &["outlier_farther"], vec![], &[1])
}

/// A weighted sum of the values of a row, as a product: ONNX Runtime's own sums have other last bits where a row begins at another
/// place in memory, and an answer must not depend on the batch.
fn sum(builder: &mut Builder, name: &str, value: &str, weights: &[f32]) {
    let constant = format!("{name}_weights");
    builder.floats(&constant, &[weights.len(), 1], weights);
    builder.node("Gemm", name, &[value, &constant, "outlier_none"], vec![], &[1]);
}

/// The share is the mean, over the stretches between knots, of how much of each lies below the distance. A sum of bent lines with
/// slopes that cancel each other would be shorter, and lose all digits where two knots are close.
fn value(builder: &mut Builder, knots: &[f32], distance: &str) {
    let count = knots.len() - 1;
    let widths: Vec<f32> = knots.windows(2).map(|pair| pair[1] - pair[0]).collect();
    builder.floats("outlier_knots", &[count], &knots[..count]);
    builder.floats("outlier_widths", &[count], &widths);
    builder.floats("outlier_threshold", &[], &[THRESHOLD]);
    builder.floats("outlier_rest", &[], &[1.0 - THRESHOLD]);
    builder.floats("outlier_last", &[], &[knots[count]]);
    builder.node("Sub", "outlier_past", &[distance, "outlier_knots"], vec![], &[count]);
    builder.node("Div", "outlier_parts", &["outlier_past", "outlier_widths"], vec![], &[count]);
    builder.node("Max", "outlier_begun", &["outlier_parts", "outlier_zero"], vec![], &[count]);
    builder.node("Min", "outlier_filled", &["outlier_begun", "outlier_one"], vec![], &[count]);
    sum(builder, "outlier_share", "outlier_filled", &vec![1.0 / count as f32; count]);
    builder.node("Mul", "outlier_below", &["outlier_share", "outlier_threshold"], vec![], &[1]);
    builder.node("Max", "outlier_reach", &[distance, "outlier_last"], vec![], &[1]);
    builder.node("Div", "outlier_ratio", &["outlier_last", "outlier_reach"], vec![], &[1]);
    builder.node("Sub", "outlier_more", &["outlier_one", "outlier_ratio"], vec![], &[1]);
    builder.node("Mul", "outlier_beyond", &["outlier_more", "outlier_rest"], vec![], &[1]);
    builder.node("Add", "outlier_sum", &["outlier_below", "outlier_beyond"], vec![], &[1]);
    builder.push("Squeeze", &["outlier_sum", "outlier_axis"], &[OUTLIER], vec![]);
}
