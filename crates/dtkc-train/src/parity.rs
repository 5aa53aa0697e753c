//! Whether ONNX Runtime says the same as the trained network.
//!
//! Two programs add the same numbers in another order, so the last digits differ: by more, the larger the numbers are
//! that cancel each other. What counts is what users see: the cluster and its probability.

use dtkc_onnx::{Layer, Network, Parity};

/// A probability may always differ by so much.
const TOLERANCE: f64 = 1e-5;
/// It may differ by so much for each unit of size of the sums that go into the softmax: 32-bit numbers have a relative
/// precision of 6e-8, features come out of some ten layers, and a probability moves by at most half of what two sums do.
/// Networks of a few steps, whose layers are not balanced yet, were seen at 3e-6; a graph that is wrong is off by far more.
const PER_SIZE: f64 = 1e-5;
/// Where the two largest probabilities are closer than this, either may win.
const NEAR_TIE: f64 = 1e-4;

/// What both programs said about one item.
#[derive(Debug, Clone)]
pub struct Pair<'a> {
    /// The item's number in its dataset.
    pub item: usize,
    /// Probabilities of the trained network.
    pub expected: Vec<f64>,
    /// Probabilities of the model file.
    pub found: &'a [f32],
    /// The cluster of the model file.
    pub cluster: i64,
    /// How large the sums are that go into the softmax.
    pub size: f64,
}

/// Compares item by item; `Err` says where they differ.
pub fn judge<'a>(pairs: impl Iterator<Item = Pair<'a>>) -> Result<Parity, String> {
    let mut parity = Parity { images: 0, max_difference: 0.0, differing_clusters: 0 };
    for Pair { item, expected, found, cluster, size } in pairs {
        if found.len() != expected.len() {
            return Err(format!("in the number of clusters: {} instead of {}", found.len(), expected.len()));
        }
        let tolerance = TOLERANCE.max(PER_SIZE * size);
        for (id, (&a, &b)) in expected.iter().zip(found).enumerate() {
            let difference = (a - f64::from(b)).abs();
            if difference.is_nan() || difference > tolerance {
                return Err(format!("by {difference:.1e} (item {item}, cluster {id}: {b} instead of {a})"));
            }
            parity.max_difference = parity.max_difference.max(difference);
        }
        let (best, second) = top_two(&expected);
        if cluster != best as i64 {
            if expected[best] - expected[second] > NEAR_TIE.max(4.0 * tolerance) {
                return Err(format!("in the cluster of item {item}: {cluster} instead of {best}"));
            }
            parity.differing_clusters += 1;
        }
        parity.images += 1;
    }
    Ok(parity)
}

/// How large the sums of the last layer are for an embedding: the largest sum of the sizes of what is added. Student's t
/// moves by less than the embedding does, whose own numbers then are what counts.
pub fn size(network: &Network, embedding: impl Iterator<Item = f32> + Clone) -> f64 {
    let Some((weight, bias)) = network.layers.iter().rev().find_map(|layer| match layer {
        Layer::Dense { weight, bias } => Some((weight, bias)),
        _ => None,
    }) else {
        return 0.0;
    };
    if let [.., before, _, Layer::Embedding, Layer::StudentT { .. }] = network.layers.as_slice() {
        let reach = embedding.map(|x| f64::from(x).abs()).max_by(f64::total_cmp).unwrap_or(0.0);
        // SpectralNet: large weights make outputs orthonormal that are nearly alike. A tangent is at most 1.
        let column = |c: usize| weight.data.iter().skip(c).step_by(bias.len()).map(|w| f64::from(w.abs())).sum::<f64>();
        let sums = (0..bias.len()).map(column).max_by(f64::total_cmp).unwrap_or(0.0);
        return if matches!(before, Layer::Tanh) { reach.max(sums) } else { reach };
    }
    let sum = |cluster: usize| {
        let column = weight.data.iter().skip(cluster).step_by(bias.len());
        let products = column.zip(embedding.clone()).map(|(w, x)| f64::from(w * x).abs());
        products.sum::<f64>() + f64::from(bias[cluster]).abs()
    };
    (0..bias.len()).map(sum).max_by(f64::total_cmp).unwrap_or(0.0)
}

