//! Elementwise arithmetic on one vector register.

use super::isa::fma;

/// `W` values that move together through a transform.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane<const W: usize>(pub(crate) [f32; W]);

impl<const W: usize> Lane<W> {
    pub(crate) const ZERO: Lane<W> = Lane([0.0; W]);

    /// The first `W` values of a slice.
    #[inline(always)]
    pub(crate) fn load(from: &[f32]) -> Self {
        Lane(*super::chunk::<W>(from))
    }

    /// Writes the first `W` values of a slice.
    #[inline(always)]
    pub(crate) fn store(self, to: &mut [f32]) {
        to[..W].copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn zip(self, other: Self, function: impl Fn(f32, f32) -> f32) -> Self {
        let mut result = [0.0; W];
        for l in 0..W {
            result[l] = function(self.0[l], other.0[l]);
        }
        Lane(result)
    }

    #[inline(always)]
    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    /// The larger of each value and zero.
    #[inline(always)]
    pub(crate) fn max_zero(self) -> Self {
        self.zip(Self::ZERO, |a, zero| if a > zero { a } else { zero })
    }

    #[inline(always)]
    pub(crate) fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if b > a { b } else { a })
    }

    /// Zero where `other` is not positive.
    #[inline(always)]
    pub(crate) fn where_positive(self, other: Self) -> Self {
        self.zip(other, |a, b| if b > 0.0 { a } else { 0.0 })
    }

    /// `self * factor + other`, all of them vectors.
    #[inline(always)]
    pub(crate) fn mul_plus<const FMA: bool>(self, factor: Self, other: Self) -> Self {
        let mut result = [0.0; W];
        for l in 0..W {
            result[l] = fma::<FMA>(self.0[l], factor.0[l], other.0[l]);
        }
        Lane(result)
    }

    /// `self * factor + other`.
    #[inline(always)]
    pub(crate) fn times_plus<const FMA: bool>(self, factor: f32, other: Self) -> Self {
        self.zip(other, |a, b| fma::<FMA>(a, factor, b))
    }
}
