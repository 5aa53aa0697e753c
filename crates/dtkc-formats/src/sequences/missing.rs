//! Values that are missing: refused, or their sequences left out, or filled.

use std::str::FromStr;

use dtkc_item::ItemError;

/// What becomes of sequences with values that are missing or not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// The import ends: whoever does not know of them should.
    #[default]
    Refuse,
    /// Such a sequence is skipped, and listed.
    Drop,
    /// They are put on a straight line between their neighbours in time; before the first value and after the last one,
    /// they are equal to it.
    Fill,
}

impl FromStr for Missing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "drop" => Ok(Self::Drop),
            "fill" => Ok(Self::Fill),
            _ => Err(format!("'{text}' is not a way to treat missing values; use refuse, drop or fill")),
        }
    }
}

/// Why a sequence does not become part of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It fails alone.
    Skip(ItemError),
    /// The import ends, with this reason.
    Refuse(String),
}

impl Unfit {
    /// As the problem of one item, for whoever has no set that could end.
    pub fn into_error(self) -> ItemError {
        match self {
            Self::Skip(error) => error,
            Self::Refuse(reason) => ItemError::new("missing_values", reason),
        }
    }
}

impl Missing {
    /// Makes a sequence of `dim` values a step ready to be written, or says why it cannot be.
    pub fn settle(self, values: &mut [f32], dim: usize) -> Result<(), Unfit> {
        if values.is_empty() {
            return Err(Unfit::Skip(ItemError::no_steps()));
        }
        let Some(what) = ItemError::missing_values(values, dim) else { return Ok(()) };
        match self {
            Self::Refuse => Err(Unfit::Refuse(format!(
                "{what}; fill such values with --missing fill, or leave such sequences out with --missing drop"
            ))),
            Self::Drop => Err(Unfit::Skip(what)),
            Self::Fill => (0..dim).try_for_each(|place| fill(values, dim, place)),
        }
    }
}

/// Fills one dimension.
fn fill(values: &mut [f32], dim: usize, place: usize) -> Result<(), Unfit> {
    let at = |step: usize| step * dim + place;
    let steps = values.len() / dim;
    let mut last: Option<usize> = None;
    for step in 0..steps {
        let value = values[at(step)];
        if !value.is_finite() {
            continue;
        }
        match last {
            None => (0..step).for_each(|before| values[at(before)] = value),
            Some(last) => {
                let start = values[at(last)];
                for between in last + 1..step {
                    let share = (between - last) as f32 / (step - last) as f32;
                    // Neither side is multiplied by more than one: no overflow where both are large.
                    values[at(between)] = start * (1.0 - share) + value * share;
                }
            }
        }
        last = Some(step);
    }
    let Some(last) = last else {
        let text = format!("dimension {} has no value that others could be filled from", place + 1);
        return Err(Unfit::Skip(ItemError::new("missing_values", text)));
    };
    let value = values[at(last)];
    (last + 1..steps).for_each(|after| values[at(after)] = value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f32 = f32::NAN;

    #[test]
    fn gaps_are_filled_along_a_line() {
        // numpy.interp over the known steps of each dimension gives the same.
        let mut values = [NAN, 1.0, 2.0, NAN, NAN, NAN, NAN, 4.0, 8.0, NAN, f32::INFINITY, NAN];
        assert_eq!(Missing::Fill.settle(&mut values, 2), Ok(()));
        assert_eq!(values, [2.0, 1.0, 2.0, 2.0, 4.0, 3.0, 6.0, 4.0, 8.0, 4.0, 8.0, 4.0]);
        let mut large = [f32::MAX, NAN, -f32::MAX];
        assert_eq!(Missing::Fill.settle(&mut large, 1), Ok(()));
        assert_eq!(large[1], 0.0);
    }

    #[test]
    fn faults_tell_how_many_and_where() {
        let Err(Unfit::Refuse(text)) = Missing::Refuse.settle(&mut [1.0, 2.0, 3.0, NAN], 2) else { panic!("taken") };
        assert!(
            text.starts_with("1 of 4 values is missing or not finite, the first in dimension 2 of step 2;"),
            "{text}"
        );
        let code = |missing: Missing, values: &mut [f32], dim| match missing.settle(values, dim) {
            Err(Unfit::Skip(error)) => error.code.into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(code(Missing::Drop, &mut [NAN], 1), "missing_values");
        assert_eq!(code(Missing::Fill, &mut [NAN, 1.0, NAN, 1.0], 2), "missing_values");
        assert_eq!(code(Missing::Refuse, &mut [], 2), "no_steps");
    }

    #[test]
    fn ways_have_names() {
        assert_eq!(("refuse".parse(), "drop".parse()), (Ok(Missing::Refuse), Ok(Missing::Drop)));
        assert_eq!("fill".parse(), Ok(Missing::Fill));
        assert!("zero".parse::<Missing>().is_err_and(|e| e.contains("refuse, drop or fill")));
    }
}
