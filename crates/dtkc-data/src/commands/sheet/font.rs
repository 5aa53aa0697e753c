//! A 5x7 dot font for printable ASCII. Everything else is drawn as an empty box.

/// Dots per character.
pub const WIDTH: usize = 5;
/// Dots per line.
pub const HEIGHT: usize = 7;
/// Dots from one character to the next.
pub const ADVANCE: usize = WIDTH + 1;

/// Bands of sixteen characters from the space on, `#` where there is a dot; the last one is the box.
const FONT: &str = include_str!("font.txt");
const PER_BAND: usize = 16;
const BOX: usize = 95;

/// Width of a text in dots.
pub fn width(text: &str) -> usize {
    (text.chars().count() * ADVANCE).saturating_sub(ADVANCE - WIDTH)
}

/// Cuts a text to at most `most` characters, with dots at the end where something is missing.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(2)).collect();
    format!("{}..", kept.trim_end())
}

/// Columns and rows of a character's dots.
pub fn dots(character: char) -> impl Iterator<Item = (usize, usize)> {
    let place = match character {
        ' '..='~' => character as usize - ' ' as usize,
        _ => BOX,
    };
    let (band, left) = (place / PER_BAND, place % PER_BAND * ADVANCE);
    let rows = FONT.lines().skip(band * (HEIGHT + 1)).take(HEIGHT);
    rows.enumerate().flat_map(move |(y, line)| {
        let cell = line.as_bytes().get(left..left + WIDTH).unwrap_or_default();
        cell.iter().enumerate().filter(|&(_, &dot)| dot == b'#').map(move |(x, _)| (x, y))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_there_and_unlike_the_others() {
        let mut seen = std::collections::HashSet::new();
        for character in (' '..='~').chain(['\u{e9}']) {
            let drawn: Vec<_> = dots(character).collect();
            assert!(drawn.is_empty() == (character == ' '), "{character}");
            assert!(drawn.iter().all(|&(x, y)| x < WIDTH && y < HEIGHT));
            assert!(seen.insert(drawn), "{character} looks like another one");
        }
        let lines: Vec<&str> = FONT.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 6 * HEIGHT);
        assert!(lines.iter().all(|line| line.len() == PER_BAND * ADVANCE - 1));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shorten("cat", 5), "cat");
        assert_eq!(shorten("T-shirt/top", 8), "T-shir..");
        assert_eq!(width("ab"), 11);
    }
}
