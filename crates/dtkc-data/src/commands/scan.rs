//! One pass over all values.

use dtkc_cli::exit::Interrupted;
use dtkc_dataset::Dataset;
use dtkc_observe::Observer;
use serde::Serialize;

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 4 << 20;

/// What the values are like.
#[derive(Debug, Serialize)]
pub struct ValueRange {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub deviation: f64,
}

/// Reads everything once.
pub fn value_range(dataset: &Dataset, observer: &dyn Observer) -> anyhow::Result<ValueRange> {
    match dataset.image_shape() {
        Some(shape) => images(dataset, shape.len(), observer),
        None => sequences(dataset, observer),
    }
}

/// A histogram holds all that is asked for, exactly.
fn images(dataset: &Dataset, row_bytes: usize, observer: &dyn Observer) -> anyhow::Result<ValueRange> {
    let mut histogram = [0u64; 256];
    let step = (BLOCK_BYTES / row_bytes).max(1);
    for start in (0..dataset.len()).step_by(step) {
        stop_if_asked(observer)?;
        let range = start..dataset.len().min(start + step);
        observer.advance(range.len() as u64);
        for value in dataset.read_range(range)? {
            histogram[usize::from(value)] += 1;
        }
    }
    let count: u64 = histogram.iter().sum();
    let moment = |power: i32| {
        let sum: f64 = histogram.iter().zip(0u8..).map(|(&n, value)| n as f64 * f64::from(value).powi(power)).sum();
        sum / count as f64
    };
    let (mean, square) = (moment(1), moment(2));
    Ok(ValueRange {
        min: histogram.iter().position(|&n| n > 0).unwrap_or(0) as f64,
        max: histogram.iter().rposition(|&n| n > 0).unwrap_or(0) as f64,
        mean,
        deviation: (square - mean * mean).max(0.0).sqrt(),
    })
}

fn sequences(dataset: &Dataset, observer: &dyn Observer) -> anyhow::Result<ValueRange> {
    let (mut min, mut max, mut sum, mut squares, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0, 0.0);
    for index in 0..dataset.len() {
        stop_if_asked(observer)?;
        observer.advance(1);
        for value in dataset.read_sequence(index)? {
            let value = f64::from(value);
            (min, max) = (min.min(value), max.max(value));
            (sum, squares, count) = (sum + value, squares + value * value, count + 1.0);
        }
    }
    let mean = sum / count;
    Ok(ValueRange { min, max, mean, deviation: (squares / count - mean * mean).max(0.0).sqrt() })
}

/// Ends the work where the user has asked for it.
pub fn stop_if_asked(observer: &dyn Observer) -> anyhow::Result<()> {
    match observer.stop() {
        true => Err(Interrupted("nothing was written".into()).into()),
        false => Ok(()),
    }
}
