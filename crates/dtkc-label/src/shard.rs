//! `--shard I/N`: which images belong to one of N machines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Consecutive images that stay together. Large enough that a machine reads an HDF5 file in runs, small
/// enough that the shards of a small collection are of similar size.
const PART: u64 = 64;

/// One of `count` shares of the input. Part `p` (64 consecutive images) belongs to shard `p mod count`, whatever
/// the batch size, so every image is in exactly one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which share, from 1.
    pub number: u64,
    /// How many shares.
    pub count: u64,
}

impl Shard {
    /// Everything: the only share of one.
    pub const WHOLE: Shard = Shard { number: 1, count: 1 };

    /// True where the image at that position belongs to this share.
    pub fn owns(self, index: u64) -> bool {
        Self::of(index, self.count) == self
    }

    /// The share of `count` that the image at that position belongs to.
    pub fn of(index: u64, count: u64) -> Self {
        Self { number: index / PART % count.max(1) + 1, count }
    }

    /// How many of `total` images belong to this share.
    pub fn size(self, total: u64) -> u64 {
        let parts = total / PART;
        let whole = parts / self.count + u64::from(parts % self.count >= self.number);
        let rest = if parts % self.count == self.number - 1 { total % PART } else { 0 };
        whole * PART + rest
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a shard; write I/N with I from 1 to N, for example 2/8");
        let (number, count) = text.split_once('/').ok_or_else(bad)?;
        let number = number.trim().parse().map_err(|_| bad())?;
        let count = count.trim().parse().map_err(|_| bad())?;
        if number == 0 || number > count { Err(bad()) } else { Ok(Self { number, count }) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_image_is_in_exactly_one_shard(count in 1..20u64, total in 0..5000u64) {
            let shards: Vec<Shard> = (1..=count).map(|number| Shard { number, count }).collect();
            for index in 0..total {
                prop_assert_eq!(shards.iter().filter(|s| s.owns(index)).count(), 1);
            }
            for shard in shards {
                prop_assert_eq!(shard.size(total), (0..total).filter(|&i| shard.owns(i)).count() as u64);
            }
        }
    }

    #[test]
    fn shards_are_read_and_nonsense_is_refused() {
        assert_eq!("2/8".parse(), Ok(Shard { number: 2, count: 8 }));
        for text in ["", "3", "0/4", "5/4", "1/0", "a/b", "-1/2", "1/2/3"] {
            assert!(text.parse::<Shard>().is_err_and(|e| e.contains("2/8")), "{text}");
        }
    }
}