fn top_two(row: &[f64]) -> (usize, usize) {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    (order[0], *order.get(1).unwrap_or(&order[0]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_item::{ImageShape, ItemShape};
    use dtkc_onnx::Weights;

    fn pair(expected: [f64; 3], found: &[f32], cluster: i64, size: f64) -> Pair<'_> {
        Pair { item: 7, expected: expected.to_vec(), found, cluster, size }
    }

    #[test]
    fn last_digits_may_differ_and_more_where_large_numbers_cancel() {
        let found = [0.60003, 0.29997, 0.1];
        let judged = |size| judge(std::iter::once(pair([0.6, 0.3, 0.1], &found, 0, size)));
        assert!(judged(1.0).unwrap_err().starts_with("by 3.0e-5 (item 7, cluster 0"));
        let parity = judged(50.0).unwrap();
        assert!((parity.max_difference - 3e-5).abs() < 1e-6 && parity.differing_clusters == 0);
    }

    #[test]
    fn another_cluster_is_a_difference_unless_it_is_a_tie() {
        let found = [0.6, 0.3, 0.1];
        let other = judge(std::iter::once(pair([0.6, 0.3, 0.1], &found, 1, 1.0))).unwrap_err();
        assert_eq!(other, "in the cluster of item 7: 1 instead of 0");
        let found = [0.45, 0.45, 0.1];
        let tie = judge(std::iter::once(pair([0.450_001, 0.449_999, 0.1], &found, 1, 1.0))).unwrap();
        assert_eq!((tie.images, tie.differing_clusters), (1, 1));
    }

    #[test]
    fn something_that_is_no_number_is_a_difference() {
        assert!(judge(std::iter::once(pair([0.6, 0.3, 0.1], &[f32::NAN, 0.3, 0.1], 0, 1e9))).is_err());
        assert!(judge(std::iter::once(pair([0.6, 0.3, 0.1], &[], 0, 1e9))).is_err());
        assert!(judge(std::iter::once(pair([f64::NAN, 0.3, 0.1], &[0.6, 0.3, 0.1], 0, 1e9))).is_err());
    }

    #[test]
    fn the_size_counts_what_is_added_and_not_what_is_left() {
        let dense = Layer::Dense { weight: Weights::new([2, 2], vec![100.0, 1.0, -100.0, 1.0]), bias: vec![0.5, 0.0] };
        let input = ItemShape::Image(ImageShape { height: 1, width: 1, channels: 1 });
        let network = Network { input, layers: vec![Layer::Embedding, dense, Layer::Softmax] };
        assert_eq!(size(&network, [2.0, 2.0].into_iter()), 400.5);
    }

    #[test]
    fn before_students_t_the_size_is_that_of_the_embedding() {
        let dense = Layer::Dense { weight: Weights::new([2, 2], vec![100.0, 1.0, -90.0, 1.0]), bias: vec![0.0, 0.0] };
        let head = [Layer::Embedding, Layer::StudentT { centres: Weights::new([2, 2], vec![0.0; 4]) }];
        let input = ItemShape::Image(ImageShape { height: 1, width: 1, channels: 1 });
        let with = |before: Layer| {
            let layers = [vec![before, dense.clone()], head.to_vec()].concat();
            size(&Network { input, layers }, [3.0, -7.0].into_iter())
        };
        assert_eq!(with(Layer::Relu), 7.0);
        assert_eq!(with(Layer::Tanh), 190.0, "what is added before the embedding, not what is left of it");
    }

    #[test]
    fn the_two_largest_are_found() {
        assert_eq!(top_two(&[0.1, 0.5, 0.4]), (1, 2));
        assert_eq!(top_two(&[0.5, 0.5]), (0, 1));
    }
}
