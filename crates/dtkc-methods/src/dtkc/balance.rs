//! A weight of the companions that keeps their gradient at a part of the others' (as GradNorm does).

use burn::tensor::Gradients;
use dtkc_core::augment::BatchKey;
use dtkc_core::{LossTerms, NamedArray, Values};

use crate::inside::gradient;
use crate::{LearnError, arrays};

/// Steps between two changes: each costs two further passes.
const EVERY: u64 = 20;
/// A gradient that is next to nothing asks for any weight.
const RANGE: [f64; 2] = [1e-6, 1e6];
const NAME: &str = "companions.factor";

/// The factor of the companions' weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Balance {
    /// The part; 0 where the factor stays 1.
    share: f64,
    factor: f64,
}

impl Balance {
    pub(super) fn new(share: f64) -> Self {
        Self { share, factor: 1.0 }
    }

    pub(super) fn factor(self) -> f64 {
        self.factor
    }

    /// Whether it is looked at before this batch.
    pub(super) fn is_due(self, batch: BatchKey) -> bool {
        self.share > 0.0 && batch.batch.is_multiple_of(EVERY)
    }

    /// Half of the way to the factor that gives them their part, on a logarithmic scale; the same where there are none now.
    pub(super) fn next(self, terms: impl Fn() -> Option<LossTerms>, read: impl Fn(&Gradients) -> Vec<f32>) -> Self {
        let of = |companions: bool| gradient(terms(), |name| is_companion(name) == companions, &read);
        let Some((own, others)) = of(true).and_then(|own| Some((own, of(false)?))) else { return self };
        let wanted = self.factor * self.share * norm(&others) / norm(&own);
        match wanted.is_finite() && wanted > 0.0 {
            true => Self { factor: (self.factor * wanted).sqrt().clamp(RANGE[0], RANGE[1]), ..self },
            false => self,
        }
    }

    pub(super) fn save(self) -> Option<NamedArray> {
        (self.share > 0.0).then(|| NamedArray::list(NAME, Values::F64(vec![self.factor])))
    }

    /// Takes [`save`](Self::save) back.
    pub(super) fn restore(self, saved: &[NamedArray]) -> Result<Self, LearnError> {
        match self.share > 0.0 {
            true => Ok(Self { factor: arrays::f64s(saved, NAME, Some(1))?[0], ..self }),
            false => Ok(self),
        }
    }
}

fn is_companion(term: &str) -> bool {
    term.starts_with("companion_") || term.starts_with("contrast_")
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Tensor};
    use dtkc_core::loss::Collector;

    #[test]
    fn the_factor_nears_what_gives_companions_their_part() {
        let device = Device::flex().autodiff();
        let x = Tensor::<1>::from_floats([1.0, 2.0], &device).require_grad();
        let read = |gradients: &Gradients| x.grad(gradients).unwrap().into_data().iter::<f32>().collect::<Vec<_>>();
        let mut balance = Balance::new(0.25);
        // Gradients (3, 3) of the rest, and (1, 1) of the companion before its weight of 0.01.
        let terms = |factor: f64| {
            let mut terms = Collector::default();
            terms.add("separation", 3.0, || x.clone().sum());
            terms.add_grown("companion_1", 0.01, factor, || x.clone().sum());
            terms.sum()
        };
        for _ in 0..40 {
            let factor = balance.factor();
            balance = balance.next(|| terms(factor), read);
        }
        assert!((balance.factor() - 75.0).abs() < 1e-3, "{balance:?}");
        let saved = [balance.save().unwrap()];
        assert_eq!(Balance::new(0.25).restore(&saved).unwrap(), balance);
        let without = || {
            let mut terms = Collector::default();
            terms.add("separation", 3.0, || x.clone().sum());
            terms.sum()
        };
        assert_eq!(balance.next(without, read), balance, "a start without companions");
        assert!(
            Balance::new(0.0).save().is_none() && !Balance::new(0.0).is_due(BatchKey { seed: 0, epoch: 0, batch: 0 })
        );
    }
}
