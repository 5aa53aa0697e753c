//! What is compared, and for how long.

use std::fmt;
use std::str::FromStr;

use dtkc_methods::Method;

use crate::compare::Variant;
use crate::compare::pretraining::shares_pretraining;
use crate::error::TrainError;

/// The autoencoder of the paper's experiment: blocks as they are, mirrored, and nothing between. After its training it goes on
/// with clusters among its codes while it still reconstructs, so that both gradients can be compared.
const AUTOENCODER: &str = "dbc+loss.reconstruction=0.1+network.code=0";
/// What it is called.
const NAME: &str = "autoencoder";

/// A network to be looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    name: String,
    /// The cell that trains it.
    pub variant: Variant,
}

impl FromStr for Subject {
    type Err = TrainError;

    fn from_str(text: &str) -> Result<Self, TrainError> {
        let variant: Variant = if text == NAME { AUTOENCODER } else { text }.parse()?;
        match variant.method() {
            method @ (Method::Kmeans | Method::Spectral | Method::Spectralnet) => Err(TrainError::Setting(format!(
                "{method} has no blocks or layers that are trained for clusters alone; name {NAME}, dtkc, ddc, dec, idec, dcn or dbc"
            ))),
            _ => Ok(Self { name: text.to_owned(), variant }),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// How long they are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Epochs of those that cluster from the start, and of the pretraining of the others.
    pub epochs: u32,
    /// Epochs between two looks.
    pub every: u32,
}

impl Schedule {
    /// The settings that make it so, as `compare --set` takes them.
    pub fn sets(self, methods: &[Method]) -> Vec<String> {
        let of = |method: Method| match shares_pretraining(method).is_some() {
            true => vec![
                format!("{method}.pretraining.epochs={}", self.epochs),
                format!("{method}.plan.epochs={}", (self.epochs / 10).max(1)),
            ],
            false => vec![format!("{method}.plan.epochs={}", self.epochs)],
        };
        let every = format!("run.inside_every={}", self.every);
        std::iter::once(every).chain(methods.iter().copied().flat_map(of)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::compare::methods_of;

    #[test]
    fn an_autoencoder_is_a_cell_like_others() {
        let subjects: Vec<Subject> =
            ["autoencoder", "ddc", "dtkc+lambda=0.1", "dtkc"].map(|t| t.parse().unwrap()).to_vec();
        assert_eq!((subjects[0].to_string().as_str(), subjects[0].variant.method()), ("autoencoder", Method::Dbc));
        let variants: Vec<Variant> = subjects.iter().map(|subject| subject.variant.clone()).collect();
        let sets = Schedule { epochs: 40, every: 5 }.sets(&methods_of(&variants));
        let expected = [
            "run.inside_every=5",
            "dbc.pretraining.epochs=40",
            "dbc.plan.epochs=4",
            "ddc.plan.epochs=40",
            "dtkc.plan.epochs=40",
        ];
        assert_eq!(sets, expected);
        let error = "kmeans".parse::<Subject>().unwrap_err().to_string();
        assert!(error.contains("kmeans has no blocks") && error.contains("autoencoder"), "{error}");
        assert!("autoencodr".parse::<Subject>().is_err());
    }
}
