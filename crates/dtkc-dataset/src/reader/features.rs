//! Features and what lies inside their network, item by item.

use std::ops::Range;

use dtkc_item::{FeatureShape, TapShape};

/// The values of a range of items: the vectors of each, and behind them what `inside` holds of it.
pub fn read(
    range: Range<usize>,
    shape: FeatureShape,
    vectors: &hdf5::Dataset,
    inside: &[hdf5::Dataset],
) -> hdf5::Result<Vec<f32>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let vectors = vectors.read_slice::<f32, _, ndarray::Ix3>((range.clone(), .., ..))?.into_raw_vec_and_offset().0;
    if inside.is_empty() {
        return Ok(vectors);
    }
    let mut parts = vec![(vectors, shape.vectors())];
    for (tap, dataset) in shape.taps.iter().zip(inside) {
        let values = match tap {
            TapShape::Vector(_) => {
                let values = dataset.read_slice::<f32, _, ndarray::Ix2>((range.clone(), ..))?;
                values.into_raw_vec_and_offset().0
            }
            TapShape::Maps { .. } => {
                let values = dataset.read_slice::<f32, _, ndarray::Ix4>((range.clone(), .., .., ..))?;
                values.into_raw_vec_and_offset().0
            }
        };
        parts.push((values, tap.len()));
    }
    let mut all = Vec::with_capacity(range.len() * shape.len());
    for item in 0..range.len() {
        for (values, width) in &parts {
            all.extend_from_slice(&values[item * width..][..*width]);
        }
    }
    Ok(all)
}
