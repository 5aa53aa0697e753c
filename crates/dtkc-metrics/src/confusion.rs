//! Which class went to which cluster, as a table to read.

use crate::MetricError;
use crate::contingency::Contingency;
use crate::matching::best_matching;
use ndarray::Array2;
use serde::{Serialize, Serializer};
use std::fmt;

/// Widest table that is printed as a matrix; larger ones are printed as a list.
const MOST_COLUMNS: usize = 20;
/// Clusters named per class in that list.
const LISTED: usize = 3;

/// Counts of images by class (rows) and cluster (columns).
///
/// Columns are ordered so that matched pairs stand on the diagonal: what is off it is confused. `Display` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confusion {
    /// Labels of the rows, ascending.
    pub classes: Vec<i64>,
    /// Clusters of the columns: first those matched with a class, in its order, then the rest.
    pub clusters: Vec<i64>,
    /// Counts, `[classes, clusters]`.
    #[serde(serialize_with = "rows")]
    pub counts: Array2<u64>,
    /// For every column the class that it is matched with.
    pub matched: Vec<Option<i64>>,
    /// Names of the classes, by label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
}

fn rows<S: Serializer>(counts: &Array2<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(counts.rows().into_iter().map(|row| row.to_vec()))
}

/// The confusion matrix of labels and clusters.
pub fn confusion(truth: &[i64], clusters: &[i64]) -> Result<Confusion, MetricError> {
    let table = Contingency::new(truth, clusters)?;
    let matching = best_matching(&table)?;
    let mut order: Vec<usize> = (0..table.clusters.len()).collect();
    order.sort_by_key(|&cluster| (matching[cluster].unwrap_or(usize::MAX), cluster));
    let mut column = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &cluster)| column[cluster] = at);
    let mut counts = Array2::zeros((table.classes.len(), order.len()));
    for &(class, cluster, count) in &table.cells {
        counts[[class, column[cluster]]] = count;
    }
    Ok(Confusion {
        matched: order.iter().map(|&c| matching[c].map(|class| table.classes[class])).collect(),
        clusters: order.into_iter().map(|c| table.clusters[c]).collect(),
        classes: table.classes,
        counts,
        names: Vec::new(),
    })
}

impl Confusion {
    /// The same with the names of the labels 0, 1, .. for printing.
    pub fn with_names(self, names: &[String]) -> Self {
        Self { names: names.to_vec(), ..self }
    }

    fn class_name(&self, class: i64) -> String {
        let name = usize::try_from(class).ok().and_then(|at| self.names.get(at));
        name.cloned().unwrap_or_else(|| class.to_string())
    }

    fn matrix(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.classes.iter().map(|&class| self.class_name(class)).collect();
        let corner = "class \\ cluster";
        let first = names.iter().map(|n| n.chars().count()).chain([corner.len()]).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.clusters.len())
            .map(|c| {
                let numbers = self.counts.column(c).iter().map(|n| n.to_string().len()).max().unwrap_or(1);
                numbers.max(self.clusters[c].to_string().len()).max(3)
            })
            .collect();
        write!(f, "{corner:<first$}")?;
        for (cluster, width) in self.clusters.iter().zip(&widths) {
            write!(f, "  {cluster:>width$}")?;
        }
        writeln!(f, "  {:>7}", "total")?;
        for (row, name) in names.iter().enumerate() {
            write!(f, "{name:<first$}")?;
            for (column, width) in widths.iter().enumerate() {
                match self.counts[[row, column]] {
                    0 => write!(f, "  {:>width$}", ".")?,
                    count => write!(f, "  {count:>width$}")?,
                }
            }
            writeln!(f, "  {:>7}", self.counts.row(row).sum())?;
        }
        Ok(())
    }

    fn list(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} classes, {} clusters; the largest clusters of each class:",
            self.classes.len(),
            self.clusters.len()
        )?;
        for (row, &class) in self.classes.iter().enumerate() {
            let counts = self.counts.row(row);
            let total = counts.sum();
            let mut order: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
            order.sort_by_key(|&c| std::cmp::Reverse(counts[c]));
            write!(f, "{:<12}{total:>8} images:", self.class_name(class))?;
            for &column in order.iter().take(LISTED) {
                let star = if self.matched[column] == Some(class) { "*" } else { "" };
                let part = 100.0 * counts[column] as f64 / total as f64;
                write!(f, "  {}{star} {part:.0}%", self.clusters[column])?;
            }
            writeln!(f, "{}", if order.len() > LISTED { "  .." } else { "" })?;
        }
        writeln!(f, "* matched with the class")
    }
}

impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clusters.len() <= MOST_COLUMNS {
            true => self.matrix(f),
            false => self.list(f),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn matched_pairs_are_on_the_diagonal() {
        let confusion = confusion(&[0, 0, 0, 1, 1, 2, 2], &[5, 5, 3, 3, 3, 0, 9]).unwrap();
        assert_eq!(confusion.clusters, [5, 3, 0, 9]);
        assert_eq!(confusion.matched, [Some(0), Some(1), Some(2), None]);
        let names = ["circle".to_string(), "square".to_string()];
        let text = confusion.with_names(&names).to_string();
        let expected = "\
class \\ cluster    5    3    0    9    total
circle             2    1    .    .        3
square             .    2    .    .        2
2                  .    .    1    1        2
";
        assert_eq!(text, expected);
    }

    #[test]
    fn many_clusters_print_as_a_list() {
        let truth: Vec<i64> = (0..300).map(|i| i % 30).collect();
        let clusters: Vec<i64> = (0..300).map(|i| if i % 10 == 0 { 0 } else { i % 30 }).collect();
        let text = confusion(&truth, &clusters).unwrap().to_string();
        assert!(text.starts_with("30 classes, 28 clusters"), "{text}");
        assert!(text.contains("0* 100%") && text.lines().count() == 32, "{text}");
    }

    #[test]
    fn serialises_as_rows() {
        let json = serde_json::to_value(confusion(&[0, 1], &[1, 0]).unwrap()).unwrap();
        assert_eq!(json["counts"], serde_json::json!([[1, 0], [0, 1]]));
    }
}
