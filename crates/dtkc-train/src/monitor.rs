//! What is watched during an epoch: the loss by term, how clusters are used, and signs of collapse.

use std::collections::BTreeMap;

use dtkc_core::{LossValues, NamedArray, Values};
use dtkc_methods::Method;

/// Sums over the steps of one epoch. Its whole content can be saved and restored, so that an epoch that was
/// interrupted in its middle ends in the same figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitor {
    clusters: usize,
    images: u64,
    loss: f64,
    terms: BTreeMap<String, f64>,
    entropy: f64,
    /// Images in each cluster.
    counts: Vec<u64>,
    /// Image and cluster, in the order in which they were seen.
    assignments: Vec<(u32, u32)>,
    skipped: u64,
}

/// The use of clusters in one epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// Clusters with at least one image.
    pub used: usize,
    /// Mean entropy of the memberships, divided by ln k.
    pub entropy: f64,
    /// Smallest share of a cluster.
    pub smallest: f64,
    /// Largest share of a cluster.
    pub largest: f64,
}

impl Monitor {
    /// Nothing seen yet.
    pub fn new(clusters: usize) -> Self {
        Self {
            clusters,
            images: 0,
            loss: 0.0,
            terms: BTreeMap::new(),
            entropy: 0.0,
            counts: vec![0; clusters],
            assignments: Vec::new(),
            skipped: 0,
        }
    }

    /// Number of clusters.
    pub fn clusters(&self) -> usize {
        self.clusters
    }

    /// Counts a step over `images` images.
    pub fn step(&mut self, images: usize, loss: &LossValues) {
        let weight = images as f64;
        self.images += images as u64;
        self.loss += weight * loss.total;
        for (name, value) in &loss.terms {
            // Not `entry`, which would copy the name at every step.
            match self.terms.get_mut(name) {
                Some(sum) => *sum += weight * value,
                None => drop(self.terms.insert(name.clone(), weight * value)),
            }
        }
    }

    /// Counts a step that was not finite and changed nothing.
    pub fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Counts the memberships (`[n, k]`, row-major) of the images `indices`.
    pub fn memberships(&mut self, indices: &[usize], membership: &[f32]) {
        for (&index, row) in indices.iter().zip(membership.chunks_exact(self.clusters)) {
            let cluster = argmax(row);
            self.counts[cluster] += 1;
            self.assignments.push((index as u32, cluster as u32));
            self.entropy += row.iter().filter(|&&p| p > 0.0).map(|&p| -f64::from(p) * f64::from(p).ln()).sum::<f64>();
        }
    }

    /// Mean loss per image; infinite when no step was finite.
    pub fn loss(&self) -> f64 {
        if self.images == 0 { f64::INFINITY } else { self.loss / self.images as f64 }
    }

    /// Mean of every term.
    pub fn terms(&self) -> BTreeMap<String, f64> {
        self.terms.iter().map(|(name, sum)| (name.clone(), sum / self.images.max(1) as f64)).collect()
    }

    /// Steps that were skipped.
    pub fn skipped(&self) -> usize {
        self.skipped as usize
    }

    /// Image and cluster of everything seen.
    pub fn assignments(&self) -> &[(u32, u32)] {
        &self.assignments
    }

    /// How the clusters were used.
    pub fn usage(&self) -> Usage {
        let images = self.assignments.len().max(1) as f64;
        let share = |count: Option<&u64>| count.map_or(0.0, |&c| c as f64 / images);
        Usage {
            used: self.counts.iter().filter(|&&c| c > 0).count(),
            entropy: self.entropy / images / (self.clusters as f64).ln(),
            smallest: share(self.counts.iter().min()),
            largest: share(self.counts.iter().max()),
        }
    }

    /// The content as arrays of a checkpoint.
    pub fn save(&self) -> Vec<NamedArray> {
        let array = |name: &str, values: Values| NamedArray::list(format!("epoch.{name}"), values);
        let sums = vec![self.images as f64, self.loss, self.entropy, self.skipped as f64];
        let mut arrays = vec![array("sums", Values::F64(sums))];
        for (name, sum) in &self.terms {
            arrays.push(array(&format!("term.{name}"), Values::F64(vec![*sum])));
        }
        let flat: Vec<u32> = self.assignments.iter().flat_map(|&(index, cluster)| [index, cluster]).collect();
        arrays.push(array("assignments", Values::U32(flat)));
        arrays
    }

