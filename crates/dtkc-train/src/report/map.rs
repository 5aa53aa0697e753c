//! The map of the embedding.

use dtkc_dataset::Dataset;
use dtkc_map::{Graph, Pca, Plan, layout};
use dtkc_methods::kmeans::Points;
use dtkc_methods::nearest::Neighbours;
use dtkc_observe::Observer;
use dtkc_report::Map;

use super::agree::Agreed;
use super::items::Seen;
use super::labels::Classes;
use crate::error::TrainError;

/// Axes along which neighbours are looked for: an embedding of clusters has few directions that matter, and every one costs.
const AXES: usize = 24;
/// Neighbours of a point.
const NEIGHBOURS: usize = 15;
/// Fewest points that have a map of neighbours.
const FEWEST: usize = 10;
/// Seed of the map: the same run gives the same page.
const SEED: u64 = 1;
/// Names that are read at a time.
const READ: usize = 4096;

/// Where the sampled items lie, and all that is told about each.
pub(super) fn map(
    seen: &Seen,
    agreed: &Agreed,
    classes: Option<&Classes>,
    dataset: &Dataset,
    observer: &dyn Observer,
) -> Result<Option<Map>, TrainError> {
    if seen.sample.is_empty() {
        return Ok(None);
    }
    let pca = Pca::of(&seen.embedding, seen.width, AXES);
    let along = pca.project(&seen.embedding);
    let axes = axes(&along, pca.len(), seen.sample.len());
    let near = near(&along, pca.len(), &axes, observer)?;
    let at = |item: &u32| *item as usize;
    let consensus = match agreed.items.is_empty() {
        true => Vec::new(),
        false => seen.sample.iter().map(|item| agreed.items.get(item).copied()).collect(),
    };
    let labels = classes.map_or_else(Vec::new, |classes| {
        let places: Vec<i64> = classes.names.keys().copied().collect();
        let place =
            |item: &u32| places.binary_search(&classes.labels[at(item)]).ok().and_then(|p| u16::try_from(p).ok());
        seen.sample.iter().map(place).collect()
    });
    Ok(Some(Map {
        of: seen.len(),
        items: seen.sample.clone(),
        axes,
        shares: [pca.share(0), pca.share(1)],
        near,
        clusters: seen.sample.iter().map(|item| seen.clusters[at(item)]).collect(),
        seconds: seen.sample.iter().map(|item| seen.seconds[at(item)]).collect(),
        confidence: seen.sample.iter().map(|item| seen.confidence[at(item)]).collect(),
        consensus,
        labels,
        label_names: classes.map_or_else(Vec::new, |classes| classes.names.values().cloned().collect()),
        names: names(seen, dataset)?,
        tiles: seen.tiles.clone(),
    }))
}

/// The first two axes; 0 where there are fewer.
fn axes(along: &[f32], count: usize, n: usize) -> Vec<[f32; 2]> {
    if count == 0 {
        return vec![[0.0; 2]; n];
    }
    along.chunks_exact(count).map(|point| [point[0], point.get(1).copied().unwrap_or(0.0)]).collect()
}

/// The map of neighbours; empty where there are too few points or all are the same.
fn near(along: &[f32], width: usize, axes: &[[f32; 2]], observer: &dyn Observer) -> Result<Vec<[f32; 2]>, TrainError> {
    if axes.len() < FEWEST || width == 0 {
        return Ok(Vec::new());
    }
    let n = axes.len();
    // The search asks whether to stop once for every block of 1024 items.
    let blocks = n.div_ceil(1024) as u64;
    observer.begin("find neighbours", "blocks", Some(blocks));
    let asked = || {
        observer.advance(1);
        observer.stop()
    };
    let neighbours = Neighbours::find(&Points { values: along, width }, NEIGHBOURS, &asked)?;
    observer.end();
    let graph = Graph::of(neighbours.count, &neighbours.items, &neighbours.squares);
    let plan = Plan::for_points(n, SEED);
    let start: Vec<f32> = axes.iter().flatten().copied().collect();
    observer.begin("draw the map", "rounds", Some(plan.rounds as u64));
    let places = layout(&graph, &start, plan, observer);
    observer.end();
    places.ok_or(TrainError::Stopped)
}

/// The names of the sampled items; none where the dataset has none.
fn names(seen: &Seen, dataset: &Dataset) -> Result<Vec<String>, TrainError> {
    let mut names = Vec::new();
    if !dataset.has_paths() {
        return Ok(names);
    }
    for start in (0..dataset.len()).step_by(READ) {
        let end = (start + READ).min(dataset.len());
        let wanted = seen.sample.partition_point(|&item| (item as usize) < start)
            ..seen.sample.partition_point(|&item| (item as usize) < end);
        let read = dataset.paths(start..end)?.unwrap_or_default();
        names.extend(
            seen.sample[wanted].iter().map(|&item| read.get(item as usize - start).cloned().unwrap_or_default()),
        );
    }
    Ok(names)
}
