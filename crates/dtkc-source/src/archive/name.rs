//! Names from archives, fit to be shown.

/// A name as a relative path with `/`: no root, no drive, no `.` and `..`, no control characters. It is for people and
/// for finding the entry again, never for writing a file.
pub(crate) fn clean(raw: &str) -> String {
    let mut clean = String::with_capacity(raw.len());
    for part in raw.split(['/', '\\']) {
        let drive = clean.is_empty() && matches!(part.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
        if part.is_empty() || part == "." || part == ".." || drive {
            continue;
        }
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.extend(part.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_relative_and_readable() {
        for (raw, expected) in [
            ("a/b.png", "a/b.png"),
            ("./a//b.png", "a/b.png"),
            ("/etc/a.png", "etc/a.png"),
            ("../../b.png", "b.png"),
            ("a/../b.png", "a/b.png"),
            ("C:\\win\\c.png", "win/c.png"),
            ("time: 12:/d.png", "time: 12:/d.png"),
            ("red\u{1b}[31m.png", "red\u{fffd}[31m.png"),
            ("two\nlines.png", "two\u{fffd}lines.png"),
            ("./", ""),
        ] {
            assert_eq!(clean(raw), expected, "{raw:?}");
        }
    }
}
