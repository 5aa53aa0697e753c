//! All keys within a distance of a given one, found without looking at all of them and without missing any.
//!
//! A key of 64 bits is cut into five parts. Two keys that differ in at most nine bits differ in at most one bit in one of
//! the parts at least: two or more in each would be ten. So for each part there is a table sorted by its value, and only
//! the keys are compared that have the same value there, or one of those that differ in one bit. (Multi-index hashing:
//! Norouzi, Punjani, Fleet 2012.)

/// The most bits in which keys that are found differ.
pub const REACH: u32 = 9;

/// Where each part begins, and how many bits it has.
const PARTS: [(u32, u32); 5] = [(0, 13), (13, 13), (26, 13), (39, 13), (52, 12)];

/// Keys that are looked at together.
const TOGETHER: usize = 16;

/// Keys, sorted by each of their parts: 60 bytes a key.
pub struct Index {
    tables: Vec<Table>,
}

struct Table {
    /// Where the keys of each value begin, and the end.
    starts: Vec<u32>,
    /// Beside the places, because they are looked at one after the other.
    keys: Vec<u64>,
    places: Vec<u32>,
}

fn part(key: u64, (start, bits): (u32, u32)) -> usize {
    (key >> start) as usize & ((1 << bits) - 1)
}

impl Index {
    /// Of keys with their places.
    pub fn new(keys: impl Iterator<Item = (u64, u32)> + Clone) -> Self {
        Self { tables: PARTS.map(|which| Table::new(keys.clone(), which)).into() }
    }

    /// Shows every place once whose key differs in at most `reach` bits, and [`REACH`].
    pub fn near(&self, key: u64, reach: u32, mut found: impl FnMut(u32)) {
        let reach = reach.min(REACH);
        for (number, (table, which)) in self.tables.iter().zip(PARTS).enumerate() {
            let value = part(key, which);
            let flips = (0..which.1).map(|bit| value ^ 1 << bit);
            for value in std::iter::once(value).chain(flips) {
                let (keys, places) = table.of(value);
                for (keys, places) in keys.chunks(TOGETHER).zip(places.chunks(TOGETHER)) {
                    // Hardly ever is one near; this is all that most of them cost, and the compiler does several at once.
                    if keys.iter().map(|other| (key ^ other).count_ones()).fold(64, u32::min) > reach {
                        continue;
                    }
                    for (other, place) in keys.iter().zip(places) {
                        let differing = key ^ other;
                        if differing.count_ones() <= reach && first(differing) == number {
                            found(*place);
                        }
                    }
                }
            }
        }
    }
}

/// The first table in which keys are found that differ in these bits: they are shown there only.
fn first(differing: u64) -> usize {
    let close = |which: &(u32, u32)| part(differing, *which).count_ones() <= 1;
    PARTS.iter().position(close).unwrap_or(PARTS.len())
}

impl Table {
    /// Sorted by counting.
    fn new(keys: impl Iterator<Item = (u64, u32)> + Clone, which: (u32, u32)) -> Self {
        let mut starts = vec![0u32; (1 << which.1) + 1];
        keys.clone().for_each(|(key, _)| starts[part(key, which) + 1] += 1);
        for value in 1..starts.len() {
            starts[value] += starts[value - 1];
        }
        let total = starts[starts.len() - 1] as usize;
        let (mut sorted, mut places, mut next) = (vec![0; total], vec![0; total], starts.clone());
        for (key, place) in keys {
            let at = &mut next[part(key, which)];
            sorted[*at as usize] = key;
            places[*at as usize] = place;
            *at += 1;
        }
        Self { starts, keys: sorted, places }
    }

    fn of(&self, value: usize) -> (&[u64], &[u32]) {
        let range = self.starts[value] as usize..self.starts[value + 1] as usize;
        (&self.keys[range.clone()], &self.places[range])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Keys around each other at every distance, compared with all of them.
        #[test]
        fn nothing_within_reach_is_missed_and_nothing_is_shown_twice(
            base in any::<u64>(), flips in prop::collection::vec(prop::collection::vec(0..64u32, 0..14), 0..60), reach in 0..=12u32,
        ) {
            let keys: Vec<u64> = flips.iter().map(|bits| bits.iter().fold(base, |key, bit| key ^ 1 << bit)).collect();
            let index = Index::new(keys.iter().copied().zip(0..));
            let mut found = Vec::new();
            index.near(base, reach, |place| found.push(place));
            found.sort_unstable();
            let near = |key: &u64| (key ^ base).count_ones() <= reach.min(REACH);
            let expected: Vec<u32> = (0..).zip(&keys).filter(|(_, key)| near(key)).map(|(place, _)| place).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn parts_cover_a_key_and_the_reach_follows_from_them() {
        assert_eq!(PARTS.iter().map(|(_, bits)| bits).sum::<u32>(), 64);
        assert_eq!(REACH, 2 * PARTS.len() as u32 - 1);
    }
}
