//! How far items of the training set lie from each other, so that a model file can tell what is unlike all of them.
//!
//! Distances are those to the nearest of up to [`POINTS`] points that stand for the training set, after the spread within
//! clusters was made equal in all directions (`scaling`). Why so: on MNIST's network distances to one centre for each cluster with
//! a common covariance tell fewer outliers, and neighbours among thousands of items hardly more (REPRODUCING.md, "Outliers").
//! [`dtkc_onnx::Outlier`] says what a distance becomes.
//!
//! Every fourth item takes no part in choosing scaling and points, and only its distance counts: items that points were made
//! of are nearer to them than new ones are. What is held in memory is a sample of the items' embeddings, of [`ITEMS`] items and
//! [`VALUES`] numbers at most.

mod scaling;

use std::path::Path;

use dtkc_dataset::Dataset;
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_item::Items;
use dtkc_methods::Learner;
use dtkc_observe::Observer;
use dtkc_onnx::{Outlier, THRESHOLD, Weights};
use dtkc_ops::{Centres, add_rows};

use crate::error::TrainError;
use crate::monitor::argmax;
use crate::spread::spread;

/// Items that are looked at, at most, where nobody says otherwise.
pub const ITEMS: usize = 20_000;
/// Numbers of their embeddings, at most: 128 MiB.
pub const VALUES: usize = 1 << 25;
/// Points that stand for the training set, at most.
pub const POINTS: usize = 256;
/// Numbers of them, at most, unless there are more clusters: they are part of the file and multiplied with every item.
const POINT_VALUES: usize = 1 << 15;
/// Times that points are moved to the middle of what is nearest to them.
const ROUNDS: usize = 10;
/// Stretches between quantiles of distances.
const STRETCHES: usize = 32;
/// Items that go through a network at a time.
const CHUNK: usize = 120;
/// What is nearer than this part of the spread of all directions together is never far: 32-bit distances are no finer where
/// clusters are mere points.
const FINEST: f64 = 0.1;

/// What a network says about a sample of items.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Values of an embedding.
    pub width: usize,
    /// The embeddings, one after the other.
    pub embedding: Vec<f32>,
    /// The cluster of each.
    pub clusters: Vec<usize>,
}

impl Seen {
    /// Up to [`ITEMS`] items of a dataset, spread evenly over it, as a trained learner sees them.
    pub fn of_learner(
        learner: &dyn Learner,
        dataset: &Dataset,
        width: usize,
        observer: &dyn Observer,
    ) -> Result<Self, TrainError> {
        Self::collect(dataset, (width, ITEMS), observer, |seen, items| {
            let answers = learner.answers(&items);
            seen.embedding.extend(answers.embedding);
            seen.clusters.extend(answers.membership.chunks_exact(answers.clusters).map(argmax));
            Ok(())
        })
    }

    /// Up to `most` items as a model file sees them.
    pub fn of_model(
        runtime: &Runtime,
        model: &ModelFile,
        dataset: &Dataset,
        most: usize,
        observer: &dyn Observer,
    ) -> Result<Self, TrainError> {
        let mut session = Session::new(runtime, model, &SessionOptions::default())?;
        Self::collect(dataset, (model.embedding_size(), most), observer, |seen, items| {
            let answers = session.run_items(&items)?;
            seen.embedding.extend(answers.embedding.iter());
            seen.clusters.extend(answers.iter().map(|answer| answer.cluster));
            Ok(())
        })
    }

    fn collect(
        dataset: &Dataset,
        (width, most): (usize, usize),
        observer: &dyn Observer,
        mut add: impl FnMut(&mut Self, Items) -> Result<(), TrainError>,
    ) -> Result<Self, TrainError> {
        let most = most.min(VALUES / width.max(1)).max(1);
        let indices: Vec<usize> = spread(dataset.len(), most).collect();
        observer.begin("look at items", "items", Some(indices.len() as u64));
        let mut seen = Self { width, ..Self::default() };
        for part in indices.chunks(CHUNK) {
            if observer.stop() {
                observer.end();
                return Err(TrainError::Stopped);
            }
            add(&mut seen, dataset.items(part)?)?;
            observer.advance(part.len() as u64);
        }
        observer.end();
        Ok(seen)
    }

    fn len(&self) -> usize {
        self.clusters.len()
    }

    fn row(&self, item: usize) -> &[f32] {
        &self.embedding[item * self.width..][..self.width]
    }
}

