//! The named starting points.

use std::fmt;

use dtkc_core::kernel::{BandwidthRule, Unfolding};
use dtkc_core::loss::MembershipSum;
use dtkc_core::{AugmentConfig, Init, SequenceViewConfig, Tap};

use super::settings::FEW_NEIGHBOURS;
use super::{Join, PartnerConfig, Settings, StartConfig, StartKind};
use crate::nearest::Likeness;
use crate::optimizer::{OptimConfig, Schedule};
use crate::{Method, TrainPlan};

/// Where the numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Preset {
    /// All presets, the default one first.
    pub const ALL: [Preset; 4] = [Preset::Plus, Preset::Paper, Preset::Authors, Preset::TkUco];
    /// Those that are not ours.
    pub const PUBLISHED: [Preset; 3] = [Preset::Paper, Preset::Authors, Preset::TkUco];

    /// Its name in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Paper => "paper",
            Preset::Authors => "authors",
            Preset::TkUco => "tk-uco",
            Preset::Plus => "plus",
        }
    }

    /// The one of that name; the default one where there is none.
    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|preset| preset.name() == name).unwrap_or(Self::ALL[0])
    }

    /// Its numbers.
    pub fn settings(self, method: Method) -> (Settings, TrainPlan) {
        // The neutral settings are the paper's terms and network.
        let mut settings = Settings::default();
        settings.loss.lambda = match method {
            Method::Dtkc => 0.01,
            _ => 0.0,
        };
        let mut plan = TrainPlan::default();
        match self {
            Preset::Paper => {}
            Preset::Authors => authors(&mut settings),
            Preset::TkUco => tk_uco(&mut settings, &mut plan, method),
            Preset::Plus => plus(&mut settings, &mut plan),
        }
        (settings, plan)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn authors(settings: &mut Settings) {
    settings.loss.bandwidth = BandwidthRule::Squared;
    settings.loss.unfolding = Unfolding::Plain;
    settings.optim.lr = 1e-3;
    settings.optim.clip_norm = 10.0;
    // Keras' own.
    settings.optim.epsilon = 1e-7;
}

/// Its PyTorch code, with its training plan. Two things are as everywhere here: every image is scaled by its own range,
/// and the last partial batch is used.
fn tk_uco(settings: &mut Settings, plan: &mut TrainPlan, method: Method) {
    settings.network.init = Init::Normal;
    settings.network.blocks[0].tap = Tap::Unpooled;
    settings.optim.clip_norm = 10.0;
    plan.epochs = 200;
    plan.patience = 0;
    settings.loss.bandwidth = BandwidthRule::Squared;
    settings.loss.sigma = 0.30;
    settings.loss.membership_sum = MembershipSum::Mean;
    settings.optim.lr = match method {
        Method::Dtkc => 1e-4,
        _ => 1e-3,
    };
}

fn plus(settings: &mut Settings, plan: &mut TrainPlan) {
    authors(settings);
    // The paper's distance, and Adam as its authors give it.
    settings.loss.unfolding = Unfolding::Short;
    settings.optim.epsilon = OptimConfig::default().epsilon;
    settings.loss.membership_sum = MembershipSum::Mean;
    settings.loss.consistency = 1.0;
    settings.loss.mutual_information = 1.0;
    settings.optim.schedule = Schedule::Cosine;
    settings.optim.final_lr = 0.01;
    settings.augment = AugmentConfig::strong();
    settings.sequence_views = SequenceViewConfig::strong();
    // Clusters that are named from the first step split large classes and join small ones: see REPRODUCING.md.
    settings.network.fine = 8;
    settings.start = StartConfig { from: StartKind::Auto, share: 0.5, join: Join::Near, strays: true };
    settings.neighbours = PartnerConfig { count: FEW_NEIGHBOURS, share: 0.5, by: Likeness::Auto };
    // Large images are looked at in about 32 x 32 pixels: ten times the pixels take ten times as long and tell little more.
    settings.network.reduce = 0;
    // The published presets score with the running averages; ours does not trust them.
    settings.refresh_statistics = true;
    // 120 images with two views each: mutual information is counted in k x k cells, and 60 images are too few for that.
    plan.batch = 240;
    // Restarts differ less than those of the paper; an epoch of a large set is worth many of a small one.
    plan.restarts = 3;
    (plan.epochs, plan.steps) = (0, 3000);
    plan.prune = true;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::MethodTable as _;
    use dtkc_item::{ImageShape, ItemShape};

    fn settings(preset: Preset, method: Method) -> Settings {
        preset.settings(method).0
    }

    #[test]
    fn presets_hold_the_published_numbers() {
        let paper = settings(Preset::Paper, Method::Dtkc);
        assert_eq!((paper.loss.bandwidth, paper.loss.sigma), (BandwidthRule::Distance, 0.15));
        assert_eq!((paper.optim.lr, paper.optim.clip_norm, paper.loss.lambda), (1e-4, 0.0, 0.01));
        assert_eq!(paper.loss.membership_sum, MembershipSum::Sum);
        let authors = settings(Preset::Authors, Method::Dtkc);
        assert_eq!((authors.loss.bandwidth, authors.loss.sigma), (BandwidthRule::Squared, 0.15));
        assert_eq!((authors.optim.lr, authors.optim.clip_norm), (1e-3, 10.0));
        let tk_uco = settings(Preset::TkUco, Method::Dtkc);
        assert_eq!((tk_uco.loss.bandwidth, tk_uco.loss.sigma), (BandwidthRule::Squared, 0.30));
        assert_eq!((tk_uco.loss.membership_sum, tk_uco.optim.lr), (MembershipSum::Mean, 1e-4));
        assert_eq!(settings(Preset::TkUco, Method::Ddc).optim.lr, 1e-3);
        assert_eq!((authors.optim.epsilon, authors.loss.unfolding), (1e-7, Unfolding::Plain));
        assert_eq!((tk_uco.optim.clip_norm, tk_uco.network.init), (10.0, Init::Normal));
        assert_eq!(
            tk_uco.network.blocks.iter().map(|block| block.tap).collect::<Vec<_>>(),
            [Tap::Unpooled, Tap::Pooled]
        );
        let published = Preset::PUBLISHED.map(|preset| preset.settings(Method::Dtkc));
        assert!(published.iter().all(|(settings, _)| !settings.paired() && !settings.refresh_statistics));
        let plan =
            TrainPlan { epochs: 100, patience: 30, batch: 120, restarts: 20, prune: false, ..TrainPlan::default() };
        let longer = TrainPlan { epochs: 200, patience: 0, ..plan.clone() };
        assert_eq!(published.map(|(_, plan)| plan), [plan.clone(), plan, longer]);
    }

    #[test]
    fn plus_keeps_the_companions_and_trains_on_pairs() {
        let (plus, plan) = Preset::Plus.settings(Method::Dtkc);
        assert_eq!((plus.loss.unfolding, plus.optim.epsilon), (Unfolding::Short, 1e-8));
        assert!(plus.loss.lambda > 0.0 && plus.paired() && plus.items_per_step(plan.batch) == 120);
        assert_eq!(settings(Preset::Plus, Method::Ddc).loss.lambda, 0.0);
        assert_eq!([10, 20, 25, 100].map(|k| plus.least_rows(k)), [120, 240, 300, 0]);
        assert_eq!(settings(Preset::Authors, Method::Dtkc).least_rows(100), 0, "a batch as it was published");
    }

    #[test]
    fn the_epochs_of_plus_follow_the_number_of_images() {
        let epochs = |preset: Preset, images| {
            let (settings, mut plan) = preset.settings(Method::Dtkc);
            plan.set_epochs(images, settings.items_per_step(plan.batch));
            plan.epochs
        };
        assert_eq!(
            [100, 2_000, 9_298, 60_000, 10_000_000].map(|images| epochs(Preset::Plus, images)),
            [300, 79, 38, 15, 3]
        );
        assert_eq!(epochs(Preset::Paper, 60_000), 100);
    }

    #[test]
    fn plus_looks_at_large_images_in_less_detail_and_published_presets_do_not() {
        let reduce = |preset, side| {
            let mut settings = settings(preset, Method::Dtkc);
            let said = settings.suit(ItemShape::Image(ImageShape { height: side, width: side, channels: 3 }));
            assert_eq!(said.is_some(), settings.network.reduce > 1);
            settings.network.reduce
        };
        assert_eq!([28, 32, 64, 256].map(|side| reduce(Preset::Plus, side)), [1, 1, 2, 8]);
        assert_eq!(Preset::PUBLISHED.map(|preset| reduce(preset, 256)), [1; 3]);
    }

    #[test]
    fn every_preset_of_every_method_is_checked_and_comes_back_from_its_table() {
        for preset in Preset::ALL {
            for method in [Method::Dtkc, Method::Ddc] {
                let found = settings(preset, method);
                found.check(method).unwrap();
                let table = dtkc_settings::table(&found).unwrap();
                assert_eq!(dtkc_settings::overlay("", &Settings::default(), &[&table]).unwrap(), found);
            }
        }
    }
}
