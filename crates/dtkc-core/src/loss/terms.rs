//! A loss and the terms it is made of.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// One term: its name, the weight it enters the total with and its value before that weight.
#[derive(Debug, Clone)]
pub struct Term {
    /// Name, as in the log.
    pub name: String,
    /// Weight.
    pub weight: f64,
    /// Value, `[1]`.
    pub value: Tensor<1>,
}

/// The loss of a batch.
#[derive(Debug, Clone)]
pub struct LossTerms {
    /// The weighted sum, to be differentiated: `[1]`.
    pub total: Tensor<1>,
    /// Its terms, in a fixed order.
    pub terms: Vec<Term>,
}

/// The loss of a batch, or the mean over batches, as plain numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LossValues {
    /// The weighted sum.
    pub total: f64,
    /// Name and unweighted value of every term.
    pub terms: Vec<(String, f64)>,
}

impl LossTerms {
    /// Reads all numbers back from the device at once.
    pub fn read(&self) -> LossValues {
        let mut tensors = vec![self.total.clone().detach()];
        tensors.extend(self.terms.iter().map(|term| term.value.clone().detach()));
        let values = Tensor::cat(tensors, 0).into_data();
        let mut values = values.iter::<f64>();
        let total = values.next().unwrap_or(f64::NAN);
        LossValues { total, terms: self.terms.iter().map(|t| t.name.clone()).zip(values).collect() }
    }
}

impl LossValues {
    /// Whether the total and all terms are finite.
    pub fn is_finite(&self) -> bool {
        self.first_non_finite().is_none() && self.total.is_finite()
    }

    /// Name of the first term that is not finite.
    pub fn first_non_finite(&self) -> Option<&str> {
        self.terms.iter().find(|(_, value)| !value.is_finite()).map(|(name, _)| name.as_str())
    }

    /// Value of a term by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.terms.iter().find(|(n, _)| n == name).map(|(_, value)| *value)
    }
}

/// Collects terms with a weight; the others are not computed.
#[derive(Debug, Default)]
pub struct Collector(Vec<Term>);

impl Collector {
    /// A term, where it has a weight.
    pub fn add(&mut self, name: &str, weight: f64, value: impl FnOnce() -> Tensor<1>) {
        self.add_grown(name, weight, 1.0, value);
    }

    /// A term whose weight grows with time; it is reported from the start.
    pub fn add_grown(&mut self, name: &str, weight: f64, grown: f64, value: impl FnOnce() -> Tensor<1>) {
        if weight > 0.0 {
            self.0.push(Term { name: name.into(), weight: weight * grown, value: value() });
        }
    }

    /// The terms and their weighted sum; nothing where there is no term.
    pub fn sum(self) -> Option<LossTerms> {
        let weighted = self.0.iter().map(|term| term.value.clone() * term.weight);
        let total = weighted.reduce(|a, b| a + b)?;
        Some(LossTerms { total, terms: self.0 })
    }
}
