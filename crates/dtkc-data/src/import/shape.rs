//! Which size and colour the dataset gets where the user does not say.
//!
//! - Sources of one size keep it.
//! - Images of several sizes get the most common one, where at least half of them have it.
//! - Otherwise, and where images are larger than [`MAX_SIDE`], they get [`DEFAULT_SIDE`] x
//!   [`DEFAULT_SIDE`]: this is what the networks are made for.
//! - Colour is kept where any image has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use dtkc_item::{Color, ImageShape, ImageSpec, Resize};

use super::ImportError;
use super::record::{ContentForm, Importer, Sample};

/// Larger images are made smaller unless `--size` says otherwise.
pub const MAX_SIDE: u32 = 256;
/// The size of photographs and of mixed collections.
pub const DEFAULT_SIDE: u32 = 64;
/// Headers that are looked at in each source.
const SAMPLES: usize = 256;
/// Nobody clusters larger images, and a wrong number should not fill the disk.
const LARGEST: usize = 8192;

/// A size as the user gives it: height x width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |t: &str| t.trim().parse().ok().filter(|s| (1..=LARGEST).contains(s));
        let parts: Vec<&str> = text.split(['x', 'X']).collect();
        let size = match parts[..] {
            [both] => side(both).map(|s| Self { height: s, width: s }),
            [height, width] => side(height).zip(side(width)).map(|(height, width)| Self { height, width }),
            _ => None,
        };
        size.ok_or_else(|| {
            format!("'{text}' is not a size; write height x width, for example 28x28 (at most {LARGEST})")
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

/// What the user said about the shape.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// `--size`.
    pub size: Option<Size>,
    /// `--color`.
    pub color: Option<Color>,
    /// `--resize`.
    pub resize: Option<Resize>,
}

/// What the images of the dataset are like, with remarks where that was not obvious.
pub fn choose(
    sources: &mut [Box<dyn Importer>],
    wanted: Wanted,
    notes: &mut Vec<String>,
) -> Result<ImageSpec, ImportError> {
    let mut samples = Vec::new();
    // With both given there is nothing to look for.
    if wanted.size.is_none() || wanted.color.is_none() {
        for source in sources.iter_mut() {
            match source.describe().form {
                ContentForm::Pixels(ImageShape { height, width, channels }) => {
                    samples.push(Sample { height: height as u32, width: width as u32, rgb: channels == 3 });
                }
                ContentForm::Encoded => samples.extend(source.samples(SAMPLES)?),
                ContentForm::Sequences { .. } => {}
            }
        }
    }
    let color = wanted.color.unwrap_or_else(|| color_of(&samples));
    let (size, note) = match wanted.size {
        Some(size) => (size, None),
        None => size_of(&samples),
    };
    notes.extend(note);
    let resize = wanted.resize.unwrap_or_else(|| resize_of(sources, notes));
    Ok(ImageSpec { height: size.height, width: size.width, color, resize })
}

/// The rule that the sources were made with already, where they say one and the same.
fn resize_of(sources: &[Box<dyn Importer>], notes: &mut Vec<String>) -> Resize {
    let rules: BTreeSet<String> = sources.iter().filter_map(|s| Some(s.describe().resize?.to_string())).collect();
    let own = sources.iter().find_map(|s| s.describe().resize);
    if rules.len() < 2 {
        return own.unwrap_or_default();
    }
    let (rules, used) = (rules.into_iter().collect::<Vec<_>>().join(", "), Resize::default());
    notes.push(format!(
        "the sources were brought to size in several ways ({rules}); {used} is taken (choose with --resize)"
    ));
    used
}

fn color_of(samples: &[Sample]) -> Color {
    // Nothing readable: the import will say so itself, image by image.
    if samples.iter().any(|s| s.rgb) { Color::Rgb } else { Color::Gray }
}

fn size_of(samples: &[Sample]) -> (Size, Option<String>) {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for sample in samples {
        *counts.entry((sample.height, sample.width)).or_default() += 1;
    }
    let side = DEFAULT_SIDE as usize;
    let default = Size { height: side, width: side };
    // Of equally common sizes the largest wins, whatever the order of the images.
    let Some((&(height, width), &count)) = counts.iter().max_by_key(|&(size, count)| (*count, *size)) else {
        return (default, None);
    };
    let common = Size { height: height as usize, width: width as usize };
    let sizes = counts.len();
    if height > MAX_SIDE || width > MAX_SIDE {
        let what = if sizes == 1 {
            format!("images are {common}")
        } else {
            format!("images have {sizes} sizes, such as {common}")
        };
        return (default, Some(format!("{what}; they are reduced to {default} (choose with --size HxW)")));
    }
    match sizes {
        1 => (common, None),
        _ if 2 * count >= samples.len() => (
            common,
            Some(format!(
                "images have {sizes} sizes; all are brought to {common}, the most common (choose with --size HxW)"
            )),
        ),
        _ => (
            default,
            Some(format!(
                "images have {sizes} sizes, such as {common}; all are brought to {default} (choose with --size HxW)"
            )),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(list: &[(u32, u32)]) -> Vec<Sample> {
        list.iter().map(|&(height, width)| Sample { height, width, rgb: false }).collect()
    }

    fn chosen(list: &[(u32, u32)]) -> (String, bool) {
        let (size, note) = size_of(&samples(list));
        (size.to_string(), note.is_some())
    }

    #[test]
    fn the_common_size_wins() {
        assert_eq!(chosen(&[(28, 28), (28, 28)]), ("28x28".to_owned(), false));
        assert_eq!(chosen(&[(28, 30), (28, 30), (10, 10)]), ("28x30".to_owned(), true));
        assert_eq!(chosen(&[(28, 28), (20, 20), (10, 10)]), ("64x64".to_owned(), true));
        assert_eq!(chosen(&[(3000, 4000), (3000, 4000)]), ("64x64".to_owned(), true));
        assert_eq!(chosen(&[]), ("64x64".to_owned(), false));
    }

    #[test]
    fn one_coloured_image_keeps_colour() {
        let mut list = samples(&[(28, 28), (28, 28)]);
        assert_eq!(color_of(&list), Color::Gray);
        list[1].rgb = true;
        assert_eq!(color_of(&list), Color::Rgb);
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!("28x30".parse(), Ok(Size { height: 28, width: 30 }));
        assert_eq!("64".parse(), Ok(Size { height: 64, width: 64 }));
        for text in ["", "x", "0x3", "28x", "1x2x3", "-1x4", "9000x9000"] {
            assert!(text.parse::<Size>().is_err_and(|e| e.contains("28x28")), "{text}");
        }
    }
}
