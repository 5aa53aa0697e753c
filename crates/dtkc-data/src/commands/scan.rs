//! One pass over all values.

use dtkc_cli::exit::Interrupted;
use dtkc_dataset::Dataset;
use dtkc_item::{FeatureShape, ItemShape, Items};
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
    /// Values of sequences that are no finite numbers; they count for nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// The same for every value of a step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<Moments>,
}

/// What the values of one dimension are like; `null` where there are none.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Moments {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub deviation: f64,
}

/// Reads everything once.
pub fn value_range(dataset: &Dataset, observer: &dyn Observer) -> anyhow::Result<ValueRange> {
    match dataset.shape() {
        ItemShape::Image(shape) => images(dataset, shape.len(), observer),
        ItemShape::Sequence { dim } => sequences(dataset, dim, observer),
        ItemShape::Features(shape) => features(dataset, shape, observer),
    }
}

/// All dimensions of the vectors together: a thousand of them tell people nothing.
fn features(dataset: &Dataset, shape: FeatureShape, observer: &dyn Observer) -> anyhow::Result<ValueRange> {
    let mut all = Sums::default();
    let step = (BLOCK_BYTES / (shape.len() * size_of::<f32>())).max(1);
    for start in (0..dataset.len()).step_by(step) {
        stop_if_asked(observer)?;
        let range = start..dataset.len().min(start + step);
        observer.advance(range.len() as u64);
        let Items::Features { values, .. } = dataset.items_of(range)? else { continue };
        let vectors = values.chunks_exact(shape.len()).flat_map(|item| &item[..shape.vectors()]);
        vectors.for_each(|value| all.add(f64::from(*value)));
    }
    let Moments { min, max, mean, deviation } = all.moments();
    Ok(ValueRange { min, max, mean, deviation, missing: Some(all.missing), dimensions: Vec::new() })
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
        missing: None,
        dimensions: Vec::new(),
    })
}

fn sequences(dataset: &Dataset, dim: usize, observer: &dyn Observer) -> anyhow::Result<ValueRange> {
    let steps = dataset.sequence_lengths().unwrap_or_default().iter().sum();
    let block = (BLOCK_BYTES / (dim * size_of::<f32>())).max(1);
    let mut sums = vec![Sums::default(); dim];
    for start in (0..steps).step_by(block) {
        stop_if_asked(observer)?;
        let range = start..steps.min(start + block);
        observer.advance(range.len() as u64);
        for step in dataset.read_steps(range)?.chunks_exact(dim) {
            sums.iter_mut().zip(step).for_each(|(sums, value)| sums.add(f64::from(*value)));
        }
    }
    let mut all = Sums::default();
    sums.iter().for_each(|sums| all.join(sums));
    let Moments { min, max, mean, deviation } = all.moments();
    let dimensions = sums.iter().map(Sums::moments).collect();
    Ok(ValueRange { min, max, mean, deviation, missing: Some(all.missing), dimensions })
}

/// Sums over the finite values of one dimension. They are taken around the first value, so that a large mean does not
/// hide a small deviation.
#[derive(Debug, Clone, Copy)]
struct Sums {
    around: f64,
    count: f64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
    missing: u64,
}

impl Default for Sums {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        Self { around: 0.0, count: 0.0, sum: 0.0, squares: 0.0, min, max, missing: 0 }
    }
}

impl Sums {
    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.missing += 1;
            return;
        }
        if self.count == 0.0 {
            self.around = value;
        }
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        let apart = value - self.around;
        (self.count, self.sum, self.squares) = (self.count + 1.0, self.sum + apart, self.squares + apart * apart);
    }

    /// Adds what another one has seen.
    fn join(&mut self, other: &Self) {
        if self.count == 0.0 {
            self.around = other.around;
        }
        let shift = other.around - self.around;
        self.squares += other.squares + 2.0 * shift * other.sum + other.count * shift * shift;
        self.sum += other.sum + other.count * shift;
        self.count += other.count;
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
        self.missing += other.missing;
    }

    fn moments(&self) -> Moments {
        let mean = self.sum / self.count;
        let deviation = (self.squares / self.count - mean * mean).max(0.0).sqrt();
        // Without any value all of them are NaN, which JSON writes as null.
        let known = |value: f64| if self.count > 0.0 { value } else { f64::NAN };
        Moments {
            min: known(self.min),
            max: known(self.max),
            mean: known(self.around + mean),
            deviation: known(deviation),
        }
    }
}

/// Ends the work where the user has asked for it.
pub fn stop_if_asked(observer: &dyn Observer) -> anyhow::Result<()> {
    match observer.stop() {
        true => Err(Interrupted("nothing was written".into()).into()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_agree_with_numpy() {
        // numpy: a = [1000001, 1000002, 1000004], b = [-3, 5]; mean and std of a, and of both together.
        let mut a = Sums::default();
        [1_000_001.0, f64::NAN, 1_000_002.0, 1_000_004.0].into_iter().for_each(|value| a.add(value));
        let mut b = Sums::default();
        [-3.0, 5.0, f64::INFINITY].into_iter().for_each(|value| b.add(value));
        let near = |x: f64, y: f64| assert!((x - y).abs() < 1e-9 * y.abs(), "{x} {y}");
        near(a.moments().mean, 1_000_002.333_333_333_3);
        near(a.moments().deviation, 1.247_219_128_924_647_2);
        let mut both = Sums::default();
        both.join(&a);
        both.join(&b);
        near(both.moments().mean, 600_001.8);
        near(both.moments().deviation, 489_898.601_761_384_9);
        assert_eq!((both.moments().min, both.moments().max, both.missing), (-3.0, 1_000_004.0, 2));
        assert!(Sums::default().moments().mean.is_nan());
    }
}
