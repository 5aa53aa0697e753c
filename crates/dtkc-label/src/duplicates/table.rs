//! The table of copies: a row for every image in a group, the one to keep first.

use std::path::Path;

use csv::Writer;
use dtkc_files::Pending;
use dtkc_human::cell;

use super::Found;
use super::store::Likeness;
use crate::error::{LabelError, Result};

const COLUMNS: [&str; 11] =
    ["group", "keep", "index", "path", "cluster", "cluster_name", "width", "height", "bytes", "distance", "similarity"];

/// Writes the table, whole or not at all.
pub(super) fn write(found: &Found, path: &Path) -> Result<()> {
    let pending = Pending::beside(path)?;
    let mut out = Writer::from_writer(std::io::BufWriter::new(pending.open()?));
    let wrong = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => LabelError::from(pending.failed(&error)),
        other => LabelError::file(path, format!("{other:?}")),
    };
    out.write_record(COLUMNS).map_err(wrong)?;
    for (number, group) in (1..).zip(&found.groups) {
        let itself = Likeness { distance: 0, similarity: 1.0 };
        let images = std::iter::once((group.keep, itself)).chain(group.copies.iter().copied());
        for (place, likeness) in images {
            out.write_record(record(found, number, group.keep, place, likeness)).map_err(wrong)?;
        }
    }
    out.flush().map_err(|error| pending.failed(&error))?;
    drop(out);
    Ok(pending.commit()?)
}

fn record(found: &Found, number: u64, keep: u32, place: u32, likeness: Likeness) -> [String; 11] {
    let (index, said) = found.image(place);
    let look = found.store.look(place);
    [
        number.to_string(),
        if place == keep { "yes" } else { "no" }.to_owned(),
        index.to_string(),
        cell(&said.path).into_owned(),
        said.cluster.to_string(),
        cell(&said.name).into_owned(),
        look.width.to_string(),
        look.height.to_string(),
        // Rows of a dataset have no encoded size.
        if look.bytes > 0 { look.bytes.to_string() } else { String::new() },
        likeness.distance.to_string(),
        format!("{:.3}", likeness.similarity),
    ]
}
