//! Numbers as people write and read them: counts, bytes, durations and rates; and text for their spreadsheets. No
//! dependencies.

mod cell;

use std::time::Duration;

pub use cell::{cell, from_cell};

/// `1234567` as `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Bytes in binary units: `1.5 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A duration with the two units that matter: `1 h 12 min`, `3 min 5 s`, `4.2 s`, `15 ms`.
pub fn duration(d: Duration) -> String {
    let s = d.as_secs();
    match s {
        0 if d.as_millis() < 1000 => format!("{} ms", d.as_millis()),
        0..60 => format!("{:.1} s", d.as_secs_f64()),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// Things per second with the digits that matter: `1,310/s`, `12.3/s`, `0.42/s`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 100.0 => format!("{}/s", count(r as u64)),
        r if r >= 10.0 => format!("{r:.1}/s"),
        r if r > 0.0 => format!("{r:.2}/s"),
        _ => "0/s".into(),
    }
}

/// Reads a size such as `2GiB`, `512 MB`, `1g` or `1048576`. Binary and decimal units are told apart by
/// the `i`; a single letter is binary.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is not a size; write for example 2GiB, 500MB or a number of bytes");
    let (value, unit) = split_number(text).ok_or_else(bad)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024f64.powi(2),
        "g" | "gib" => 1024f64.powi(3),
        "t" | "tib" => 1024f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(bad()),
    };
    let n = value * factor;
    if n.is_finite() && n < u64::MAX as f64 { Ok(n as u64) } else { Err(bad()) }
}

/// Reads a duration such as `90s`, `15m`, `1.5h` or `2d`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is not a duration; write for example 90s, 15m or 1.5h");
    let (value, unit) = split_number(text).ok_or_else(bad)?;
    let seconds = match unit {
        "" | "s" | "sec" => value,
        "ms" => value / 1e3,
        "m" | "min" => value * 60.0,
        "h" => value * 3600.0,
        "d" => value * 86400.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| bad())
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value = text[..end].parse().ok()?;
    Some((value, text[end..].trim()))
}

/// A number with its noun: `1 epoch`, `12 epochs`.
pub fn many(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", self::count(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(7), "7");
        assert_eq!(count(60_000), "60,000");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_572_864), "1.5 MiB");
        assert_eq!(duration(Duration::from_millis(15)), "15 ms");
        assert_eq!(duration(Duration::from_millis(4200)), "4.2 s");
        assert_eq!(duration(Duration::from_secs(185)), "3 min 5 s");
        assert_eq!(duration(Duration::from_secs(4320)), "1 h 12 min");
    }

    #[test]
    fn rates_have_the_digits_that_matter() {
        for (per_second, expected) in [
            (1_310.713_1, "1,310/s"),
            (100.0, "100/s"),
            (12.34, "12.3/s"),
            (9.999, "10.00/s"),
            (0.42, "0.42/s"),
            (0.0, "0/s"),
            (f64::NAN, "0/s"),
        ] {
            assert_eq!(rate(per_second), expected);
        }
    }

    #[test]
    fn sizes_and_durations_are_parsed() {
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("500 MB"), Ok(500_000_000));
        assert_eq!(parse_bytes("1g"), Ok(1 << 30));
        assert_eq!(parse_bytes("17"), Ok(17));
        assert_eq!(parse_duration("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(parse_duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "x", "-1", "3 parsecs", "1e400", "..", "99999999999999999999999999g"] {
            assert!(parse_bytes(text).is_err_and(|e| e.contains("2GiB")), "{text}");
        }
        assert!(parse_duration("soon").is_err_and(|e| e.contains("90s")));
    }
}
