//! How many groups there are, by how a walk from neighbour to neighbour leaves them.

/// The eigenvalues of a graph of neighbours, as distances from 1, smallest first. The k-th is about the probability with which
/// a step along an edge leaves the loosest of k groups; with as many groups as there are classes it is small, and a further
/// group cuts through what belongs together.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    rates: Vec<f64>,
}

/// What speaks for a number of groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    /// The number of groups.
    pub clusters: usize,
    /// Probability with which a step leaves the loosest of them.
    pub leaving: f64,
    /// The same with one more group.
    pub further: f64,
    /// By how much its root is larger than that of the first, as a part of the root of the largest rate. Ratios of rates find
    /// chance where all are next to nothing, differences the end of the range; roots are between both.
    pub score: f64,
}

impl Spectrum {
    /// From eigenvalues, largest first.
    pub fn of_eigenvalues(values: Vec<f64>) -> Self {
        Self { rates: values.into_iter().map(|value| (1.0 - value).max(0.0)).collect() }
    }

    /// From [`rates`](Self::rates).
    pub fn of_rates(rates: Vec<f64>) -> Self {
        Self { rates }
    }

    /// The distances from 1.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Looks at every number of groups from `first` to `last`.
    pub fn numbers(&self, first: usize, last: usize) -> Vec<Apart> {
        let largest = self.rates.last().copied().unwrap_or(0.0);
        // There are no more groups than items.
        let rate = |groups: usize| self.rates.get(groups.saturating_sub(1)).copied().unwrap_or(largest);
        let number = |clusters: usize| {
            let (leaving, further) = (rate(clusters), rate(clusters + 1));
            let score = (further.sqrt() - leaving.sqrt()) / largest.max(f64::MIN_POSITIVE).sqrt();
            Apart { clusters, leaving, further, score }
        };
        (first..=last).map(number).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn best(rates: &[f64]) -> usize {
        let numbers = Spectrum::of_rates(rates.to_vec()).numbers(2, 15);
        numbers.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap().clusters
    }

    #[test]
    fn the_number_is_where_groups_begin_to_be_left_often() {
        assert_eq!(best(&[0.0, 0.001, 0.002, 0.05, 0.06, 0.08, 0.1]), 3);
        // Rates next to nothing say nothing, however large their ratio.
        assert_eq!(best(&[0.0, 1e-12, 1e-7, 1e-4, 2e-4, 0.05, 0.06, 0.08]), 5);
        // What it gave for MNIST, from SciPy's eigenvalues.
        let digits = [0, 12, 20, 25, 32, 39, 54, 56, 66, 67, 143, 199, 228, 237, 248, 270];
        assert_eq!(best(&digits.map(|rate| f64::from(rate) * 1e-4)), 10);
    }

    #[test]
    fn figures_by_hand() {
        let spectrum = Spectrum::of_eigenvalues(vec![1.0, 0.99, 0.75, 0.0]);
        let found = spectrum.numbers(2, 5);
        assert_eq!(found.iter().map(|number| number.clusters).collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert!((found[0].leaving - 0.01).abs() < 1e-12 && (found[0].further - 0.25).abs() < 1e-12);
        for (number, expected) in found.iter().zip([0.4, 0.5, 0.0, 0.0]) {
            assert!((number.score - expected).abs() < 1e-12, "{number:?}");
        }
        assert_eq!(Spectrum::of_rates(spectrum.rates().to_vec()), spectrum);
    }

    #[test]
    fn nothing_apart_and_no_eigenvalues_are_no_reason_to_panic() {
        for rates in [vec![0.0; 5], Vec::new()] {
            assert!(Spectrum::of_rates(rates).numbers(0, 9).iter().all(|number| number.score == 0.0));
        }
    }
}
