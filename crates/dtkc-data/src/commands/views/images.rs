//! Images and random views of them.

use anyhow::Context;
use dtkc_cli::Usage;
use dtkc_dataset::{DataError, Dataset};
use dtkc_item::ImageShape;
use dtkc_views::{ViewMaker, reduced, seen_pixels};

use super::settings::Settings;
use super::{APART, Args, Chosen};
use crate::commands::sheet::Sheet;

/// Views of each image, where nobody asks for another number.
const COLUMNS: usize = 12;

/// Draws the sheet.
pub fn draw(
    args: &Args,
    settings: &Settings,
    dataset: &Dataset,
    shape: ImageShape,
    chosen: Chosen,
) -> anyhow::Result<()> {
    let color = shape.color().context("only gray and RGB images can be drawn")?;
    let factor = settings.factor(shape)?;
    let seen = reduced(shape, factor);
    let maker = ViewMaker::new(&settings.augment, seen).map_err(|error| Usage(error.to_string()))?;
    let columns = args.columns(COLUMNS);
    let sheet = Sheet {
        title: format!("{}: images of {shape}{} and random views of them", dataset.name(), as_seen(factor)),
        rows: chosen.rows,
        columns: 1 + columns,
        apart: APART,
        height: seen.height,
        width: seen.width,
        color,
        drawn: false,
    };
    println!("{}", settings.described(dataset.kind()));
    sheet.write(&args.out, |row| -> Result<Vec<u8>, DataError> {
        let image = dataset.read(&chosen.indices[row..=row])?;
        let clean = seen_pixels(&image, shape, factor);
        let mut values = clean.clone();
        for column in 0..columns {
            values.extend(maker.second_views(&clean, args.key(row, column)));
        }
        Ok(values.into_iter().map(|value| (value * 255.0).round() as u8).collect())
    })
}

/// Says how much smaller than the file has them images are shown.
fn as_seen(factor: usize) -> String {
    if factor == 1 { String::new() } else { format!(" averaged down by {factor}") }
}
