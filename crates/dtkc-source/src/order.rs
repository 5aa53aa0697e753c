//! Names in the order that people expect: `img2` before `img10`.

use std::cmp::Ordering;

/// Compares runs of digits by value and everything else byte by byte. Total: equal only for equal names.
pub fn natural(a: &str, b: &str) -> Ordering {
    // "01" and "1" have the same value; the bytes decide, so that the order is the same everywhere.
    by_value(a, b).then_with(|| a.cmp(b))
}

/// The same without the last word of the bytes: names that differ only in leading zeros are equal.
pub(crate) fn by_value(a: &str, b: &str) -> Ordering {
    let (x, y) = (a.as_bytes(), b.as_bytes());
    let (mut i, mut j) = (0, 0);
    while i < x.len() && j < y.len() {
        if x[i].is_ascii_digit() && y[j].is_ascii_digit() {
            let (m, n) = (digits_end(x, i), digits_end(y, j));
            let order = compare_digits(&x[i..m], &y[j..n]);
            if order != Ordering::Equal {
                return order;
            }
            (i, j) = (m, n);
        } else if x[i] != y[j] {
            return x[i].cmp(&y[j]);
        } else {
            (i, j) = (i + 1, j + 1);
        }
    }
    (x.len() - i).cmp(&(y.len() - j))
}

fn digits_end(text: &[u8], start: usize) -> usize {
    start + text[start..].iter().take_while(|c| c.is_ascii_digit()).count()
}

fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    let strip = |s: &[u8]| s.iter().position(|&c| c != b'0').unwrap_or(s.len());
    let (a, b) = (&a[strip(a)..], &b[strip(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_count_by_value() {
        let mut names = vec!["obj10__0", "obj2__5", "obj2__40", "a", "obj02__5", "obj", "obj2__005"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a", "obj", "obj02__5", "obj2__005", "obj2__5", "obj2__40", "obj10__0"]);
    }

    proptest! {
        #[test]
        fn it_is_a_total_order(a in "[a-c0-3/]{0,6}", b in "[a-c0-3/]{0,6}", c in "[a-c0-3/]{0,6}") {
            prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            prop_assert_eq!(natural(&a, &b) == Ordering::Equal, a == b);
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                prop_assert!(natural(&a, &c).is_le());
            }
        }
    }
}
