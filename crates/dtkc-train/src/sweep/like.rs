//! The paper's two sweeps, with its figures: best and mean ACC over 20 runs of each value.

use super::Axis;
use crate::compare::SetRecord;
use crate::compare::paper::recognise;

/// A sweep of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Like {
    /// The weight of the companion objectives, on MNIST.
    PaperLambda,
    /// The width of the kernels as a part of the median distance, on MNIST and USPS.
    PaperSigma,
}

/// A value, the ACC of the run with the lowest loss, the mean.
type Row = (&'static str, f64, f64);

const LAMBDA_MNIST: &[Row] = &[
    ("1", 0.823, 0.744),
    ("0.1", 0.838, 0.769),
    ("0.01", 0.943, 0.753),
    ("0.001", 0.875, 0.710),
    ("1e-4", 0.804, 0.726),
    ("1e-5", 0.889, 0.773),
    ("1e-6", 0.819, 0.749),
];
const SIGMA_MNIST: &[Row] = &[
    ("0.01", 0.809, 0.645),
    ("0.05", 0.688, 0.640),
    ("0.15", 0.805, 0.707),
    ("0.25", 0.855, 0.686),
    ("0.35", 0.724, 0.679),
    ("0.45", 0.836, 0.684),
];
const SIGMA_USPS: &[Row] = &[
    ("0.01", 0.623, 0.686),
    ("0.05", 0.675, 0.681),
    ("0.15", 0.703, 0.722),
    ("0.25", 0.751, 0.686),
    ("0.35", 0.723, 0.691),
    ("0.45", 0.823, 0.725),
];

impl Like {
    /// Runs of each point in the paper.
    pub const RUNS: u32 = 20;
    /// The preset that is the paper's text.
    pub const PRESET: &'static str = "paper";

    /// What varies.
    pub fn axis(self) -> Axis {
        let (key, rows) = match self {
            Self::PaperLambda => ("loss.lambda", LAMBDA_MNIST),
            Self::PaperSigma => ("loss.sigma", SIGMA_MNIST),
        };
        Axis { key: key.into(), values: rows.iter().map(|(value, ..)| (*value).to_owned()).collect() }
    }

    /// Best and mean ACC that the paper has for a value on a dataset.
    pub fn published(self, set: &SetRecord, value: &str) -> Option<(f64, f64)> {
        // A table of values has no place for a remark: only where the set is the paper's own.
        let known = recognise(set).ok().filter(|found| found.remark.is_none())?.known;
        let rows = match (self, known.name) {
            (Self::PaperLambda, "MNIST") => LAMBDA_MNIST,
            (Self::PaperSigma, "MNIST") => SIGMA_MNIST,
            (Self::PaperSigma, "USPS") => SIGMA_USPS,
            _ => return None,
        };
        let number = |text: &str| text.parse::<f64>().ok();
        rows.iter().find(|(known, ..)| number(known) == number(value)).map(|&(_, best, mean)| (best, mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_beside_the_values_that_they_belong_to() {
        let mnist = SetRecord { items: 60_000, classes: Some(10), ..SetRecord::named("mnist") };
        let usps = SetRecord { items: 9298, classes: Some(10), ..SetRecord::named("usps") };
        assert_eq!(Like::PaperLambda.published(&mnist, "0.01"), Some((0.943, 0.753)));
        assert_eq!(Like::PaperLambda.published(&mnist, "0.0001"), Some((0.804, 0.726)), "however it is written");
        assert_eq!(Like::PaperSigma.published(&usps, "0.45"), Some((0.823, 0.725)));
        assert_eq!(Like::PaperSigma.published(&mnist, "0.45"), Some((0.836, 0.684)));
        assert_eq!(Like::PaperLambda.published(&usps, "0.01"), None);
        assert_eq!(Like::PaperLambda.published(&SetRecord::named("mnist"), "0.01"), None, "another set of that name");
        assert_eq!(Like::PaperLambda.axis().values.len(), 7);
        assert_eq!(Like::PaperSigma.axis().key, "loss.sigma");
    }
}
