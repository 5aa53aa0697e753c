//! Text that every tool can read back.

/// Without what XML cannot hold, however it is written: the same in all formats, so that labels fit their definitions.
pub(super) fn clean(text: &str) -> String {
    let odd = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if odd(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Text for an element or an attribute of XML.
pub(super) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

/// A path as a part of an address: what has a meaning there is written as `%` and two digits.
pub(super) fn percent(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(xml("a<b>&\"c'\u{0}\n\u{ffff}é"), "a&lt;b&gt;&amp;&quot;c'\u{fffd}\u{fffd}\u{fffd}é");
        // As Python's urllib.parse.quote gives it.
        assert_eq!(percent("a b/ü&d=1#x?%+.png"), "a%20b/%C3%BC%26d%3D1%23x%3F%25%2B.png");
    }
}
