//! Sequences as small pictures: curves, pen strokes, or a map of colours.

mod curves;
mod map;
mod pen;
mod tile;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// More dimensions than this are a map, unless curves were asked for.
const MOST_CURVES: usize = 8;

/// How sequences are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A curve over time for every dimension, one above the other.
    Curves,
    /// The first dimension to the right, the second upwards, the third, where there is one, as the line's width.
    Pen,
    /// Time to the right, dimensions upwards, values as colours.
    Map,
}

impl FromStr for Style {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "curves" => Ok(Self::Curves),
            "pen" => Ok(Self::Pen),
            "map" => Ok(Self::Map),
            _ => Err(format!("'{text}' is not a way to draw sequences; use curves, pen or map")),
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Curves => "curves",
            Self::Pen => "pen strokes",
            Self::Map => "maps",
        })
    }
}

impl Style {
    /// The style that suits sequences of a dimension: pen strokes for two, or where sums of up to three were asked for,
    /// curves for up to eight, a map for more.
    pub const fn of(dim: usize, cumulative: bool) -> Self {
        match dim {
            2 => Self::Pen,
            3 if cumulative => Self::Pen,
            0..=MOST_CURVES => Self::Curves,
            _ => Self::Map,
        }
    }

    /// Whether sequences of that dimension can be drawn so.
    pub const fn fits(self, dim: usize) -> bool {
        !matches!(self, Self::Pen) || matches!(dim, 2 | 3)
    }
}

/// What all pictures of a sheet share.
#[derive(Debug)]
struct Scales {
    /// Steps over the whole width; `None` where every sequence fills it.
    steps: Option<usize>,
    /// Some values of every dimension, sorted: what heights and colours mean.
    samples: Vec<Vec<f32>>,
}

/// Values that are kept for the scales, all in all.
const SAMPLED: usize = 4 << 20;
/// A sequence this many times as long as the one in the middle would leave no room for that one.
const TOO_LONG: usize = 5;

/// Learns the scales from the sequences that will be drawn.
#[derive(Debug)]
pub struct Measure {
    dim: usize,
    style: Style,
    cumulative: bool,
    /// Steps that are kept of each.
    most: usize,
    lengths: Vec<usize>,
    samples: Vec<Vec<f32>>,
}

impl Measure {
    /// Nothing seen yet of `shown` sequences of `dim` values a step; with `cumulative`, sums are drawn.
    pub fn new(dim: usize, style: Style, cumulative: bool, shown: usize) -> Self {
        let most = (SAMPLED / (dim * shown).max(1)).clamp(4, 1024);
        Self { dim, style, cumulative, most, lengths: Vec::with_capacity(shown), samples: vec![Vec::new(); dim] }
    }

    /// Looks at one sequence.
    pub fn add(&mut self, values: &[f32]) {
        let values = added_up(values, self.dim, self.cumulative);
        let steps = values.len() / self.dim.max(1);
        self.lengths.push(steps);
        let every = steps.div_ceil(self.most).max(1);
        for step in values.chunks_exact(self.dim.max(1)).step_by(every) {
            let known = self.samples.iter_mut().zip(step).filter(|(_, value)| value.is_finite());
            known.for_each(|(sample, value)| sample.push(*value));
        }
    }

    /// The scales are known now.
    pub fn finish(self) -> Pictures {
        let Self { dim, style, cumulative, mut lengths, mut samples, .. } = self;
        samples.iter_mut().for_each(|sample| sample.sort_unstable_by(f32::total_cmp));
        lengths.sort_unstable();
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let steps = lengths.last().copied().filter(|&longest| longest <= TOO_LONG * median);
        Pictures { dim, style, cumulative, scales: Scales { steps, samples } }
    }
}

/// Draws sequences of one dimension, all on the same scales.
#[derive(Debug)]
pub struct Pictures {
    dim: usize,
    style: Style,
    cumulative: bool,
    scales: Scales,
}

