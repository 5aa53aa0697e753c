//! How many groups there are, by what is lost when they are joined.

/// Part of what could be told about two groups that must be told, so that they are two. Half would be natural; on four sets of
/// ten classes whatever lies between .543 and .599 finds nine to eleven, half of it twelve on one (REPRODUCING.md).
const TWO: f64 = 0.57;

/// Groups that are joined one after the other, and what is left of what they tell about each other.
///
/// What the group of an item tells about the groups of those near it is mutual information. When two groups are joined some
/// of it is lost: all that sizes allow where no item of one is near the other, nothing where near items are of both alike. Two
/// groups are two where more than a good half of that is lost. So the number is where information less that part of the entropy
/// of sizes is largest; that asks neither for equal sizes nor for a gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Joinings {
    /// Mutual information and entropy of the sizes of 1, 2, 3 and more groups, nats.
    steps: Vec<[f64; 2]>,
}

/// What speaks for a number of groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    /// The number of groups.
    pub clusters: usize,
    /// What is lost when the two of them that are least apart are joined, as a part of what could be.
    pub apart: f64,
    /// The same with one more group.
    pub further: f64,
    /// Information less a part of the entropy of sizes, nats.
    pub score: f64,
}

impl Joinings {
    /// How much of the entropy of sizes decides which groups are joined first.
    pub(super) const UNEVEN: f64 = TWO;

    /// From mutual information and entropy of 1, 2, 3 and more groups.
    pub fn new(steps: Vec<[f64; 2]>) -> Self {
        Self { steps }
    }

    /// What it was made from.
    pub fn steps(&self) -> &[[f64; 2]] {
        &self.steps
    }

    /// Looks at every number of groups from `first` to `last`.
    pub fn numbers(&self, first: usize, last: usize) -> Vec<Apart> {
        let number = |clusters: usize| {
            let [information, entropy] = self.step(clusters);
            let score = information - TWO * entropy;
            Apart { clusters, apart: self.apart(clusters), further: self.apart(clusters + 1), score }
        };
        (first..=last).map(number).collect()
    }

    /// There are no more groups than were joined.
    fn step(&self, groups: usize) -> [f64; 2] {
        let place = groups.min(self.steps.len());
        place.checked_sub(1).map_or([0.0; 2], |place| self.steps[place])
    }

    fn apart(&self, groups: usize) -> f64 {
        let ([more, finer], [less, coarser]) = (self.step(groups), self.step(groups.saturating_sub(1)));
        if finer > coarser { (more - less) / (finer - coarser) } else { 0.0 }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn best(joinings: &Joinings) -> usize {
        let numbers = joinings.numbers(2, 9);
        numbers.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap().clusters
    }

    /// Equal groups, of which each one more tells so much of what it could.
    fn joinings(apart: &[f64]) -> Joinings {
        let mut steps = vec![[0.0, 0.0]];
        for (groups, part) in (2..).zip(apart) {
            let [information, entropy] = steps[groups - 2];
            let finer = f64::ln(groups as f64);
            steps.push([information + part * (finer - entropy), finer]);
        }
        Joinings::new(steps)
    }

    #[test]
    fn the_number_is_where_groups_are_apart() {
        assert_eq!(best(&joinings(&[0.95, 0.9, 0.8, 0.3, 0.2, 0.1])), 4);
        assert_eq!(best(&joinings(&[0.9, 0.7, 0.6, 0.58, 0.56, 0.45])), 5);
        // One pair that is near each other does not hide groups that are apart.
        assert_eq!(best(&joinings(&[0.9, 0.45, 0.9, 0.9, 0.3])), 5);
    }

    #[test]
    fn figures_by_hand() {
        let found = joinings(&[0.9, 0.6, 0.3]).numbers(2, 5);
        assert_eq!(found.iter().map(|number| number.clusters).collect::<Vec<_>>(), [2, 3, 4, 5]);
        let parts = [[0.9, 0.6], [0.6, 0.3], [0.3, 0.0], [0.0, 0.0]];
        for (number, [apart, further]) in found.iter().zip(parts) {
            assert!((number.apart - apart).abs() < 1e-12 && (number.further - further).abs() < 1e-12, "{number:?}");
        }
        assert!((found[0].score - (0.9 - TWO) * 2f64.ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(found[2].score, found[3].score, "there is no fifth group");
    }

    #[test]
    fn no_groups_are_no_reason_to_panic() {
        assert!(Joinings::new(Vec::new()).numbers(0, 9).iter().all(|number| number.score == 0.0));
    }
}
