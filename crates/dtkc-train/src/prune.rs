//! Successive halving: restarts that are behind early are not trained to the end.

use serde::{Deserialize, Serialize};

/// How restarts are pruned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneConfig {
    /// Epochs that every restart gets before the first comparison; 0 for an eighth of all epochs, and where a method makes
    /// clusters anew, at least one more than it takes until it first did.
    pub first_epoch: usize,
    /// Share of the restarts that goes on after a comparison; the epochs between comparisons grow by its
    /// inverse, so that every round costs about the same.
    pub keep: f64,
    /// Restarts that are always trained to the end.
    pub finalists: usize,
}

impl Default for PruneConfig {
    fn default() -> Self {
        Self { first_epoch: 0, keep: 0.5, finalists: 2 }
    }
}

impl PruneConfig {
    /// Says what is wrong with the numbers, if anything.
    pub fn problem(&self) -> Option<String> {
        if !(self.keep > 0.0 && self.keep < 1.0) {
            return Some(format!("prune.keep is {}, but must lie between 0 and 1, for example 0.5", self.keep));
        }
        (self.finalists == 0).then(|| "prune.finalists is 0, but at least one restart must reach the end".into())
    }
}

/// A round: all restarts that are left are trained until `epoch`, then only the best `keep` go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Epochs that a restart has at the end of the round.
    pub epoch: usize,
    /// Restarts that go on.
    pub keep: usize,
}

/// The rounds for `restarts` restarts of `epochs` epochs. The last one always ends at `epochs` and keeps all
/// that reach it; without pruning it is the only one.
pub fn rounds(config: Option<&PruneConfig>, restarts: usize, epochs: usize, upheavals: &[usize]) -> Vec<Round> {
    let Some(config) = config else { return vec![Round { epoch: epochs, keep: restarts }] };
    let mut rounds = Vec::new();
    let first = match config.first_epoch {
        0 => epochs.div_ceil(8).max(upheavals.iter().min().map_or(0, |first| first + 1)),
        asked => asked,
    };
    let (mut alive, mut epoch) = (restarts, first as f64);
    while alive > config.finalists && epoch.round() < epochs as f64 {
        let keep = ((alive as f64 * config.keep).ceil() as usize).min(alive - 1).max(config.finalists).max(1);
        rounds.push(Round { epoch: epoch.round() as usize, keep });
        alive = keep;
        epoch /= config.keep;
    }
    rounds.push(Round { epoch: epochs, keep: alive });
    rounds
}

/// The `keep` restarts with the lowest loss, in their original order. A loss that is not finite is the worst;
/// of two equal ones the earlier restart stays.
pub fn survivors(losses: &[(usize, f64)], keep: usize) -> Vec<usize> {
    let rank = |loss: f64| if loss.is_finite() { loss } else { f64::INFINITY };
    let mut order = losses.to_vec();
    order.sort_by(|a, b| rank(a.1).total_cmp(&rank(b.1)).then(a.0.cmp(&b.0)));
    let mut kept: Vec<usize> = order.into_iter().take(keep).map(|(restart, _)| restart).collect();
    kept.sort_unstable();
    kept
}

/// Epochs that all rounds cost together, if no restart stops early.
pub fn total_epochs(rounds: &[Round], restarts: usize) -> usize {
    let (mut alive, mut before, mut total) = (restarts, 0, 0);
    for round in rounds {
        total += alive * (round.epoch - before);
        (alive, before) = (round.keep, round.epoch);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn on() -> PruneConfig {
        PruneConfig { first_epoch: 5, ..PruneConfig::default() }
    }

    #[test]
    fn the_first_comparison_follows_the_number_of_epochs() {
        let first = |epochs| rounds(Some(&PruneConfig::default()), 5, epochs, &[])[0].epoch;
        assert_eq!([first(100), first(8), first(3)], [13, 1, 1]);
    }

    #[test]
    fn the_first_comparison_waits_for_the_first_upheaval() {
        let first = |epochs, upheavals: &[usize]| rounds(Some(&PruneConfig::default()), 5, epochs, upheavals)[0].epoch;
        assert_eq!([first(10, &[3, 4, 5]), first(65, &[17, 25, 33]), first(100, &[2])], [4, 18, 13]);
        let asked = rounds(Some(&on()), 5, 100, &[25]);
        assert_eq!(asked[0].epoch, 5, "what somebody asks for is done");
    }

    #[test]
    fn without_pruning_there_is_one_round() {
        assert_eq!(rounds(None, 20, 100, &[]), [Round { epoch: 100, keep: 20 }]);
        assert_eq!(total_epochs(&rounds(None, 20, 100, &[]), 20), 2000);
    }

    #[test]
    fn twenty_restarts_cost_a_fifth() {
        let rounds = rounds(Some(&on()), 20, 100, &[]);
        let pairs: Vec<_> = rounds.iter().map(|s| (s.epoch, s.keep)).collect();
        assert_eq!(pairs, [(5, 10), (10, 5), (20, 3), (40, 2), (100, 2)]);
        // 20*5 + 10*5 + 5*10 + 3*20 + 2*60
        assert_eq!(total_epochs(&rounds, 20), 380);
    }

    #[test]
    fn few_restarts_or_epochs_are_not_pruned() {
        assert_eq!(rounds(Some(&on()), 2, 100, &[]), [Round { epoch: 100, keep: 2 }]);
        assert_eq!(rounds(Some(&on()), 1, 100, &[]), [Round { epoch: 100, keep: 1 }]);
        assert_eq!(rounds(Some(&on()), 20, 5, &[]), [Round { epoch: 5, keep: 20 }]);
    }

    #[test]
    fn the_lowest_losses_survive_in_order() {
        let losses = [(0, 0.5), (1, f64::NAN), (3, 0.1), (4, 0.5), (7, 0.2)];
        assert_eq!(survivors(&losses, 3), [0, 3, 7]);
        assert_eq!(survivors(&losses, 4), [0, 3, 4, 7]);
        assert_eq!(survivors(&losses, 9), [0, 1, 3, 4, 7]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(on().problem().is_none());
        assert!(PruneConfig { keep: 1.0, ..on() }.problem().is_some_and(|p| p.contains("keep")));
        assert!(PruneConfig { finalists: 0, ..on() }.problem().is_some());
    }

    proptest! {
        #[test]
        fn rounds_always_move_forward(
            restarts in 1usize..60, epochs in 1usize..300, first in 1usize..40, keep in 0.05f64..0.95, finalists in 1usize..5,
        ) {
            let config = PruneConfig { first_epoch: first, keep, finalists };
            let rounds = rounds(Some(&config), restarts, epochs, &[first]);
            prop_assert_eq!(rounds[rounds.len() - 1].epoch, epochs);
            prop_assert!(rounds.windows(2).all(|w| w[0].epoch <= w[1].epoch && w[0].keep >= w[1].keep));
            prop_assert!(rounds.iter().all(|s| s.keep >= 1 && s.keep >= finalists.min(restarts)));
            prop_assert!(total_epochs(&rounds, restarts) <= restarts * epochs);
        }
    }
}
