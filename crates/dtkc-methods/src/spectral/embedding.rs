//! Spectral clustering of any rows: graph, eigenvectors, k-means.

use super::graph::{Affinity, Graph};
use super::subspace::{Leading, leading};
use crate::LearnError;
use crate::kmeans::{Clustering, KmeansOptions, Points, check_clusters, kmeans};
use crate::nearest::{Neighbours, Rows};

/// Starts, iterations and tolerance of the k-means of eigenvectors: scikit-learn's.
const STARTS: usize = 10;
const ITERATIONS: usize = 300;
const TOLERANCE: f64 = 1e-4;

/// Eigenvectors to all the digits that matter to anybody.
pub const EXACT: f64 = 1e-9;

/// How to cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectralOptions {
    /// Number of clusters, and of eigenvectors.
    pub clusters: usize,
    /// Nearest others that every item is joined with.
    pub neighbours: usize,
    /// What an edge weighs.
    pub affinity: Affinity,
    /// How well eigenvectors must fit: what is left of `A v - t v`.
    pub residual: f64,
    /// Seed of the first guess of the eigenvectors and of k-means.
    pub seed: u64,
}

/// Clusters of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectral {
    /// Leading eigenvalues of the normalised graph: 1 less those of its normalised Laplacian.
    pub eigenvalues: Vec<f64>,
    /// Where every item is in the space of the eigenvectors, `[n, clusters]`.
    pub embedding: Vec<f32>,
    /// k-means there.
    pub clustering: Clustering,
}

/// Spectral clustering as scikit-learn does it: `note` hears what is being done, `stop` is asked again and again.
pub fn spectral(
    rows: &dyn Rows,
    options: &SpectralOptions,
    note: &dyn Fn(&str),
    stop: &dyn Fn() -> bool,
) -> Result<Spectral, LearnError> {
    check_clusters(options.clusters, rows.len())?;
    note("nearest neighbours");
    let neighbours = Neighbours::find(rows, options.neighbours, stop)?;
    of_neighbours(&neighbours, options, note, stop)
}

/// Spectral clustering of items whose neighbours are known.
pub(crate) fn of_neighbours(
    neighbours: &Neighbours,
    options: &SpectralOptions,
    note: &dyn Fn(&str),
    stop: &dyn Fn() -> bool,
) -> Result<Spectral, LearnError> {
    let graph = Graph::new(neighbours, options.affinity);
    // Where nobody is apart from any neighbour, a part is one image again and again.
    let parts = graph.components();
    if parts < options.clusters && neighbours.squares.iter().all(|&square| square == 0.0) {
        return Err(LearnError::Unsuitable(too_alike(parts, options.clusters)));
    }
    of_graph(&graph, options, note, stop)
}

/// Spectral clustering of a graph.
fn of_graph(
    graph: &Graph,
    options: &SpectralOptions,
    note: &dyn Fn(&str),
    stop: &dyn Fn() -> bool,
) -> Result<Spectral, LearnError> {
    let parts = graph.components();
    if parts > options.clusters {
        return Err(LearnError::Unsuitable(format!(
            "the graph of {} neighbours falls into {parts} parts without a connection, more than {} clusters: use more \
             neighbours (--set neighbours={}) or ask for at least {parts} clusters (--clusters)",
            options.neighbours,
            options.clusters,
            2 * options.neighbours
        )));
    }
    note("eigenvectors");
    let Leading { values, vectors } = eigenvectors(graph, options, stop)?;
    let mut embedding: Vec<f32> = vectors.iter().map(|&value| value as f32).collect();
    if options.affinity == Affinity::Mutual {
        embedding.chunks_exact_mut(values.len().max(1)).for_each(to_length_one);
    }
    note("k-means of the eigenvectors");
    let means = KmeansOptions {
        clusters: options.clusters,
        starts: STARTS,
        iterations: ITERATIONS,
        tolerance: TOLERANCE,
        seed: options.seed,
    };
    let clustering = kmeans(Points { values: &embedding, width: options.clusters }, &means, stop)?;
    Ok(Spectral { eigenvalues: values, embedding, clustering })
}

