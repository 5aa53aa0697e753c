//! `--gallery FILE.html`: one page that shows what the clusters look like.
//!
//! During the run only the best and the worst rows of each cluster are remembered; at the end the input is visited
//! once more and just those images are read. The page holds everything it needs: styles, script and thumbnails.

mod copies;
mod curves;
mod page;
mod picks;
mod thumbnail;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

pub use copies::CopyPicks;
use dtkc_image::Limits;
use dtkc_item::Items;
use dtkc_source::BodyReader;
pub use page::About;
pub use picks::{Pick, Picks};

use self::curves::Curves;
use crate::error::Result;
use crate::source::{Inputs, Origin};
use crate::tally::Summary;

/// What the page shows.
pub struct Shown<'a> {
    /// The figures.
    pub summary: &'a Summary,
    /// Images of the clusters.
    pub picks: &'a Picks,
    /// Near-duplicates, where they were looked for.
    pub copies: Option<CopyPicks>,
}

impl Shown<'_> {
    /// The positions of all images that are shown.
    fn indices(&self) -> BTreeSet<u64> {
        let copies = self.copies.iter().flat_map(CopyPicks::indices);
        self.picks.indices().into_iter().chain(copies).collect()
    }
}

/// Writes the page.
pub fn write(path: &Path, inputs: &Inputs, limits: Limits, shown: &Shown<'_>, about: &About) -> Result<()> {
    let thumbnails = read_thumbnails(inputs, limits, &shown.indices())?;
    let html = page::render(shown, &thumbnails, about);
    Ok(dtkc_files::write(path, html.as_bytes())?)
}

/// A `data:` address for each picked image, by index. What cannot be read any more is left out.
fn read_thumbnails(
    inputs: &Inputs,
    limits: Limits,
    wanted: &BTreeSet<u64>,
) -> Result<BTreeMap<u64, thumbnail::Thumbnail>> {
    let Some(&last) = wanted.last() else { return Ok(BTreeMap::new()) };
    let mut thumbnails = BTreeMap::new();
    let mut curves = Curves::default();
    let mut reader = BodyReader::new(limits.max_bytes);
    let mut index = 0;
    let mut seen = |mut origin: Origin| {
        if wanted.contains(&index) {
            let made = match &mut origin {
                Origin::Row { table, row, .. } => match table.items(*row..*row + 1) {
                    Ok(Items::Images { shape, pixels }) => thumbnail::from_pixels(&pixels, shape),
                    Ok(Items::Sequences { dim, values, .. }) => {
                        curves.add(index, dim, &values);
                        None
                    }
                    Ok(Items::Features { .. }) | Err(_) => None,
                },
                Origin::Sequence(sequence) => {
                    if let Ok(values) = &sequence.values {
                        curves.add(index, sequence.dim, values);
                    }
                    None
                }
                Origin::Encoded(found) => {
                    reader.read(&mut found.body).ok().and_then(|bytes| thumbnail::from_encoded(&bytes, limits))
                }
            };
            thumbnails.extend(made.map(|made| (index, made)));
        }
        index += 1;
        if index > last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    // Whether the visit ended early says nothing here.
    let _ = inputs.visit(&mut seen)?;
    thumbnails.extend(curves.draw());
    Ok(thumbnails)
}
