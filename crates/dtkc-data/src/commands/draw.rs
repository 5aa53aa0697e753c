//! Sequences of a dataset as pictures.

use dtkc_dataset::{DataError, Dataset};
use dtkc_draw::{Measure, Pictures, Style};

/// Draws sequences of one set, all on the same scales.
#[derive(Debug)]
pub struct Drawer<'a> {
    dataset: &'a Dataset,
    pictures: Pictures,
}

impl<'a> Drawer<'a> {
    /// Looks at the sequences that will be drawn. `None` for the style chooses one by the dimension.
    pub fn new(dataset: &'a Dataset, style: Option<Style>, cumulative: bool, shown: &[usize]) -> anyhow::Result<Self> {
        let Some(dim) = dataset.shape().dim() else { anyhow::bail!("only sequences can be drawn as curves") };
        let style = self::style(dim, style, cumulative)?;
        let mut measure = Measure::new(dim, style, cumulative, shown.len());
        for &index in shown {
            measure.add(&dataset.read_sequence(index)?);
        }
        Ok(Self { dataset, pictures: measure.finish() })
    }

    /// Height and width of every picture.
    pub fn size(&self) -> (usize, usize) {
        self.pictures.size()
    }

    /// One sequence as RGB pixels.
    pub fn picture(&self, index: usize) -> Result<Vec<u8>, DataError> {
        Ok(self.pictures.draw(&self.dataset.read_sequence(index)?))
    }

    /// What is drawn, for the title.
    pub fn described(&self) -> String {
        self.pictures.described()
    }
}

/// How sequences of a dimension are drawn: as somebody asks for it, or as suits them.
pub fn style(dim: usize, asked: Option<Style>, cumulative: bool) -> Result<Style, dtkc_cli::Usage> {
    let style = asked.unwrap_or(Style::of(dim, cumulative));
    match style.fits(dim) {
        true => Ok(style),
        false => Err(dtkc_cli::Usage(format!(
            "pen strokes need 2 or 3 values a step and there are {dim}; use --draw curves or --draw map"
        ))),
    }
}
