//! Sequences and random views of them.

use dtkc_cli::{Terminal, Usage};
use dtkc_dataset::{DataError, Dataset};
use dtkc_draw::Measure;
use dtkc_item::Color;
use dtkc_observe::Observer as _;
use dtkc_views::{BatchKey, SequenceViews, Steps};

use super::settings::Settings;
use super::{APART, Args, Chosen};
use crate::commands::draw::style;
use crate::commands::scan::{self, Moments};
use crate::commands::sheet::Sheet;

/// Views of each sequence, where nobody asks for another number.
const COLUMNS: usize = 8;

/// Draws the sheet.
pub fn draw(args: &Args, settings: &Settings, dataset: &Dataset, dim: usize, chosen: Chosen) -> anyhow::Result<()> {
    let style = style(dim, args.draw, args.cumulative)?;
    let views = SequenceViews::new(&settings.sequence_views, dim).map_err(|error| Usage(error.to_string()))?;
    let maker = Maker { scaling: scaling(dataset)?, views };
    let columns = args.columns(COLUMNS);
    let shown = |row: usize| -> Result<Vec<Vec<f32>>, DataError> {
        let clean = dataset.read_sequence(chosen.indices[row])?;
        let made = (0..columns).map(|column| maker.view(&clean, args.key(row, column))).collect::<Vec<_>>();
        Ok([vec![clean], made].concat())
    };
    // Views are made twice, once for the scales: kept, those of long sequences would not fit into memory.
    let mut measure = Measure::new(dim, style, args.cumulative, chosen.indices.len() * (1 + columns));
    for row in 0..chosen.indices.len() {
        shown(row)?.iter().for_each(|values| measure.add(values));
    }
    let pictures = measure.finish();
    let (height, width) = pictures.size();
    let title = format!("{}: {} and random views of them; {}", dataset.name(), dataset.shape(), pictures.described());
    let rows = chosen.rows;
    let sheet =
        Sheet { title, rows, columns: 1 + columns, apart: APART, height, width, color: Color::Rgb, drawn: true };
    println!("{}", settings.described(dataset.kind()));
    sheet.write(&args.out, |row| -> Result<Vec<u8>, DataError> {
        Ok(shown(row)?.iter().flat_map(|values| pictures.draw(values)).collect())
    })
}

/// Makes views as training does: of values that were scaled by the whole set.
struct Maker {
    scaling: Vec<Moments>,
    views: SequenceViews,
}

impl Maker {
    /// A view in the units of the sequence.
    fn view(&self, clean: &[f32], key: BatchKey) -> Vec<f32> {
        let dim = self.scaling.len();
        let change = |values: &[f32], with: fn(f32, &Moments) -> f32| -> Vec<f32> {
            values.chunks_exact(dim).flat_map(|step| step.iter().zip(&self.scaling).map(|(&v, m)| with(v, m))).collect()
        };
        let scaled = change(clean, |value, moments| (value - moments.mean as f32) / spread(moments));
        let first = scaled.len();
        let pair = self.views.pairs(Steps { lengths: vec![first / dim], values: scaled }, None, key);
        // The first of a pair may have another length where first views are changed, too.
        let second = pair.lengths[1] * dim;
        change(&pair.values[pair.values.len() - second..], |value, moments| {
            value * spread(moments) + moments.mean as f32
        })
    }
}

/// What deviations are measured in; a dimension that never changes has none.
fn spread(moments: &Moments) -> f32 {
    let found = moments.deviation as f32;
    if found > f32::MIN_POSITIVE { found } else { 1.0 }
}

/// Mean and deviation of every dimension over the whole set.
fn scaling(dataset: &Dataset) -> anyhow::Result<Vec<Moments>> {
    let steps: usize = dataset.sequence_lengths().unwrap_or_default().iter().sum();
    let terminal = Terminal::new(false);
    terminal.begin("reading", "steps", Some(steps as u64));
    let range = scan::value_range(dataset, &terminal)?;
    terminal.end();
    match range.missing {
        Some(1..) => Err(Usage(format!(
            "{} has values that are missing, so that no views of it can be made: import it again with `--missing fill` or \
             `--missing drop`",
            dataset.path().display()
        ))
        .into()),
        _ => Ok(range.dimensions),
    }
}
