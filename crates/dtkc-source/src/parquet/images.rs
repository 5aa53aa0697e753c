//! The rows of a Parquet file of images: names and classes, without the images.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dtkc_item::ItemError;
use parquet::file::reader::FileReader;

use super::file::{self, Reader};
use super::pages::Cells;
use super::plan::{Plan, RowColumns};
use super::reader::{RowTable, damaged};
use super::{MAX_VALUES, listed};
use crate::archive::clean;
use crate::rules::MAX_NAME;
use crate::{Body, Found, SourceError, Visitor};

/// Rows that are read before they are shown: whoever is shown them may fail in his own way.
const BLOCK: usize = 1024;
/// Classes that are kept as one text each.
const KEPT_CLASSES: usize = 1 << 16;

/// A file whose rows are images.
pub struct ImageRows {
    reader: Reader,
    plan: Plan,
    table: Arc<RowTable>,
}

/// What is read beside the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// Their names; without them rows are called by their numbers.
    pub names: bool,
    /// Their classes.
    pub labels: bool,
}

/// One row.
#[derive(Debug, Clone)]
pub struct ImageRow {
    /// Its name, fit to be shown, or its number in the file, from 0.
    pub name: String,
    /// What the column of the class says; nothing where that is not known.
    pub label: String,
    /// Where the image is.
    pub body: Body,
}

impl ImageRows {
    /// Opens a file and finds its columns; `None` where it has no images.
    pub fn open(path: &Path, columns: &RowColumns) -> Result<Option<Self>, SourceError> {
        file::guarded(path, || {
            let reader = file::open(path)?;
            let Some(plan) = Plan::of(path, &reader, columns)? else { return Ok(None) };
            let table = Arc::new(RowTable { path: path.into(), image: plan.image });
            let images = Self { reader, plan, table };
            images.check_rows()?;
            Ok(Some(images))
        })
    }

    /// The same where there must be images.
    pub fn expect(path: &Path, columns: &RowColumns) -> Result<Self, SourceError> {
        if let Some(images) = Self::open(path, columns)? {
            return Ok(images);
        }
        let names = file::guarded(path, || Ok::<_, SourceError>(names_of(&file::open(path)?, &|_| true)))?;
        let reason = format!("no column holds the bytes of images; there are {names} (choose with --image-column)");
        Err(SourceError::file(path, reason))
    }

    /// The names of columns that are nothing yet, the first of many, fit to be shown.
    pub fn others(&self) -> Option<String> {
        let Plan { image, path, name, label, .. } = &self.plan;
        let label = label.as_ref().map(|label| label.leaf);
        let known = |place: usize| place == *image || [*path, *name, label].contains(&Some(place));
        let names = names_of(&self.reader, &|place| !known(place));
        Some(names).filter(|names| !names.is_empty())
    }

    /// Rows, columns and values must be of one number, or a few bytes would stand for any number of items.
    fn check_rows(&self) -> Result<(), SourceError> {
        for group in self.reader.metadata().row_groups() {
            let (rows, values) = (group.num_rows(), group.column(self.plan.image).num_values());
            let fits = usize::try_from(rows).is_ok_and(|rows| rows <= MAX_VALUES);
            if !fits || rows != values {
                let reason = format!(
                    "a row group has {rows} rows and {values} images; the file is damaged, save or copy it again"
                );
                return Err(SourceError::file(&self.table.path, reason));
            }
        }
        Ok(())
    }

    /// Which column is what.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The name of the column that holds the images.
    pub fn column(&self) -> &str {
        self.top(self.plan.image)
    }

    /// Looks at the other columns as at that of the images, for whoever reads them by other means: refuses pages that would take too much
    /// memory, and more values than a row group may have. `all` looks at the images, too.
    pub fn check_others(&self, all: bool) -> Result<(), SourceError> {
        let path = &*self.table.path;
        file::guarded(path, || {
            let leaves = self.reader.metadata().file_metadata().schema_descr().num_columns();
            let others: Vec<usize> = (0..leaves).filter(|leaf| all || self.top(*leaf) != self.column()).collect();
            for group in self.reader.metadata().row_groups() {
                file::check_pages(path, group, &others)?;
                let most = others.iter().map(|leaf| group.column(*leaf).num_values()).max().unwrap_or(0);
                if usize::try_from(most).is_ok_and(|most| most > MAX_VALUES) || most < 0 {
                    let reason = format!("a row group has {most} values of a column; write smaller row groups");
                    return Err(SourceError::file(path, reason));
                }
            }
            Ok(())
        })
    }

    /// The column that a leaf belongs to.
    fn top(&self, leaf: usize) -> &str {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().get(leaf).and_then(|leaf| leaf.path().parts().first()).map_or("", String::as_str)
    }

