//! Values of any range to bytes.

use std::fmt;

use super::numeric::Block;

/// What the values of an array span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// The smallest value.
    pub min: f32,
    /// The largest.
    pub max: f32,
    /// Whether some value is not a number or infinite.
    pub broken: bool,
    /// Whether the values are bytes already.
    pub bytes: bool,
}

impl Span {
    /// Nothing seen yet.
    pub const fn empty() -> Self {
        Self { min: f32::INFINITY, max: f32::NEG_INFINITY, broken: false, bytes: true }
    }

    /// Takes more values into account.
    pub fn add(&mut self, block: &Block) {
        let Block::Floats(values) = block else { return };
        self.bytes = false;
        for &value in values {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.broken |= !value.is_finite();
        }
    }

    /// Takes what another array spans into account, so that both are scaled alike.
    pub fn join(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.broken |= other.broken;
        self.bytes &= other.bytes;
    }
}

/// How values become bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Bytes as they are.
    Keep,
    /// From `min..=max` to 0..=255, rounded.
    Stretch {
        /// What becomes 0.
        min: f32,
        /// What becomes 255.
        max: f32,
    },
}

impl Scale {
    /// Chooses by the range: bytes, and values from 0 to 255 that reach at least 128, are kept (rounded); 0 to 1
    /// is taken as that, even where no value is quite 0 or 1, and so is -1 to 1 where a value is below -0.5; anything
    /// else is stretched from its own range.
    pub fn choose(range: &Span) -> Self {
        let Span { min, max, bytes, .. } = *range;
        if bytes || (min >= 0.0 && (128.0..=255.0).contains(&max)) {
            Self::Keep
        } else if min >= 0.0 && max <= 1.0 {
            Self::Stretch { min: 0.0, max: 1.0 }
        } else if (-1.0..-0.5).contains(&min) && max <= 1.0 {
            Self::Stretch { min: -1.0, max: 1.0 }
        } else {
            Self::Stretch { min, max }
        }
    }

    /// One value as a byte.
    pub fn apply(self, value: f32) -> u8 {
        let scaled = match self {
            Self::Keep => value,
            Self::Stretch { min, max } if max > min => (value - min) * (255.0 / (max - min)),
            Self::Stretch { .. } => 0.0,
        };
        // The cast saturates, so that rounding errors at the ends do no harm.
        scaled.round() as u8
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("values kept as they are"),
            Self::Stretch { min, max } => write!(f, "values from {min} to {max} scaled to 0..255"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(values: &[f32]) -> Span {
        let mut range = Span::empty();
        range.add(&Block::Floats(values.to_vec()));
        range
    }

    #[test]
    fn the_range_decides() {
        assert_eq!(Scale::choose(&range(&[0.1, 0.9])), Scale::Stretch { min: 0.0, max: 1.0 });
        assert_eq!(Scale::choose(&range(&[-1.0, 1.0])), Scale::Stretch { min: -1.0, max: 1.0 });
        assert_eq!(Scale::choose(&range(&[-0.9, 0.7])), Scale::Stretch { min: -1.0, max: 1.0 });
        assert_eq!(Scale::choose(&range(&[-0.5, 0.4])), Scale::Stretch { min: -0.5, max: 0.4 });
        assert_eq!(Scale::choose(&range(&[0.0, 254.0])), Scale::Keep);
        assert_eq!(Scale::choose(&range(&[0.5, 253.25])), Scale::Keep);
        assert_eq!(Scale::choose(&range(&[0.0, 16.0])), Scale::Stretch { min: 0.0, max: 16.0 });
        assert_eq!(Scale::choose(&range(&[0.0, 65535.0])), Scale::Stretch { min: 0.0, max: 65535.0 });
        assert_eq!(Scale::choose(&Span::empty()), Scale::Keep);
        assert!(range(&[0.0, f32::NAN]).broken && range(&[f32::INFINITY]).broken);
    }

    #[test]
    fn ends_and_middle_are_exact() {
        let unit = Scale::Stretch { min: 0.0, max: 1.0 };
        assert_eq!([0.0, 0.5, 1.0].map(|v| unit.apply(v)), [0, 128, 255]);
        assert_eq!(Scale::Stretch { min: 3.0, max: 3.0 }.apply(3.0), 0);
    }

    proptest! {
        #[test]
        fn bytes_survive_the_way_through_floats(value: u8) {
            let unit = Scale::Stretch { min: 0.0, max: 1.0 };
            prop_assert_eq!(unit.apply(f32::from(value) / 255.0), value);
            prop_assert_eq!(Scale::Keep.apply(f32::from(value)), value);
        }

        #[test]
        fn larger_values_are_never_darker(a in -1e3f32..1e3, b in -1e3f32..1e3) {
            let scale = Scale::Stretch { min: -500.0, max: 800.0 };
            prop_assert_eq!(a <= b || scale.apply(a) >= scale.apply(b), true);
        }
    }
}
