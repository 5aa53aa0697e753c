//! What can be seen inside a network while it learns, for those who study it.

use burn::tensor::{Gradients, Tensor};
use dtkc_core::loss::LossTerms;
use dtkc_item::{Batch, Items};

use crate::learner::StepPlace;

/// Terms of a loss that make clusters; all others help them or stand in their way.
const CLUSTERING_TERMS: [&str; 5] = ["clustering", "separation", "orthogonality", "simplex", "given"];

/// A network with a backbone: blocks or layers that come before anything is clustered.
pub trait Inside {
    /// What the backbone says about items. Batch norm uses the statistics of these items, because running ones lag behind.
    fn features(&self, items: &Items) -> Features;

    /// How each part of a step's loss would change the backbone.
    fn gradients(&self, batch: &Batch, place: &StepPlace) -> BackboneGradients;
}

/// What a backbone says about n items.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// `[n, width]` row-major.
    pub values: Vec<f32>,
    /// Values of an item.
    pub width: usize,
}

/// Gradients with respect to all weights of a backbone, of terms with their weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BackboneGradients {
    /// Of the terms that make clusters together; `None` where a step has none.
    pub clustering: Option<Vec<f32>>,
    /// Of every other term, by its name in the log.
    pub others: Vec<(String, Vec<f32>)>,
}

impl BackboneGradients {
    /// The cosine between the gradient of what makes clusters and each other; without those that are nothing but zeros.
    pub fn cosines(&self) -> Vec<(String, f64)> {
        let Some(clustering) = &self.clustering else { return Vec::new() };
        self.others.iter().filter_map(|(name, other)| Some((name.clone(), cosine(clustering, other)?))).collect()
    }
}

/// The cosine of two vectors; `None` where one of them has no direction.
fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    let cosine = dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt());
    cosine.is_finite().then_some(cosine)
}

impl Features {
    pub(crate) fn read(features: Tensor<2>) -> Self {
        let [_, width] = features.dims();
        Self { values: features.into_data().iter::<f32>().collect(), width }
    }
}

/// The gradient of those terms of a loss together that `wanted` names; `None` where there are none.
pub(crate) fn gradient(
    terms: Option<LossTerms>,
    wanted: impl Fn(&str) -> bool,
    read: impl Fn(&Gradients) -> Vec<f32>,
) -> Option<Vec<f32>> {
    let terms = terms?.terms.into_iter().filter(|term| term.weight > 0.0 && wanted(&term.name));
    let sum = terms.map(|term| term.value * term.weight).reduce(|a, b| a + b)?;
    Some(read(&sum.backward()))
}

/// The gradients of the terms of a loss. A graph can be gone through once only, so that `evaluate` is asked anew for each.
pub(crate) fn gradients(
    evaluate: impl Fn() -> Option<LossTerms>,
    read: impl Fn(&Gradients) -> Vec<f32>,
) -> BackboneGradients {
    let is_clustering = |name: &str| CLUSTERING_TERMS.contains(&name);
    let Some(terms) = evaluate() else { return BackboneGradients::default() };
    let names: Vec<String> = terms.terms.iter().map(|term| term.name.clone()).collect();
    let clustering = gradient(Some(terms), is_clustering, &read);
    let others = names.into_iter().filter(|name| !is_clustering(name)).filter_map(|name| {
        let gradient = gradient(evaluate(), |other| other == name, &read)?;
        Some((name, gradient))
    });
    BackboneGradients { clustering, others: others.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_needs_two_directions() {
        assert_eq!(cosine(&[3.0, 4.0], &[3.0, 4.0]), Some(1.0));
        assert_eq!(cosine(&[1.0, 0.0], &[-1.0, 1.0]).map(|c| (c * 2f64.sqrt() * 1e9).round()), Some(-1e9));
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 0.0]), None);
        let none = BackboneGradients { clustering: None, others: vec![("companion_1".into(), vec![1.0])] };
        assert_eq!(none.cosines(), []);
    }
}
