//! `shard-{000..099}.tar`: names of shards by their numbers, as WebDataset and shells write them.

use crate::SourceError;

/// Names that one text may stand for.
const MAX_NAMES: usize = 1 << 20;

/// The texts that one with ranges of numbers stands for, in their order; `None` where there is no range in it. Other braces,
/// such as `{png,jpg}`, are left to patterns.
pub(crate) fn expand(text: &str) -> Option<Result<Vec<String>, SourceError>> {
    let first = Range::find(text)?;
    let mut names = vec![String::new()];
    let (mut rest, mut next) = (text, Some(first));
    while let Some((start, end, range)) = next {
        let most = MAX_NAMES as u128;
        if range.count().saturating_mul(names.len() as u128) > most {
            let reason = format!("stands for more than {MAX_NAMES} names; name fewer at a time");
            return Some(Err(SourceError::input(text, reason)));
        }
        let numbers: Vec<String> = range.numbers().collect();
        let before = &rest[..start];
        names = names.iter().flat_map(|name| numbers.iter().map(move |n| format!("{name}{before}{n}"))).collect();
        rest = &rest[end..];
        next = Range::find(rest);
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Some(Ok(names))
}

/// `{FIRST..LAST}` or `{FIRST..LAST..STEP}`.
struct Range {
    first: u64,
    last: u64,
    step: u64,
    /// Digits, filled with zeros; 0 where numbers are written as they are.
    width: usize,
}

impl Range {
    /// The first range of a text, and from where to where it goes.
    fn find(text: &str) -> Option<(usize, usize, Self)> {
        let mut at = 0;
        while let Some(start) = text[at..].find('{').map(|place| at + place) {
            let end = start + text[start..].find('}')?;
            if let Some(range) = Self::read(&text[start + 1..end]) {
                return Some((start, end + 1, range));
            }
            at = start + 1;
        }
        None
    }

    fn read(inner: &str) -> Option<Self> {
        let mut parts = inner.split("..");
        let (first, last, step) = (parts.next()?, parts.next()?, parts.next());
        let digits = |text: &str| !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit());
        if parts.next().is_some() || !digits(first) || !digits(last) || !step.is_none_or(digits) {
            return None;
        }
        let filled = |text: &str| text.len() > 1 && text.starts_with('0');
        let width = if filled(first) || filled(last) { first.len().max(last.len()) } else { 0 };
        let step = step.map_or(Some(1), |step| step.parse().ok())?;
        Some(Self { first: first.parse().ok()?, last: last.parse().ok()?, step: std::cmp::max(step, 1), width })
    }

    fn count(&self) -> u128 {
        u128::from(self.first.abs_diff(self.last) / self.step) + 1
    }

    fn numbers(&self) -> impl Iterator<Item = String> {
        let Self { first, last, step, width } = *self;
        let steps = 0..=first.abs_diff(last) / step;
        let number = move |i: u64| if first <= last { first + i * step } else { first - i * step };
        steps.map(move |i| format!("{:0width$}", number(i)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_names() {
        let names = |text: &str| expand(text).unwrap().unwrap();
        assert_eq!(names("s-{008..011}.tar"), ["s-008.tar", "s-009.tar", "s-010.tar", "s-011.tar"]);
        assert_eq!(names("{9..10}"), ["9", "10"]);
        assert_eq!(
            names("{2..0}/{0..4..2}x"),
            ["2/0x", "2/2x", "2/4x", "1/0x", "1/2x", "1/4x", "0/0x", "0/2x", "0/4x"]
        );
        assert_eq!(names("{a,b}-{1..1}.{png,jpg}"), ["{a,b}-1.{png,jpg}"]);
        assert_eq!(names("{0..0..0}"), ["0"]);
    }

    #[test]
    fn what_is_no_range_stays_and_endless_ones_are_refused() {
        for text in ["a.png", "{a,b}", "{1..}", "{..2}", "{1..2..3..4}", "{-1..2}", "{a..c}", "{1..2", "1..2}"] {
            assert!(expand(text).is_none(), "{text}");
        }
        for text in ["{0..99999999999999999}", "{0..1023}{0..1024}"] {
            assert!(expand(text).unwrap().unwrap_err().to_string().contains("more than 1048576 names"), "{text}");
        }
    }
}