/// Why items that are nearly all copies of each other cannot be clustered.
fn too_alike(different: usize, clusters: usize) -> String {
    match different {
        1 => "all images are the same once each is scaled to its own range, so there is nothing to cluster: look at them \
              with `dtkc-data preview`"
            .into(),
        _ => format!(
            "only {different} images are different once each is scaled to its own range, too few for {clusters} clusters: \
             ask for at most {different} (--clusters)"
        ),
    }
}

/// Scales a row, unless it is zero.
pub(crate) fn to_length_one(row: &mut [f32]) {
    let length = row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
}

/// The leading eigenvectors of the normalised graph, each item's divided by the root of its degree; the entry of largest
/// size of each is positive. Multiplied by the root of the mean degree and of n, so that they are about 1.
pub fn eigenvectors(graph: &Graph, options: &SpectralOptions, stop: &dyn Fn() -> bool) -> Result<Leading, LearnError> {
    let degrees = graph.degrees();
    let (n, mean) = (degrees.len() as f64, degrees.iter().sum::<f64>() / degrees.len() as f64);
    let mut found = leading(&graph.clone().normalised(), options, stop)?;
    let width = found.values.len();
    for (row, degree) in found.vectors.chunks_exact_mut(width).zip(&degrees) {
        row.iter_mut().for_each(|value| *value *= (n * mean / degree).sqrt());
    }
    for column in 0..width {
        let values = found.vectors.iter().skip(column).step_by(width);
        let largest = values.fold(0.0f64, |best, &value| if value.abs() > best.abs() { value } else { best });
        if largest < 0.0 {
            found.vectors.iter_mut().skip(column).step_by(width).for_each(|value| *value = -*value);
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Random;

    const OPTIONS: SpectralOptions =
        SpectralOptions { clusters: 2, neighbours: 6, affinity: Affinity::Connectivity, residual: EXACT, seed: 1 };

    /// Two rings, one inside the other, which k-means cannot tell apart.
    fn rings(n: usize, gap: f32) -> Vec<f32> {
        let mut random = Random::new(5, b"test....", 0);
        (0..n)
            .flat_map(|i| {
                let angle = random.unit() * std::f64::consts::TAU;
                let radius = (if i % 2 == 0 { 1.0 } else { 1.0 + gap }) + 0.02 * random.unit() as f32;
                [radius * angle.cos() as f32, radius * angle.sin() as f32]
            })
            .collect()
    }

    fn run(values: &[f32], options: SpectralOptions) -> Result<Spectral, LearnError> {
        spectral(&Points { values, width: 2 }, &options, &|_| (), &|| false)
    }

    #[test]
    fn rings_are_told_apart() {
        for affinity in [Affinity::Connectivity, Affinity::Rbf, Affinity::Mutual] {
            let found = run(&rings(400, 1.0), SpectralOptions { affinity, neighbours: 10, ..OPTIONS }).unwrap();
            let labels = &found.clustering.labels;
            assert!((0..400).all(|i| labels[i] == labels[i % 2]) && labels[0] != labels[1], "{affinity:?}");
            assert!((found.eigenvalues[0] - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn more_parts_than_clusters_are_told() {
        let values: Vec<f32> = (0..60).flat_map(|i| [(i % 4) as f32 * 100.0, i as f32 * 0.01]).collect();
        let error = run(&values, OPTIONS).unwrap_err().to_string();
        assert!(error.contains("falls into 4 parts") && error.contains("--set neighbours=12"), "{error}");
        let found = run(&values, SpectralOptions { clusters: 4, ..OPTIONS }).unwrap();
        let labels = found.clustering.labels;
        assert!((0..60).all(|i| labels[i] == labels[i % 4]));
    }

    #[test]
    fn equal_items_and_too_many_clusters_end() {
        let error = run(&[0.5; 40], OPTIONS).unwrap_err().to_string();
        assert!(error.contains("all images are the same"), "{error}");
        let twice: Vec<f32> = (0..40).flat_map(|i| [(i % 2) as f32, 0.0]).collect();
        let error = run(&twice, SpectralOptions { clusters: 3, ..OPTIONS }).unwrap_err().to_string();
        assert!(error.contains("only 2 images are different") && error.contains("for 3 clusters"), "{error}");
        assert!(run(&twice, OPTIONS).is_ok());
        let error = run(&[0.5; 4], SpectralOptions { clusters: 3, ..OPTIONS }).unwrap_err().to_string();
        assert!(error.contains("2 items cannot fill 3 clusters"), "{error}");
    }
}
