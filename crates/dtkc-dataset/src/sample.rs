//! Random samples that can be repeated.

use crate::loader::places;

/// `count` of `items` drawn at random, in the order that they had; all of them where `count` is larger.
/// The same seed gives the same sample.
pub fn sample(items: &[usize], count: usize, seed: u64) -> Vec<usize> {
    let mut places = places(items.len(), seed, u64::MAX, 0);
    places.truncate(count);
    places.sort_unstable();
    places.into_iter().map(|place| items[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_ordered_distinct_and_repeatable() {
        let items: Vec<usize> = (100..200).collect();
        let drawn = sample(&items, 10, 3);
        assert_eq!(drawn.len(), 10);
        assert!(drawn.is_sorted_by(|a, b| a < b));
        assert_eq!(drawn, sample(&items, 10, 3));
        assert_ne!(drawn, sample(&items, 10, 4));
        assert_eq!(sample(&items, 1000, 3), items);
    }
}