/// Opens a dataset whose items the model takes.
pub fn dataset_for(model: &ModelFile, path: &Path) -> Result<Dataset, TrainError> {
    let dataset = Dataset::open(path)?;
    let (wanted, found) = (model.shape(), dataset.shape());
    match wanted == found {
        true => Ok(dataset),
        false => Err(TrainError::Mismatch(format!(
            "{} holds {found}, but the model takes {wanted}; import them again with that size",
            path.display()
        ))),
    }
}

/// What a model file needs to tell outliers by.
pub fn measure(seen: &Seen) -> Result<Outlier, TrainError> {
    if seen.len() == 0 || seen.embedding.iter().any(|value| !value.is_finite()) {
        let text =
            "the embedding of the training set holds something that is no number, so no distances can be measured";
        return Err(TrainError::Mismatch(format!("{text}; use an earlier checkpoint")));
    }
    let held_out = |item: usize| seen.len() >= 8 && item % 4 == 3;
    let (counted, used): (Vec<usize>, Vec<usize>) = (0..seen.len()).partition(|&item| held_out(item));
    let scaling = scaling::Scaling::of(seen, &used);
    let points = points(&scaling.apply(seen, &used), seen, &used);
    let counted = if counted.is_empty() { &used } else { &counted };
    let scaled = scaling.apply(seen, counted);
    let (mut labels, mut squares) = (vec![0; counted.len()], vec![0.0; counted.len()]);
    Centres::new(&points, seen.width).nearest(&scaled, &mut labels, &mut squares);
    let distances = squares.into_iter().map(|square| f64::from(square.max(0.0)).sqrt()).collect();
    Ok(Outlier {
        knots: knots(distances, seen.width),
        points: Weights::new([points.len() / seen.width, seen.width], points),
        scaling: scaling.matrix,
        shift: scaling.shift,
        items: counted.len() as u64,
    })
}

/// Points that stand for scaled items: k-means, begun with items of every cluster by its size, at least one of each, so that
/// no small cluster is called unlike all others.
fn points(scaled: &[f32], seen: &Seen, used: &[usize]) -> Vec<f32> {
    let width = seen.width;
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (place, &item) in used.iter().enumerate() {
        let cluster = seen.clusters[item];
        members.resize(members.len().max(cluster + 1), Vec::new());
        members[cluster].push(place);
    }
    let wanted = POINTS.min(POINT_VALUES / width).min(used.len() / 4);
    let share = |group: &Vec<usize>| (wanted * group.len() / used.len()).max(1);
    let begin = members.iter().filter(|group| !group.is_empty()).flat_map(|group| {
        let count = share(group);
        spread(group.len(), count).map(|at| group[at])
    });
    let mut points: Vec<f32> = begin.flat_map(|place| &scaled[place * width..][..width]).copied().collect();
    let (mut labels, mut squares) = (vec![0; used.len()], vec![0.0; used.len()]);
    for _ in 0..ROUNDS {
        Centres::new(&points, width).nearest(scaled, &mut labels, &mut squares);
        let mut sums = vec![0.0; points.len()];
        add_rows(scaled, width, &labels, &mut sums);
        let mut counts = vec![0usize; points.len() / width];
        labels.iter().for_each(|&label| counts[label as usize] += 1);
        for (at, (point, sum)) in points.iter_mut().zip(sums).enumerate() {
            if let count @ 1.. = counts[at / width] {
                *point = (sum / count as f64) as f32;
            }
        }
    }
    points
}

/// Quantiles at equal steps up to the threshold, between neighbours by straight lines. Equal ones are moved apart by next to
/// nothing, because a stretch needs a length.
fn knots(mut distances: Vec<f64>, width: usize) -> Vec<f32> {
    distances.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = share * (distances.len() - 1) as f64;
        let (low, high) = (distances[place.floor() as usize], distances[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    let finest = FINEST * (width as f64).sqrt();
    let last = quantile(f64::from(THRESHOLD)).max(finest);
    let mut knots = vec![0.0f32];
    let mut end = 0.0;
    for stretch in 1..=STRETCHES {
        let share = f64::from(THRESHOLD) * stretch as f64 / STRETCHES as f64;
        let knot = if stretch == STRETCHES { last } else { quantile(share) };
        end = knot.max(end + 1e-4 * last);
        knots.push(end as f32);
    }
    knots
}

#[cfg(test)]
mod tests;
