//! The whole loss from its configuration.

use super::config::LossConfig;
use super::divergence::{d_cs, orthogonality, simplex_closeness};
use super::terms::{Collector, LossTerms};
use super::{CompanionConfig, Companions, paired};
use crate::kernel::squared_distances;
use crate::{ConfigError, Output};
use burn::tensor::Tensor;

/// What the rows of a batch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Views {
    /// Every row is another image.
    Single,
    /// The second half holds the second views of the images of the first half, in the same order.
    Paired,
}

impl Views {
    /// The rows of the first views; all rows where there is one view of each image.
    pub fn first<const D: usize>(self, rows: Tensor<D>) -> Tensor<D> {
        match self {
            Views::Single => rows,
            Views::Paired => {
                let images = rows.dims()[0] / 2;
                rows.narrow(0, 0, images)
            }
        }
    }
}

/// How far training is, for weights that change with time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Epochs done, with the part of the running one.
    pub epoch: f64,
    /// Factor of the companions' weights.
    pub companions: f64,
}

impl Moment {
    /// Late enough that every weight has its final value.
    pub const LATE: Moment = Moment { epoch: f64::INFINITY, companions: 1.0 };
}

/// The loss as configured.
#[derive(Debug, Clone)]
pub struct Objective {
    config: LossConfig,
    companions: Companions,
}

impl Objective {
    /// Checks the configuration.
    pub fn new(config: &LossConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config: config.clone(), companions: config.companions() })
    }

    /// The configuration.
    pub fn config(&self) -> &LossConfig {
        &self.config
    }

    /// All terms with a weight, and their sum. Terms between views are absent from a batch of single views.
    ///
    /// # Panics
    /// Panics on an empty batch and on paired views of odd count.
    pub fn evaluate(&self, output: &Output, views: Views, moment: Moment) -> LossTerms {
        assert!(!output.is_empty(), "a batch must hold at least one image");
        let mut terms = Collector::default();
        self.paper_terms(output, &mut terms);
        self.companion_terms(output, views, moment, &mut terms);
        self.unpaired_terms(output, &mut terms);
        if views == Views::Paired {
            self.paired_terms(output, moment, &mut terms);
        }
        terms.sum().unwrap_or_else(|| nothing(output))
    }

    /// The fine clusters of paired views alone: what a network learns before it has to name clusters. Zero without them.
    ///
    /// # Panics
    /// Panics on paired views of odd count.
    pub fn evaluate_fine(&self, output: &Output) -> LossTerms {
        let mut terms = Collector::default();
        self.fine_term(output, &mut terms);
        terms.sum().unwrap_or_else(|| nothing(output))
    }

    /// The mean cross-entropy with given clusters, one for every image; both views have the image's. Fine clusters of paired
    /// views are learnt beside them.
    pub fn evaluate_given(&self, output: &Output, clusters: &[u32], views: Views) -> LossTerms {
        let mut terms = Collector::default();
        terms.add("given", 1.0, || {
            let targets: Vec<i32> = match views {
                Views::Single => clusters.iter().map(|&cluster| cluster as i32).collect(),
                Views::Paired => clusters.iter().chain(clusters).map(|&cluster| cluster as i32).collect(),
            };
            paired::cross_entropy_with(output.logits.clone(), &targets)
        });
        if views == Views::Paired {
            self.fine_term(output, &mut terms);
        }
        terms.sum().unwrap_or_else(|| nothing(output))
    }

    fn fine_term(&self, output: &Output, terms: &mut Collector) {
        if let Some(fine) = &output.fine {
            terms.add("overclustering", self.config.overclustering, || {
                let (first, second) = halves(fine);
                paired::mutual_information(first, second)
            });
        }
    }

    fn paper_terms(&self, output: &Output, terms: &mut Collector) {
        let config = &self.config;
        let membership = &output.membership;
        if config.separation > 0.0 || config.simplex > 0.0 {
            let kernel = config.bandwidth().kernel(squared_distances(output.embedding.clone()));
            terms.add("separation", config.separation, || d_cs(membership.clone(), kernel.clone()));
            terms.add("simplex", config.simplex, || d_cs(simplex_closeness(membership.clone()), kernel.clone()));
        }
        terms.add("orthogonality", config.orthogonality, || orthogonality(membership.clone(), config.membership_sum));
    }

    /// Their kernels cost the square of the images, and most of a step: first views will do, which are a batch as the
    /// paper has it. The contrast needs both.
    fn companion_terms(&self, output: &Output, views: Views, moment: Moment, terms: &mut Collector) {
        let CompanionConfig { detached, until, last, views: contrast, .. } = self.config.companions;
        // A restart is judged by what it is at its end.
        if until > 0.0 && moment.epoch >= until {
            return;
        }
        let membership = views.first(output.membership.clone());
        let membership = if detached { membership.detach() } else { membership };
        let from = if last { output.blocks.len().saturating_sub(1) } else { 0 };
        for (i, block) in output.blocks.iter().enumerate().skip(from) {
            terms.add_grown(&format!("companion_{}", i + 1), self.config.lambda, moment.companions, || {
                self.companions.objective_of(&block.first(views), membership.clone())
            });
            if views == Views::Paired {
                let value = || self.companions.contrast_of(block);
                terms.add_grown(&format!("contrast_{}", i + 1), contrast, moment.companions, value);
            }
        }
    }

    fn unpaired_terms(&self, output: &Output, terms: &mut Collector) {
        terms.add("balance", self.config.balance, || paired::balance(output.membership.clone()));
        terms.add("certainty", self.config.certainty, || paired::certainty(output.logits.clone()));
    }

    fn paired_terms(&self, output: &Output, moment: Moment, terms: &mut Collector) {
        let config = &self.config;
        let ramp = if config.ramp > 0.0 { (moment.epoch / config.ramp).clamp(0.0, 1.0) } else { 1.0 };
        let started = if moment.epoch >= config.self_label_start { ramp } else { 0.0 };
        terms.add_grown("consistency", config.consistency, ramp, || {
            let (first, second) = halves(&output.logits);
            paired::consistency(first, second, config.consistency_temperature)
        });
        terms.add_grown("mutual_information", config.mutual_information, ramp, || {
            let (first, second) = halves(&output.membership);
            paired::mutual_information(first, second)
        });
        if let Some(fine) = &output.fine {
            terms.add_grown("overclustering", config.overclustering, ramp, || {
                let (first, second) = halves(fine);
                paired::mutual_information(first, second)
            });
        }
        terms.add_grown("self_label", config.self_label, started, || {
            let (first, second) = halves(&output.logits);
            paired::self_label(first, second, config.self_label_threshold)
        });
    }
}

/// A loss that nothing can lower.
fn nothing(output: &Output) -> LossTerms {
    LossTerms { total: output.logits.clone().sum() * 0.0, terms: vec![] }
}

/// First and second views.
fn halves(rows: &Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let [n, _] = rows.dims();
    assert!(n.is_multiple_of(2), "paired views must come in equal numbers, not {n} rows");
    (rows.clone().narrow(0, 0, n / 2), rows.clone().narrow(0, n / 2, n / 2))
}
