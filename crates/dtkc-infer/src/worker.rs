//! What one thread does: it makes items ready, one by one, and runs the model on them.
//!
//! The labeller's [`Pool`](crate::Pool) and the service's queue both work through it, so an image gets the same
//! pixels, the same cluster and the same error in both. Whatever happens to one item costs that item and no other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dtkc_image::{Limits, Preparer};
use dtkc_item::{ImageShape, ItemError, Items};

use crate::{Assignments, InferError, ModelFile, Prepare, Runtime, Session, SessionOptions};

/// Items made ready for the model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prepared {
    /// The pixels of the items that can be used, one after the other.
    pub pixels: Vec<u8>,
    /// For each item its place among those, or why it has none.
    pub rows: Vec<Result<usize, ItemError>>,
}

impl Prepared {
    /// Forgets the items; the memory stays.
    pub fn clear(&mut self) {
        self.pixels.clear();
        self.rows.clear();
    }

    /// Items that can be used.
    pub fn usable(&self) -> usize {
        self.rows.iter().filter(|row| row.is_ok()).count()
    }
}

/// A loaded model with what it takes to feed it. Not shared between threads: each owns one.
pub struct Worker {
    session: Session,
    preparer: Preparer,
}

impl Worker {
    /// Loads `model`; an item may cost as much as `limits` say.
    pub fn new(
        runtime: &Runtime,
        model: &ModelFile,
        options: &SessionOptions,
        limits: Limits,
    ) -> Result<Self, InferError> {
        let session = Session::new(runtime, model, options)?;
        Ok(Self { session, preparer: Preparer::new(model.spec(), limits) })
    }

    /// Makes items ready, in order, in place of what `batch` held before.
    pub fn prepare<I: Prepare>(&mut self, items: impl IntoIterator<Item = I>, batch: &mut Prepared) {
        let items = items.into_iter();
        batch.clear();
        batch.pixels.reserve(items.size_hint().0 * self.preparer.spec().bytes());
        for item in items {
            self.add(&item, batch);
        }
    }

    /// Makes one more item ready, behind what `batch` holds.
    pub fn add(&mut self, item: &impl Prepare, batch: &mut Prepared) {
        let each = self.preparer.spec().bytes();
        let start = batch.pixels.len();
        batch.pixels.resize(start + each, 0);
        let row = self.contained(item, &mut batch.pixels[start..]).map(|()| start / each.max(1));
        if row.is_err() {
            batch.pixels.truncate(start);
        }
        batch.rows.push(row);
    }

    /// The same for items that need no decoding. Images of the model's own shape go to it as they are.
    pub fn prepare_items(&mut self, items: Items, batch: &mut Prepared) -> Result<(), InferError> {
        let Items::Images { shape, pixels } = items else {
            return Err(InferError::NotImages { model: self.session.model().to_owned() });
        };
        let each = shape.len();
        if each == 0 || !pixels.len().is_multiple_of(each) {
            let count = pixels.len().checked_div(each).map_or(0, |whole| whole + 1);
            return Err(InferError::Pixels { count, each, found: pixels.len() });
        }
        if shape == self.preparer.spec().shape() {
            batch.rows = (0..pixels.len() / each).map(Ok).collect();
            batch.pixels = pixels;
        } else {
            self.prepare(pixels.chunks_exact(each).map(|pixels| Decoded { shape, pixels }), batch);
        }
        Ok(())
    }

    /// Runs the model on what can be used of a batch, one answer per row. An error is about the model, not an item.
    pub fn run(&mut self, batch: &Prepared) -> Result<Assignments, InferError> {
        let ran = catch_unwind(AssertUnwindSafe(|| self.session.run(&batch.pixels, batch.usable())));
        ran.unwrap_or_else(|_| Err(self.session.failed("it panicked")))
    }

    /// A panic becomes the item's error, and the preparer, which may be left half done, starts afresh.
    fn contained(&mut self, item: &impl Prepare, out: &mut [u8]) -> Result<(), ItemError> {
        let prepared = catch_unwind(AssertUnwindSafe(|| item.prepare(&mut self.preparer, out)));
        prepared.unwrap_or_else(|_| {
            self.preparer = Preparer::new(self.preparer.spec(), self.preparer.limits());
            Err(ItemError::panicked())
        })
    }
}

/// An image of another shape than the model's, somewhere in memory.
struct Decoded<'a> {
    shape: ImageShape,
    pixels: &'a [u8],
}

impl Prepare for Decoded<'_> {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        preparer.resize_pixels(self.pixels, self.shape, out)
    }
}
