//! Text that people open in a spreadsheet.
//!
//! A cell that begins with one of a few characters is taken for a formula there, which may fetch from the network or
//! start a program. File names come from anywhere, so such a text is given an apostrophe in front, which spreadsheets
//! know as "this is text". It is taken away again when the file is read back.

use std::borrow::Cow;

/// What a formula begins with, also in the wide forms of East Asian keyboards. Spaces in front of it are trimmed by some
/// programs.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// The text for a cell of a CSV file: harmless, and only changed where it would not be. Not for numbers.
pub fn cell(text: &str) -> Cow<'_, str> {
    match is_guarded(text) || is_formula(text) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// The text that [`cell`] was given.
pub fn from_cell(cell: &str) -> &str {
    if is_guarded(cell) { &cell[1..] } else { cell }
}

fn is_formula(text: &str) -> bool {
    text.trim_start_matches(' ').starts_with(FORMULA)
}

/// Whether apostrophes stand before what would be a formula: one more keeps apart what was so from what was made so.
fn is_guarded(text: &str) -> bool {
    let rest = text.trim_start_matches('\'');
    rest.len() < text.len() && is_formula(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text_and_come_back() {
        for text in ["=1+1", "+1", "-1.png", "@x", "\t=1", "\r", " =1", "\u{ff1d}1", "'=1", "''@", "-", "' =x"] {
            let safe = cell(text);
            assert_eq!(safe, format!("'{text}"));
            assert_eq!(from_cell(&safe), text);
        }
        for text in ["", "a=1", "photo.png", "'tis.png", "'", "''", "1-2", "\u{e4}", " x", "' x"] {
            assert_eq!((cell(text), from_cell(text)), (Cow::Borrowed(text), text));
        }
    }
}