    /// How many rows there are, as the file says.
    pub fn rows(&self) -> u64 {
        let groups = self.reader.metadata().row_groups();
        groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).fold(0, u64::saturating_add)
    }

    /// The images of the first `most` rows of up to `groups` row groups that are spread over the file.
    pub fn spread(&self, groups: usize, most: usize) -> Vec<Body> {
        let all = self.reader.metadata().row_groups();
        let groups = groups.min(all.len());
        let chosen = (0..groups).map(|place| place * all.len() / groups);
        let rows = |group: usize| usize::try_from(all[group].num_rows()).unwrap_or(0).min(most);
        chosen.flat_map(|group| (0..rows(group)).map(move |row| (group, row))).map(|at| self.body(at, false)).collect()
    }

    fn body(&self, (group, row): (usize, usize), named: bool) -> Body {
        Body::Row { table: self.table.clone(), group, row, named }
    }

    /// Shows every row, in order, until enough is seen.
    pub fn each(
        &self,
        wants: Wants,
        seen: &mut dyn FnMut(ImageRow) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SourceError> {
        let names = [self.plan.path, self.plan.name].map(|leaf| leaf.filter(|_| wants.names));
        let label = self.plan.label.as_ref().filter(|_| wants.labels).map(|label| label.leaf);
        let places: Vec<usize> = names.into_iter().chain([label]).flatten().collect();
        let path = &*self.table.path;
        let mut number = 0u64;
        for group in 0..self.reader.num_row_groups() {
            let (mut columns, rows) = file::guarded(path, || file::columns(path, &self.reader, group, &places))?;
            let rows = rows as usize;
            for start in (0..rows).step_by(BLOCK) {
                let block = start..rows.min(start + BLOCK);
                let cells: Vec<Vec<Cells>> =
                    file::guarded(path, || block.clone().map(|_| file::next_row(path, &mut columns)).collect())?;
                for (row, cells) in block.zip(cells) {
                    let mut cells = cells.into_iter().map(|cell| cell.text);
                    let mut given = names.map(|leaf| leaf.and_then(|_| cells.next()).unwrap_or_default());
                    let label = label.and_then(|_| cells.next()).unwrap_or_default();
                    let body = self.body((group, row), !given[0].is_empty());
                    if self.plan.chosen {
                        given.reverse();
                    }
                    let row = ImageRow { name: name_of(&given, number), label, body };
                    number += 1;
                    if seen(row).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The names of the columns of some leaves.
fn names_of(reader: &Reader, wanted: &dyn Fn(usize) -> bool) -> String {
    let leaves = reader.metadata().file_metadata().schema_descr().columns();
    let wanted = leaves.iter().enumerate().filter(|(place, _)| wanted(*place));
    let mut names: Vec<String> = wanted.filter_map(|(_, leaf)| leaf.path().parts().first().cloned()).collect();
    names.dedup();
    listed(&names)
}

/// The first name that can be shown, or the number of the row.
fn name_of(given: &[String], number: u64) -> String {
    let fit = |name: &String| Some(clean(name)).filter(|name| !name.is_empty() && name.len() <= MAX_NAME);
    given.iter().find_map(fit).unwrap_or_else(|| number.to_string())
}

/// Why a row has no image.
pub(crate) fn no_image(named: bool) -> ItemError {
    let text = match named {
        true => {
            "the row names an image and does not hold it; images are not embedded in this file, so save it again with their bytes"
        }
        false => "the row has no image",
    };
    ItemError::new(if named { "not_embedded" } else { "no_image" }, text)
}

/// Refuses a file that can be read and has no such columns. Damage is left to whoever reads it.
pub fn check_columns(path: &Path, columns: &RowColumns) -> Result<(), SourceError> {
    match file::guarded(path, || file::open(path)) {
        Ok(_) => ImageRows::expect(path, columns).map(drop),
        Err(_) => Ok(()),
    }
}

/// Visits the images of a file. One that cannot be read on gives what lies before, and fails.
pub(crate) fn visit(path: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    try_visit(path, visitor).unwrap_or_else(|error| visitor.damaged(Found::broken(path, damaged(&error))))
}

fn try_visit(path: &Path, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>, SourceError> {
    let images = ImageRows::expect(path, &visitor.columns())?;
    let wants = Wants { names: true, labels: visitor.wants_classes() };
    let label = images.plan.label.clone().filter(|_| wants.labels);
    let mut kept: HashMap<String, Arc<str>> = HashMap::new();
    images.each(wants, &mut |row| {
        // A number without a name is no class to compare with.
        let class = label.as_ref().and_then(|label| label.class(&row.label).ok().flatten());
        let class = class.map(|class| match kept.get(&class) {
            Some(known) => known.clone(),
            None => {
                let shared: Arc<str> = class.as_str().into();
                if kept.len() < KEPT_CLASSES {
                    kept.insert(class, shared.clone());
                }
                shared
            }
        });
        visitor.found(Found { class, ..Found::below(path, &row.name, row.body) })
    })
}
