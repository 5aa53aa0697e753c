//! The named starting points.

use super::{Settings, TrainPlan};
use crate::kernel::BandwidthRule;
use crate::loss::MembershipSum;
use crate::{AugmentConfig, ConfigError, LossConfig, NetworkConfig, OptimConfig, Schedule};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where the numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The paper's text.
    Paper,
    /// The code that the paper links to (DanielTrosten/DTKC).
    Authors,
    /// Its successor (DanielTrosten/tk-uco).
    TkUco,
    /// Ours.
    Plus,
}

/// With companion objectives or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Deep tensor kernel clustering: with companion objectives.
    Dtkc,
    /// Deep divergence-based clustering: the same without them.
    Ddc,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 4] = [Preset::Paper, Preset::Authors, Preset::TkUco, Preset::Plus];

    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Paper => "paper",
            Preset::Authors => "authors",
            Preset::TkUco => "tk-uco",
            Preset::Plus => "plus",
        }
    }
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 2] = [Method::Dtkc, Method::Ddc];

    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Method::Dtkc => "dtkc",
            Method::Ddc => "ddc",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let found = Preset::ALL.into_iter().find(|p| p.name() == text);
        found.ok_or_else(|| unknown("preset", text, Preset::ALL.map(Preset::name).as_slice()))
    }
}

impl FromStr for Method {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let found = Method::ALL.into_iter().find(|m| m.name() == text);
        found.ok_or_else(|| unknown("method", text, Method::ALL.map(Method::name).as_slice()))
    }
}

fn unknown(what: &'static str, given: &str, known: &[&str]) -> ConfigError {
    ConfigError::Name { what, given: given.into(), known: known.join(", ") }
}

impl Settings {
    /// A preset's numbers.
    pub fn preset(preset: Preset, method: Method) -> Settings {
        let lambda = match method {
            Method::Dtkc => 0.01,
            Method::Ddc => 0.0,
        };
        let settings = Settings {
            preset,
            method,
            network: NetworkConfig::default(),
            loss: paper_loss(lambda),
            optim: OptimConfig::adam(1e-4),
            augment: AugmentConfig::off(),
            plan: TrainPlan { epochs: 100, patience: 30, batch: 120, runs: 20, prune: false },
        };
        match preset {
            Preset::Paper => settings,
            Preset::Authors => authors(settings),
            Preset::TkUco => tk_uco(settings),
            Preset::Plus => plus(settings),
        }
    }
}

fn paper_loss(lambda: f64) -> LossConfig {
    LossConfig {
        bandwidth: BandwidthRule::Distance,
        sigma: 0.15,
        membership_sum: MembershipSum::Sum,
        separation: 1.0,
        orthogonality: 1.0,
        simplex: 1.0,
        lambda,
        consistency: 0.0,
        consistency_temperature: 1.0,
        mutual_information: 0.0,
        overclustering: 1.0,
        balance: 0.0,
        certainty: 0.0,
        self_label: 0.0,
        self_label_threshold: 0.95,
        self_label_start: 0.0,
        ramp: 0.0,
    }
}

fn authors(mut settings: Settings) -> Settings {
    settings.loss.bandwidth = BandwidthRule::Squared;
    settings.optim.lr = 1e-3;
    settings.optim.clip_norm = 10.0;
    settings
}

fn tk_uco(mut settings: Settings) -> Settings {
    settings.loss.bandwidth = BandwidthRule::Squared;
    settings.loss.sigma = 0.30;
    settings.loss.membership_sum = MembershipSum::Mean;
    settings.optim.lr = match settings.method {
        Method::Dtkc => 1e-4,
        Method::Ddc => 1e-3,
    };
    settings
}

fn plus(settings: Settings) -> Settings {
    let mut settings = authors(settings);
    settings.loss.membership_sum = MembershipSum::Mean;
    settings.loss.consistency = 1.0;
    // What ends most splits of one class into two clusters while two others share one: see REPRODUCING.md.
    settings.loss.mutual_information = 1.0;
    settings.optim.schedule = Schedule::Cosine;
    settings.optim.final_lr = 0.01;
    settings.augment = AugmentConfig::strong();
    // 120 images with two views each: mutual information is counted in k x k cells, and 60 images are too few for that.
    settings.plan.batch = 240;
    settings.network.fine = 5;
    // Restarts differ less than those of the paper; an epoch of a large set is worth many of a small one.
    settings.plan.runs = 5;
    settings.plan.epochs = 0;
    settings.plan.prune = true;
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_hold_the_published_numbers() {
        let paper = Settings::preset(Preset::Paper, Method::Dtkc);
        assert_eq!((paper.loss.bandwidth, paper.loss.sigma), (BandwidthRule::Distance, 0.15));
        assert_eq!((paper.optim.lr, paper.optim.clip_norm, paper.loss.lambda), (1e-4, 0.0, 0.01));
        assert_eq!(paper.loss.membership_sum, MembershipSum::Sum);
        let authors = Settings::preset(Preset::Authors, Method::Dtkc);
        assert_eq!((authors.loss.bandwidth, authors.loss.sigma), (BandwidthRule::Squared, 0.15));
        assert_eq!((authors.optim.lr, authors.optim.clip_norm), (1e-3, 10.0));
        let tk_uco = Settings::preset(Preset::TkUco, Method::Dtkc);
        assert_eq!((tk_uco.loss.bandwidth, tk_uco.loss.sigma), (BandwidthRule::Squared, 0.30));
        assert_eq!((tk_uco.loss.membership_sum, tk_uco.optim.lr), (MembershipSum::Mean, 1e-4));
        assert_eq!(Settings::preset(Preset::TkUco, Method::Ddc).optim.lr, 1e-3);
        let plan = TrainPlan { epochs: 100, patience: 30, batch: 120, runs: 20, prune: false };
        assert!([paper, authors, tk_uco].iter().all(|s| s.plan == plan && !s.paired()));
    }

    #[test]
    fn plus_keeps_the_companions_and_trains_on_pairs() {
        let plus = Settings::preset(Preset::Plus, Method::Dtkc);
        assert!(plus.loss.lambda > 0.0 && plus.paired() && plus.images_per_step() == 120);
        assert_eq!(Settings::preset(Preset::Plus, Method::Ddc).loss.lambda, 0.0);
    }

    #[test]
    fn the_epochs_of_plus_follow_the_number_of_images() {
        let epochs = |preset, images| {
            let mut settings = Settings::preset(preset, Method::Dtkc);
            settings.set_epochs(images);
            settings.plan.epochs
        };
        assert_eq!([100, 9_298, 60_000, 10_000_000].map(|images| epochs(Preset::Plus, images)), [300, 65, 10, 3]);
        assert_eq!(epochs(Preset::Paper, 60_000), 100);
    }

    #[test]
    fn names_go_both_ways() {
        for preset in Preset::ALL {
            assert_eq!(preset.name().parse::<Preset>(), Ok(preset));
            assert_eq!(serde_json::to_value(preset).ok(), Some(preset.name().into()));
        }
        for method in Method::ALL {
            assert_eq!(method.name().parse::<Method>(), Ok(method));
            assert_eq!(serde_json::to_value(method).ok(), Some(method.name().into()));
        }
    }
}
