//! The methods there are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::SettingError;

/// A clustering method: what a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Deep Tensor Kernel Clustering: with companion objectives.
    Dtkc,
    /// Deep Divergence-based Clustering: the same without them.
    Ddc,
    /// k-means of the pixels, or of resampled sequences.
    Kmeans,
    /// Spectral clustering of the pixels, or of resampled sequences, learnt by a network.
    Spectral,
    /// Deep Embedded Clustering.
    Dec,
    /// Improved Deep Embedded Clustering: DEC that keeps its decoder.
    Idec,
    /// Deep Clustering Network: k-means and autoencoder together.
    Dcn,
    /// SpectralNet: a network that learns spectral clustering.
    Spectralnet,
    /// Discriminatively Boosted Clustering: DEC with convolutions.
    Dbc,
}

impl Method {
    /// What a run is where nobody says: companion objectives changed nothing that was measured (REPRODUCING.md), and cost time.
    pub const USUAL: Method = Method::Ddc;
    /// The same where companion objectives are asked for.
    pub const WITH_COMPANIONS: Method = Method::Dtkc;
    /// All methods.
    pub const ALL: [Method; 9] = [
        Method::Dtkc,
        Method::Ddc,
        Method::Kmeans,
        Method::Spectral,
        Method::Dec,
        Method::Idec,
        Method::Dcn,
        Method::Spectralnet,
        Method::Dbc,
    ];

    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Method::Dtkc => "dtkc",
            Method::Ddc => "ddc",
            Method::Kmeans => "kmeans",
            Method::Spectral => "spectral",
            Method::Dec => "dec",
            Method::Idec => "idec",
            Method::Dcn => "dcn",
            Method::Spectralnet => "spectralnet",
            Method::Dbc => "dbc",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        by_name("method", &Method::ALL, Method::name, text)
    }
}

/// The one of `all` that has this name.
pub(crate) fn by_name<T: Copy>(
    what: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
    given: &str,
) -> Result<T, SettingError> {
    all.iter().copied().find(|&one| name(one) == given).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|&one| name(one)).collect();
        SettingError::Name { what, given: given.into(), known: known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for method in Method::ALL {
            assert_eq!(method.name().parse::<Method>(), Ok(method));
            assert_eq!(serde_json::to_value(method).ok(), Some(method.name().into()));
        }
        let error = "dctk".parse::<Method>().map_err(|e| e.to_string());
        assert_eq!(
            error,
            Err("`dctk` is no method; there are dtkc, ddc, kmeans, spectral, dec, idec, dcn, spectralnet, dbc".into())
        );
    }
}
