//! The best one-to-one matching of clusters to classes.

use crate::MetricError;
use crate::contingency::Contingency;
use pathfinding::prelude::{Matrix, kuhn_munkres};

/// The assignment is cubic: beyond this it would take minutes.
const MOST: usize = 2000;

/// For every cluster the class it is matched with; with more clusters than classes some have none.
pub(crate) fn best_matching(table: &Contingency) -> Result<Vec<Option<usize>>, MetricError> {
    let (classes, clusters) = (table.classes.len(), table.clusters.len());
    if classes.max(clusters) > MOST {
        return Err(MetricError::TooMany { classes, clusters, most: MOST });
    }
    // Rows must not outnumber columns.
    let clusters_are_rows = clusters <= classes;
    let mut weights = Matrix::new(clusters.min(classes), clusters.max(classes), 0i64);
    for &(class, cluster, count) in &table.cells {
        let at = if clusters_are_rows { (cluster, class) } else { (class, cluster) };
        weights[at] = count as i64;
    }
    let (_, columns) = kuhn_munkres(&weights);
    if clusters_are_rows {
        return Ok(columns.into_iter().map(Some).collect());
    }
    let mut matched = vec![None; clusters];
    columns.into_iter().enumerate().for_each(|(class, cluster)| matched[cluster] = Some(class));
    Ok(matched)
}

/// The class that every cluster is matched with under the best one-to-one matching, as pairs (cluster, class) by rising cluster. What
/// has no partner is left out.
pub fn matching(truth: &[i64], clusters: &[i64]) -> Result<Vec<(i64, i64)>, MetricError> {
    let table = Contingency::new(truth, clusters)?;
    let matched = best_matching(&table)?.into_iter().zip(&table.clusters);
    Ok(matched.filter_map(|(class, &cluster)| Some((cluster, table.classes[class?]))).collect())
}

/// Rows whose class is the one their cluster is matched with.
pub(crate) fn matched_rows(table: &Contingency) -> Result<u64, MetricError> {
    let matched = best_matching(table)?;
    Ok(table.cells.iter().filter(|(class, cluster, _)| matched[*cluster] == Some(*class)).map(|cell| cell.2).sum())
}
