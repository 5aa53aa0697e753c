//! Embeddings that a client sends back.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

/// Values of all rows together: 4 MiB, whatever a client sends.
const MOST_VALUES: usize = 1 << 20;

/// Rows of one length, one after the other: lists of lists would cost twelve times as much where they are short.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Points {
    values: Vec<f32>,
    width: usize,
}

impl Points {
    /// The rows, one after the other.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Rows)
    }
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = Points;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of embeddings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Points, A::Error> {
        let mut points = Points::default();
        while let Some(width) = rows.next_element_seed(Row(&mut points.values))? {
            if width == 0 || (points.width != 0 && points.width != width) {
                return Err(A::Error::custom("all embeddings must have the same number of values, at least one"));
            }
            points.width = width;
        }
        Ok(points)
    }
}

/// Appends a row; gives its length.
struct Row<'a>(&'a mut Vec<f32>);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an embedding: a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<usize, A::Error> {
        let before = self.0.len();
        while let Some(value) = numbers.next_element::<f32>()? {
            if self.0.len() == MOST_VALUES {
                return Err(A::Error::custom(format!("more than {MOST_VALUES} values; send fewer embeddings")));
            }
            // A number may be written that no f32 can hold.
            if !value.is_finite() {
                return Err(A::Error::custom("a value of an embedding is too large"));
            }
            self.0.push(value);
        }
        Ok(self.0.len() - before)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_one_after_the_other() {
        let points: Points = serde_json::from_str("[[1, 2.5], [-3e0, 4]]").unwrap();
        assert_eq!((points.values(), points.width(), points.count()), (&[1.0, 2.5, -3.0, 4.0][..], 2, 2));
        let none: Points = serde_json::from_str("[]").unwrap();
        assert_eq!((none.width(), none.count()), (0, 0));
    }

    #[test]
    fn what_is_no_list_of_equal_rows_is_refused() {
        for text in ["[[1], [1, 2]]", "[[], []]", "[1]", "{}", "[[null]]", "[[1e39]]", "[[\"1\"]]", "[[[1]]]"] {
            assert!(serde_json::from_str::<Points>(text).is_err(), "{text}");
        }
        let many = format!("[[{}1]]", "0,".repeat(MOST_VALUES));
        let error = serde_json::from_str::<Points>(&many).unwrap_err().to_string();
        assert!(error.contains("send fewer embeddings"), "{error}");
    }
}
