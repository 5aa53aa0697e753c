//! The ranking for people.

use std::fmt::Write as _;

use super::fine::CLEAR;
use super::{Figures, Trial};

/// Scores of runs that differ by less than this are as good as each other.
const CLOSE: f64 = 0.02;
/// The same for what groups tell: a tenth of what joining two of ten equal groups that are half apart costs.
const CLOSELY: f64 = 0.007;

/// Every number with its score, best first.
pub fn table(trials: &[Trial]) -> String {
    let mut out = match trials.first().map(|trial| trial.figures) {
        Some(Figures::Apart { .. }) => String::from("clusters  score  apart  with one more\n"),
        _ => String::from("clusters  score  stability  silhouette  used\n"),
    };
    for (place, Trial { clusters, score, figures }) in trials.iter().enumerate() {
        let mark = if place == 0 { '*' } else { ' ' };
        // Writing to a string cannot fail.
        let _ = write!(out, "{mark}{clusters:>7}  {score:>5.3}  ");
        let _ = match figures {
            Figures::Runs { stability, silhouette, used_clusters } => {
                writeln!(out, "{stability:>9.3}  {silhouette:>10.3}  {used_clusters:>4}")
            }
            Figures::Apart { apart, further } => writeln!(out, "{apart:>5.3}  {further:>13.3}"),
        };
    }
    out
}

/// What was chosen, and how sure that is; empty for no trials.
pub fn sentence(trials: &[Trial]) -> String {
    let Some(best) = trials.first() else { return String::new() };
    let chosen = format!("{} clusters are taken", best.clusters);
    let Some(second) = trials.get(1) else { return chosen };
    let lead = best.score - second.score;
    let close = if matches!(best.figures, Figures::Apart { .. }) { CLOSELY } else { CLOSE };
    let sure = match lead < close {
        true => format!("{} are nearly as good (scores {:.3} and {:.3})", second.clusters, best.score, second.score),
        false => format!("the second best, {}, are {lead:.3} behind", second.clusters),
    };
    let doubt = if stands_out(best) { "" } else { "No number stands out, the images merge gradually: " };
    format!("{doubt}{chosen}; {sure}. Give --clusters K to have another number.")
}

/// Whether the number was taken because it stands out, and not for want of one that does.
fn stands_out(best: &Trial) -> bool {
    match best.figures {
        Figures::Runs { .. } => true,
        Figures::Apart { apart, further } => apart - further >= CLEAR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranking_marks_the_first() {
        let figures = Figures::Runs { stability: 0.4, silhouette: 0.6, used_clusters: 3 };
        let trial = |clusters, score| Trial { clusters, score, figures };
        let text = table(&[trial(10, 0.75), trial(9, 0.5)]);
        assert!(text.contains("*     10  0.750      0.400       0.600     3"), "{text}");
    }

    #[test]
    fn groups_have_figures_of_their_own_and_the_sentence_says_how_sure_it_is() {
        let figures = Figures::Apart { apart: 0.75, further: 0.4 };
        let trial = |clusters, score| Trial { clusters, score, figures };
        let text = table(&[trial(10, 0.75), trial(9, 0.5)]);
        assert!(text.contains("*     10  0.750  0.750          0.400"), "{text}");
        assert_eq!(
            sentence(&[trial(10, 0.75), trial(9, 0.5)]),
            "10 clusters are taken; the second best, 9, are 0.250 behind. Give --clusters K to have another number."
        );
        let close = sentence(&[trial(10, 0.75), trial(9, 0.745)]);
        assert!(close.contains("9 are nearly as good (scores 0.750 and 0.745)"), "{close}");
        let gradual = |clusters, score| Trial {
            figures: Figures::Apart { apart: 0.52, further: 0.48 },
            ..trial(clusters, score)
        };
        let text = sentence(&[gradual(8, 0.09), gradual(7, 0.05)]);
        assert!(text.starts_with("No number stands out, the images merge gradually: 8 clusters are taken"), "{text}");
        assert_eq!(sentence(&[]), "");
    }
}