impl Pictures {
    /// Height and width of every picture.
    pub fn size(&self) -> (usize, usize) {
        match self.style {
            Style::Pen => (96, 96),
            Style::Map => (self.dim.clamp(64, 120), 120),
            Style::Curves => (curves::height(self.dim), 128),
        }
    }

    /// One sequence as RGB pixels.
    pub fn draw(&self, values: &[f32]) -> Vec<u8> {
        let values = added_up(values, self.dim, self.cumulative);
        let (height, width) = self.size();
        let mut tile = tile::Tile::new(width, height);
        match self.style {
            Style::Pen => pen::draw(&mut tile, &values, self.dim, (height, width)),
            Style::Map => map::draw(&mut tile, &values, self.dim, (height, width), &self.scales),
            Style::Curves => curves::draw(&mut tile, &values, self.dim, (height, width), &self.scales),
        }
        tile.into_pixels()
    }

    /// What is drawn, for a title.
    pub fn described(&self) -> String {
        let what = match self.style {
            Style::Pen => "pen strokes",
            Style::Map => "dimensions upwards, high values bright",
            Style::Curves if self.dim == 1 => "curves over time",
            Style::Curves => "a curve over time for each dimension",
        };
        let sums = if self.cumulative { " of cumulative sums" } else { "" };
        let own = match self.style {
            Style::Pen => "",
            _ if self.scales.steps.is_none() => ", each as wide as the others",
            _ => "",
        };
        format!("{what}{sums}{own}")
    }
}

/// The values, or where sums are wanted, every step the sum of all up to it; what is missing adds nothing and stays missing.
fn added_up(values: &[f32], dim: usize, cumulative: bool) -> Cow<'_, [f32]> {
    if !cumulative {
        return Cow::Borrowed(values);
    }
    let (mut values, mut sums) = (values.to_vec(), vec![0f64; dim]);
    for step in values.chunks_exact_mut(dim.max(1)) {
        for (value, sum) in step.iter_mut().zip(&mut sums).filter(|(value, _)| value.is_finite()) {
            *sum += f64::from(*value);
            *value = *sum as f32;
        }
    }
    Cow::Owned(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_pass_over_what_is_missing() {
        let values = added_up(&[1.0, 10.0, f32::NAN, 20.0, 3.0, 30.0], 2, true).into_owned();
        assert!(values[2].is_nan());
        assert_eq!((values[0], values[1], values[3], values[4], values[5]), (1.0, 10.0, 30.0, 4.0, 60.0));
    }

    #[test]
    fn styles_have_names_and_suit_dimensions() {
        assert_eq!("pen".parse(), Ok(Style::Pen));
        assert!("dots".parse::<Style>().is_err_and(|e| e.contains("curves, pen or map")));
        let of = |dim, cumulative| Style::of(dim, cumulative);
        assert_eq!(
            [of(1, false), of(2, false), of(3, false), of(3, true)],
            [Style::Curves, Style::Pen, Style::Curves, Style::Pen]
        );
        assert_eq!((of(8, true), of(9, false)), (Style::Curves, Style::Map));
        assert!(Style::Pen.fits(3) && !Style::Pen.fits(4) && Style::Map.fits(1));
    }

    #[test]
    fn every_style_draws_and_nothing_breaks_it() {
        for (dim, style) in [(1, Style::Curves), (3, Style::Pen), (13, Style::Map), (13, Style::Curves)] {
            let values: Vec<f32> = (0..40 * dim).map(|i| (i as f32 * 0.3).sin()).collect();
            let mut measure = Measure::new(dim, style, false, 2);
            measure.add(&values);
            measure.add(&[]);
            let pictures = measure.finish();
            let (height, width) = pictures.size();
            for drawn in [&values[..], &[], &vec![f32::NAN; dim], &vec![f32::MAX; 2 * dim]] {
                assert_eq!(pictures.draw(drawn).len(), height * width * 3);
            }
            assert!(pictures.draw(&values).iter().any(|&value| value < 200), "{style:?}");
        }
    }
}
