//! A few of many, spread evenly: what stands for a whole that is too large to be looked at.

/// At most `most` of `n` places, ascending and evenly spread; the same ones for the same two numbers.
pub(crate) fn spread(n: usize, most: usize) -> impl ExactSizeIterator<Item = usize> {
    let count = n.min(most);
    (0..count).map(move |i| i * n / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_even_and_ascending() {
        let of = |n, most| spread(n, most).collect::<Vec<_>>();
        assert_eq!(of(3, 10), [0, 1, 2]);
        assert_eq!(of(10, 4), [0, 2, 5, 7]);
        assert!(of(0, 4).is_empty() && of(4, 0).is_empty());
        assert!(of(1_000_000, 60_000).windows(2).all(|pair| pair[0] < pair[1]));
    }
}
