//! Sequences as pictures: curves, pen strokes, or a map of colours.

mod curves;
mod map;
mod pen;
mod tile;

use std::fmt;
use std::str::FromStr;

use dtkc_dataset::{DataError, Dataset};

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

/// Draws sequences of one set, all on the same scales.
#[derive(Debug)]
pub struct Drawer<'a> {
    dataset: &'a Dataset,
    dim: usize,
    style: Style,
    cumulative: bool,
    scales: Scales,
}

/// What all pictures of a sheet share.
#[derive(Debug)]
pub struct Scales {
    /// Steps over the whole width; `None` where every sequence fills it.
    steps: Option<usize>,
    /// Some values of every dimension, sorted: what heights and colours mean.
    samples: Vec<Vec<f32>>,
}

/// Values that are kept for the scales, all in all.
const SAMPLED: usize = 4 << 20;
/// A sequence this many times as long as the one in the middle would leave no room for that one.
const TOO_LONG: usize = 5;

impl<'a> Drawer<'a> {
    /// Looks at the sequences that will be drawn. `None` for the style chooses one by the dimension: pen strokes for two, or where
    /// sums of up to three were asked for, curves for up to eight, a map for more.
    pub fn new(dataset: &'a Dataset, style: Option<Style>, cumulative: bool, shown: &[usize]) -> anyhow::Result<Self> {
        let Some(dim) = dataset.shape().dim() else { anyhow::bail!("only sequences can be drawn as curves") };
        let style = style.unwrap_or(match dim {
            2 => Style::Pen,
            3 if cumulative => Style::Pen,
            _ if dim <= MOST_CURVES => Style::Curves,
            _ => Style::Map,
        });
        if style == Style::Pen && !(2..=3).contains(&dim) {
            let text =
                format!("pen strokes need 2 or 3 values a step and there are {dim}; use --draw curves or --draw map");
            return Err(dtkc_cli::Usage(text).into());
        }
        let scales = Scales { steps: None, samples: vec![Vec::new(); dim] };
        let mut drawer = Self { dataset, dim, style, cumulative, scales };
        drawer.measure(shown)?;
        Ok(drawer)
    }

    fn measure(&mut self, shown: &[usize]) -> Result<(), DataError> {
        let mut lengths = Vec::with_capacity(shown.len());
        let most = (SAMPLED / (self.dim * shown.len().max(1))).clamp(4, 1024);
        for &index in shown {
            let values = self.values(index)?;
            lengths.push(values.len() / self.dim);
            let every = (values.len() / self.dim).div_ceil(most).max(1);
            for step in values.chunks_exact(self.dim).step_by(every) {
                let known = self.scales.samples.iter_mut().zip(step).filter(|(_, value)| value.is_finite());
                known.for_each(|(sample, value)| sample.push(*value));
            }
        }
        self.scales.samples.iter_mut().for_each(|sample| sample.sort_unstable_by(f32::total_cmp));
        lengths.sort_unstable();
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        self.scales.steps = lengths.last().copied().filter(|&longest| longest <= TOO_LONG * median);
        Ok(())
    }

    /// The values that are drawn.
    fn values(&self, index: usize) -> Result<Vec<f32>, DataError> {
        let mut values = self.dataset.read_sequence(index)?;
        if self.cumulative {
            add_up(&mut values, self.dim);
        }
        Ok(values)
    }

    /// Height and width of every picture.
    pub fn size(&self) -> (usize, usize) {
        match self.style {
            Style::Pen => (96, 96),
            Style::Map => (self.dim.clamp(64, 120), 120),
            Style::Curves => (curves::height(self.dim), 128),
        }
    }

    /// One sequence as RGB pixels.
    pub fn picture(&self, index: usize) -> Result<Vec<u8>, DataError> {
        let values = self.values(index)?;
        let (height, width) = self.size();
        let mut tile = tile::Tile::new(width, height);
        match self.style {
            Style::Pen => pen::draw(&mut tile, &values, self.dim, (height, width)),
            Style::Map => map::draw(&mut tile, &values, self.dim, (height, width), &self.scales),
            Style::Curves => curves::draw(&mut tile, &values, self.dim, (height, width), &self.scales),
        }
        Ok(tile.into_pixels())
    }

    /// What is drawn, for the title.
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

/// Every step becomes the sum of all up to it; what is missing adds nothing and stays missing.
fn add_up(values: &mut [f32], dim: usize) {
    let mut sums = vec![0f64; dim];
    for step in values.chunks_exact_mut(dim) {
        for (value, sum) in step.iter_mut().zip(&mut sums).filter(|(value, _)| value.is_finite()) {
            *sum += f64::from(*value);
            *value = *sum as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_pass_over_what_is_missing() {
        let mut values = [1.0, 10.0, f32::NAN, 20.0, 3.0, 30.0];
        add_up(&mut values, 2);
        assert!(values[2].is_nan());
        assert_eq!((values[0], values[1], values[3], values[4], values[5]), (1.0, 10.0, 30.0, 4.0, 60.0));
    }

    #[test]
    fn styles_have_names() {
        assert_eq!("pen".parse(), Ok(Style::Pen));
        assert!("dots".parse::<Style>().is_err_and(|e| e.contains("curves, pen or map")));
    }
}
