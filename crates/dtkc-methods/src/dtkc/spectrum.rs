//! How many groups there are, by how a walk from neighbour to neighbour leaves them.

/// Part of the largest rate that is added to every one: rates that are all next to nothing differ by chance.
const FLOOR: f64 = 0.3;

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
    /// By how much the second is larger: the logarithm of their ratio, each with a part of the largest rate added.
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

    /// Looks at every number of groups from `first` to `last`; at none for which there are not enough eigenvalues.
    pub fn numbers(&self, first: usize, last: usize) -> Vec<Apart> {
        let floor = FLOOR * self.rates.last().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let number = |clusters: usize| {
            let (&leaving, &further) = (self.rates.get(clusters.checked_sub(1)?)?, self.rates.get(clusters)?);
            Some(Apart { clusters, leaving, further, score: ((further + floor) / (leaving + floor)).ln() })
        };
        (first..=last).filter_map(number).collect()
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
        let spectrum = Spectrum::of_eigenvalues(vec![1.0, 0.9, 0.5, 0.0]);
        let found = spectrum.numbers(1, 9);
        assert_eq!(found.iter().map(|number| number.clusters).collect::<Vec<_>>(), [1, 2, 3]);
        assert!((found[1].leaving - 0.1).abs() < 1e-12 && (found[1].further - 0.5).abs() < 1e-12);
        assert!((found[1].score - (0.8f64 / 0.4).ln()).abs() < 1e-12);
        assert_eq!(Spectrum::of_rates(spectrum.rates().to_vec()), spectrum);
    }

    #[test]
    fn nothing_apart_and_no_eigenvalues_are_no_reason_to_panic() {
        assert!(Spectrum::of_rates(vec![0.0; 5]).numbers(2, 9).iter().all(|number| number.score == 0.0));
        assert_eq!(Spectrum::of_rates(Vec::new()).numbers(0, 3), []);
    }
}
