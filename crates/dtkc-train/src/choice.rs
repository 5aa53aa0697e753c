//! Which restart of a run is kept, without labels.

use std::collections::{BTreeMap, BTreeSet};

use dtkc_methods::Method;
use dtkc_metrics::{MetricError, Normalisation};
use serde::{Deserialize, Serialize};

use crate::restart::{Ended, Restart};
use crate::summary::{self, RestartFigures};

/// With fewer restarts, all of them agree with each other equally well.
const FEWEST: usize = 3;

/// What decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The lowest loss on batches that all restarts share.
    #[default]
    Loss,
    /// The highest mean NMI with the clusters of the other restarts.
    Agreement,
}

impl By {
    /// For people: what the kept restart has.
    pub fn words(self) -> &'static str {
        match self {
            Self::Loss => "lowest loss",
            Self::Agreement => "agrees most with the others",
        }
    }
}

/// The restart that is kept, and why; `None` when no loss is finite.
///
/// Restarts of DEC, IDEC and DBC set themselves their own targets, so that their losses measure different things: a restart
/// whose memberships are blurred has the lowest. There the one is kept that agrees most with the others.
pub fn choose(method: Method, figures: &[RestartFigures], restarts: &[Restart]) -> Option<(usize, By)> {
    let lowest = summary::best(figures)?.restart;
    if !matches!(method, Method::Dec | Method::Idec | Method::Dbc) {
        return Some((lowest, By::Loss));
    }
    let samples: Vec<(usize, Vec<i64>)> = restarts
        .iter()
        .filter(|restart| !matches!(restart.ended, None | Some(Ended::Pruned | Ended::Diverged)))
        .filter_map(|restart| {
            let sample = &restart.outcome.as_ref().filter(|outcome| outcome.loss.is_finite())?.sample;
            Some((restart.index, sample.iter().map(|&cluster| i64::from(cluster)).collect()))
        })
        .collect();
    Some(most_alike(&samples).map_or((lowest, By::Loss), |restart| (restart, By::Agreement)))
}

/// The number of the sample that is most like the others; of equal ones the first.
fn most_alike(samples: &[(usize, Vec<i64>)]) -> Option<usize> {
    let count = samples.first()?.1.len();
    if samples.len() < FEWEST || count == 0 || samples.iter().any(|(_, sample)| sample.len() != count) {
        return None;
    }
    let clusters: Vec<&[i64]> = samples.iter().map(|(_, sample)| sample.as_slice()).collect();
    let sums: Vec<f64> = agreement(&clusters).ok()?.iter().map(|row| row.iter().sum()).collect();
    let best = (0..sums.len()).reduce(|best, next| if sums[next] > sums[best] { next } else { best })?;
    Some(samples[best].0)
}

/// NMI of every pair of clusterings of the same items.
pub fn agreement(samples: &[&[i64]]) -> Result<Vec<Vec<f64>>, MetricError> {
    let mut nmi = vec![vec![1.0; samples.len()]; samples.len()];
    for (a, one) in samples.iter().enumerate() {
        for (b, other) in samples.iter().enumerate().take(a) {
            let value = dtkc_metrics::nmi(one, other, Normalisation::Arithmetic)?;
            (nmi[a][b], nmi[b][a]) = (value, value);
        }
    }
    Ok(nmi)
}

/// How many of the clusters of a clustering no other one of the same items has, by more than half of the items of both together.
pub fn alone(clusters: &[i64], others: &[&[i64]]) -> usize {
    let sizes = counts(clusters.iter().copied());
    let mut shared = BTreeSet::new();
    for other in others.iter().filter(|other| other.len() == clusters.len()) {
        let their_sizes = counts(other.iter().copied());
        let both = counts(clusters.iter().copied().zip(other.iter().copied()));
        let are_one =
            |&(&(own, theirs), &common): &(&(i64, i64), &usize)| 3 * common > sizes[&own] + their_sizes[&theirs];
        shared.extend(both.iter().filter(are_one).map(|((own, _), _)| *own));
    }
    sizes.len() - shared.len()
}

fn counts<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_restart_that_others_agree_with_is_kept() {
        let samples = [
            (0, vec![0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
            (2, vec![0, 0, 0, 1, 1, 1, 2, 2, 2, 2]),
            (3, vec![2, 2, 2, 0, 0, 1, 1, 1, 1, 1]),
            (4, vec![1, 1, 1, 2, 2, 2, 0, 0, 0, 0]),
        ];
        assert_eq!(most_alike(&samples), Some(2), "4 is the same with other numbers, and later");
        assert_eq!(most_alike(&samples[..2]), None, "two agree with each other equally well");
        let mut torn = samples.to_vec();
        torn[1].1.pop();
        assert_eq!(most_alike(&torn), None);
    }

    #[test]
    fn clusters_that_no_other_restart_has_are_counted() {
        let chosen = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2];
        // The first cluster under another name; the second and the third in one; both halves of the third apart.
        let joined = [7, 7, 7, 5, 5, 5, 5, 5, 5, 5];
        let halved = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3];
        assert_eq!(alone(&chosen, &[]), 3);
        assert_eq!(alone(&chosen, &[&joined]), 1, "four of seven are more than half");
        assert_eq!(alone(&chosen, &[&halved]), 1, "two of four are not");
        assert_eq!(alone(&chosen, &[&halved, &joined]), 0);
        assert_eq!(alone(&chosen, &[&chosen, &[1, 2]]), 0);
    }
}
