//! The number of clusters: given, or to be found.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// How many clusters to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clusters {
    /// This many.
    Fixed(usize),
    /// Try a range and take the best.
    Auto,
    /// Nobody has said yet.
    Unset,
}

impl FromStr for Clusters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            ("unset", _) => Ok(Self::Unset),
            (_, Ok(0 | 1)) => Err(format!("{text} is no number of clusters; ask for at least 2, or auto")),
            (_, Ok(k)) => Ok(Self::Fixed(k)),
            _ => Err(format!("'{text}' is no number of clusters; write a number such as 10, or auto")),
        }
    }
}

impl fmt::Display for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(k) => write!(f, "{k}"),
            Self::Auto => f.write_str("auto"),
            Self::Unset => f.write_str("unset"),
        }
    }
}

impl Serialize for Clusters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(k) => serializer.serialize_u64(*k as u64),
            other => serializer.serialize_str(&other.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Clusters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Word(String),
        }
        let text = match Either::deserialize(deserializer)? {
            Either::Number(k) => k.to_string(),
            Either::Word(word) => word,
        };
        text.parse().map_err(D::Error::custom)
    }
}

/// The numbers of clusters that are tried, both ends included: `5..15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KRange {
    /// The smallest.
    pub first: usize,
    /// The largest.
    pub last: usize,
}

impl Default for KRange {
    fn default() -> Self {
        Self { first: 2, last: 15 }
    }
}

impl FromStr for KRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("'{text}' is no range of clusters; write for example 5..15 (both are tried, 2 is the least)");
        let (first, last) = text.split_once("..").ok_or_else(bad)?;
        let last = last.strip_prefix('=').unwrap_or(last);
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 2 <= first && first <= last && last - first < 1000 => Ok(Self { first, last }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for KRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

impl Serialize for KRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_auto() {
        assert_eq!("10".parse(), Ok(Clusters::Fixed(10)));
        assert_eq!("auto".parse(), Ok(Clusters::Auto));
        for bad in ["1", "0", "-3", "ten", "", "3.5"] {
            assert!(bad.parse::<Clusters>().unwrap_err().contains("number of clusters"), "{bad}");
        }
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!("5..15".parse(), Ok(KRange { first: 5, last: 15 }));
        assert_eq!("5..=15".parse(), Ok(KRange { first: 5, last: 15 }));
        for bad in ["5", "15..5", "1..4", "a..b", "2..9999", ".."] {
            assert!(bad.parse::<KRange>().unwrap_err().contains("5..15"), "{bad}");
        }
    }
}