    /// The content of [`Monitor::save`] back; `None` when something is missing.
    pub fn restore(clusters: usize, arrays: &[NamedArray]) -> Option<Self> {
        let mut monitor = Self::new(clusters);
        for array in arrays {
            let Some(name) = array.name.strip_prefix("epoch.") else { continue };
            match (name, &array.values) {
                ("sums", Values::F64(sums)) => {
                    let &[images, loss, entropy, skipped] = sums.as_slice() else { return None };
                    (monitor.loss, monitor.entropy) = (loss, entropy);
                    (monitor.images, monitor.skipped) = (images as u64, skipped as u64);
                }
                ("assignments", Values::U32(flat)) => {
                    monitor.assignments = flat.as_chunks::<2>().0.iter().map(|&[i, c]| (i, c)).collect();
                    for &(_, cluster) in &monitor.assignments {
                        *monitor.counts.get_mut(cluster as usize)? += 1;
                    }
                }
                (name, Values::F64(sum)) => {
                    monitor.terms.insert(name.strip_prefix("term.")?.to_owned(), *sum.first()?);
                }
                _ => return None,
            }
        }
        Some(monitor)
    }
}

/// The position of the largest value; the first of equal ones.
pub fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (i, &value) in row.iter().enumerate() {
        if value > row[best] {
            best = i;
        }
    }
    best
}

/// Advice when an epoch's clusters look collapsed, else `None`.
pub fn collapse_advice(usage: &Usage, clusters: usize, method: Method) -> Option<String> {
    let remedy = match method {
        Method::Dtkc | Method::Ddc => {
            "try another seed or more --runs, a smaller --lr, a larger --batch, or --preset plus"
        }
        Method::Kmeans => "look whether the images differ (`dtkc-data preview`), or try another seed",
        Method::Spectral => "try more neighbours (--set neighbours=N) or a smaller --lr",
        _ => "try another seed or more --runs, a smaller --lr or a larger --batch",
    };
    if usage.largest > 0.9 {
        let share = usage.largest * 100.0;
        return Some(format!("one cluster holds {share:.0} % of the items; {remedy}"));
    }
    (usage.used * 2 <= clusters)
        .then(|| format!("only {} of {clusters} clusters are used; {remedy}, or ask for fewer --clusters", usage.used))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn filled() -> Monitor {
        let mut monitor = Monitor::new(2);
        monitor.step(3, &LossValues { total: 1.0, terms: vec![("a".into(), 0.75), ("b".into(), 0.25)] });
        monitor.step(1, &LossValues { total: 5.0, terms: vec![("a".into(), 4.0), ("b".into(), 1.0)] });
        monitor.skip();
        monitor.memberships(&[4, 2, 0, 1], &[1.0, 0.0, 0.5, 0.5, 0.2, 0.8, 0.9, 0.1]);
        monitor
    }

    #[test]
    fn means_are_per_image() {
        let monitor = filled();
        assert_eq!(monitor.loss(), 2.0);
        assert_eq!(monitor.terms()["a"], (3.0 * 0.75 + 4.0) / 4.0);
        assert_eq!(monitor.skipped(), 1);
        assert_eq!(monitor.assignments(), [(4, 0), (2, 0), (0, 1), (1, 0)]);
    }

    #[test]
    fn usage_counts_clusters_and_entropy() {
        let usage = filled().usage();
        assert_eq!((usage.used, usage.smallest, usage.largest), (2, 0.25, 0.75));
        // NumPy: -(p * log2 p).sum(1).mean() of [[1,0],[.5,.5],[.2,.8],[.9,.1]] = 0.547731...
        assert!((usage.entropy - 0.547_731).abs() < 1e-6, "{}", usage.entropy);
    }

    #[test]
    fn it_survives_a_checkpoint() {
        let monitor = filled();
        assert_eq!(Monitor::restore(2, &monitor.save()).unwrap(), monitor);
        assert!(Monitor::restore(1, &monitor.save()).is_none(), "a cluster out of range is refused");
    }

    #[test]
    fn an_epoch_without_a_finite_step_has_no_loss() {
        assert_eq!(Monitor::new(2).loss(), f64::INFINITY);
    }

    #[test]
    fn collapse_is_noticed_with_advice() {
        let usage = |used, largest| Usage { used, entropy: 0.1, smallest: 0.0, largest };
        let collapse_advice = |usage: &Usage, clusters| collapse_advice(usage, clusters, Method::Dtkc);
        assert!(collapse_advice(&usage(10, 0.2), 10).is_none());
        assert!(
            collapse_advice(&usage(2, 0.6), 10)
                .is_some_and(|a| a.contains("2 of 10") && a.contains("--seed") || a.contains("--runs"))
        );
        assert!(collapse_advice(&usage(10, 0.95), 10).is_some_and(|a| a.contains("95 %") && a.contains("plus")));
        let others = Method::ALL.into_iter().filter(|method| !matches!(method, Method::Dtkc | Method::Ddc));
        for method in others {
            let advice = super::collapse_advice(&usage(10, 0.95), 10, method);
            assert!(advice.is_some_and(|advice| !advice.contains("plus")), "{method} has no such preset");
        }
    }
}
