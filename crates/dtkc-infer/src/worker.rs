//! What one thread does: it makes items ready, one by one, and runs the model on them.
//!
//! The labeller's [`Pool`](crate::Pool) and the service's queue both work through it, so an image gets the same
//! pixels, the same cluster and the same error in both. Whatever happens to one item costs that item and no other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dtkc_image::{Fingerprint, Limits, Preparer};
use dtkc_item::{ImageShape, ItemError, ItemShape, Items};

use crate::item::{not_a_sequence, not_an_image};
use crate::{Assignments, InferError, ModelFile, Prepare, Runtime, SequenceSpec, Session, SessionOptions};

/// Items made ready for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The items that can be used, one after the other.
    pub items: Items,
    /// For each item its place among those, or why it has none.
    pub rows: Vec<Result<usize, ItemError>>,
    /// Width and height that the images among them had before; empty for sequences.
    pub sizes: Vec<(usize, usize)>,
}

impl Prepared {
    /// None yet, for a model that takes items of that shape.
    pub fn new(shape: ItemShape) -> Self {
        Self { items: Items::empty(shape), rows: Vec::new(), sizes: Vec::new() }
    }

    /// Forgets the items; the memory stays.
    pub fn clear(&mut self) {
        self.items.clear();
        self.rows.clear();
        self.sizes.clear();
    }

    /// Items that can be used.
    pub fn usable(&self) -> usize {
        self.items.len()
    }
}

/// A loaded model with what it takes to feed it. Not shared between threads: each owns one.
pub struct Worker {
    session: Session,
    ready: Ready,
    /// Of the images that were made ready, where they are asked for.
    fingerprints: Vec<Fingerprint>,
}

/// What makes items ready.
enum Ready {
    Images(Box<Preparer>),
    Sequences(SequenceSpec),
}

impl Worker {
    /// Loads `model`; an image may cost as much as `limits` say.
    pub fn new(
        runtime: &Runtime,
        model: &ModelFile,
        options: &SessionOptions,
        limits: Limits,
    ) -> Result<Self, InferError> {
        let session = Session::new(runtime, model, options)?;
        let ready = match (model.image(), model.sequences(options.max_steps)) {
            (Some(image), _) => Ready::Images(Box::new(Preparer::new(image, limits))),
            (None, Some(spec)) => Ready::Sequences(spec),
            (None, None) => return Err(session.failed("it takes neither images nor sequences")),
        };
        Ok(Self { session, ready, fingerprints: Vec::new() })
    }

    /// The same, which takes fingerprints of images, too.
    pub fn with_fingerprints(self) -> Self {
        let ready = match self.ready {
            Ready::Images(preparer) => Ready::Images(Box::new(preparer.with_fingerprints())),
            sequences => sequences,
        };
        Self { ready, ..self }
    }

    /// The fingerprints of the images that can be used of what was made ready since they were taken last.
    pub fn take_fingerprints(&mut self) -> Vec<Fingerprint> {
        std::mem::take(&mut self.fingerprints)
    }

    /// What the model takes.
    pub fn shape(&self) -> ItemShape {
        match &self.ready {
            Ready::Images(preparer) => ItemShape::Image(preparer.spec().shape()),
            Ready::Sequences(spec) => ItemShape::Sequence { dim: spec.dim },
        }
    }

    /// Makes items ready, in order, in place of what `batch` held before.
    pub fn prepare<I: Prepare>(&mut self, items: impl IntoIterator<Item = I>, batch: &mut Prepared) {
        let items = items.into_iter();
        batch.clear();
        if let (Items::Images { pixels, .. }, Ready::Images(preparer)) = (&mut batch.items, &self.ready) {
            pixels.reserve(items.size_hint().0 * preparer.spec().bytes());
        }
        for item in items {
            self.add(&item, batch);
        }
    }

    /// Makes one more item ready, behind what `batch` holds.
    pub fn add(&mut self, item: &impl Prepare, batch: &mut Prepared) {
        let place = batch.items.len();
        let made = match (&mut batch.items, &mut self.ready) {
            (Items::Images { pixels, .. }, Ready::Images(preparer)) => add_image(item, preparer, pixels),
            (Items::Sequences { values, offsets, .. }, Ready::Sequences(spec)) => {
                add_sequence(item, spec, values, offsets)
            }
            (_, Ready::Images(_)) => Err(not_an_image()),
            (_, Ready::Sequences(_)) => Err(not_a_sequence()),
        };
        if let (Ok(()), Ready::Images(preparer)) = (&made, &mut self.ready) {
            self.fingerprints.extend(preparer.take_fingerprint());
            batch.sizes.push(preparer.size());
        }
        batch.rows.push(made.map(|()| place));
    }

    /// The same for items that need no decoding. Those of the model's own shape go to it as they are.
    pub fn prepare_items(&mut self, items: Items, batch: &mut Prepared) -> Result<(), InferError> {
        match (items, &mut self.ready) {
            (Items::Images { shape, pixels }, Ready::Images(preparer)) => {
                let each = shape.len();
                if each == 0 || !pixels.len().is_multiple_of(each) {
                    let count = pixels.len().checked_div(each).map_or(0, |whole| whole + 1);
                    return Err(InferError::Pixels { count, each, found: pixels.len() });
                }
                if shape == preparer.spec().shape() {
                    for pixels in pixels.chunks_exact(each) {
                        // Images that the model takes as they are cannot be wrong in any other way.
                        let taken = preparer.fingerprint(pixels, shape);
                        self.fingerprints.extend(taken.map_err(|error| self.session.failed(error.message))?);
                    }
                    batch.rows = (0..pixels.len() / each).map(Ok).collect();
                    batch.sizes = vec![(shape.width, shape.height); batch.rows.len()];
                    batch.items = Items::Images { shape, pixels };
                } else {
                    self.prepare(pixels.chunks_exact(each).map(|pixels| Decoded { shape, pixels }), batch);
                }
            }
            (Items::Sequences { dim, values, offsets }, Ready::Sequences(_)) => {
                let steps = |pair: &[usize]| values.get(pair[0] * dim..pair[1] * dim).unwrap_or_default();
                self.prepare(offsets.windows(2).map(|pair| Steps { dim, values: steps(pair) }), batch);
            }
            _ => return Err(self.session.other_kind()),
        }
        Ok(())
    }

    /// Runs the model on what can be used of a batch, one answer per row. An error is about the model, not an item.
    pub fn run(&mut self, batch: &Prepared) -> Result<Assignments, InferError> {
        let ran = catch_unwind(AssertUnwindSafe(|| self.session.run_items(&batch.items)));
        ran.unwrap_or_else(|_| Err(self.session.failed("it panicked")))
    }
}

/// A panic becomes the item's error, and the preparer, which may be left half done, starts afresh.
fn add_image(item: &impl Prepare, preparer: &mut Preparer, pixels: &mut Vec<u8>) -> Result<(), ItemError> {
    let start = pixels.len();
    pixels.resize(start + preparer.spec().bytes(), 0);
    let made = catch_unwind(AssertUnwindSafe(|| item.prepare(preparer, &mut pixels[start..])));
    let made = made.unwrap_or_else(|_| {
        *preparer = preparer.afresh();
        Err(ItemError::panicked())
    });
    if made.is_err() {
        pixels.truncate(start);
    }
    made
}

/// What an item left behind half done is taken away again.
fn add_sequence(
    item: &impl Prepare,
    spec: &SequenceSpec,
    values: &mut Vec<f32>,
    offsets: &mut Vec<usize>,
) -> Result<(), ItemError> {
    let start = values.len();
    let made = catch_unwind(AssertUnwindSafe(|| item.prepare_sequence(spec, values)));
    let made = made.unwrap_or_else(|_| Err(ItemError::panicked()));
    // Whatever the item says about itself, the model gets whole steps, one at least.
    let made = made.and_then(|()| spec.check_steps((values.len() - start) / spec.dim));
    match made {
        Ok(()) => {
            values.truncate(values.len() / spec.dim * spec.dim);
            offsets.push(values.len() / spec.dim);
        }
        Err(_) => values.truncate(start),
    }
    made
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

    fn prepare_sequence(&self, _: &SequenceSpec, _: &mut Vec<f32>) -> Result<(), ItemError> {
        Err(not_a_sequence())
    }
}

/// A sequence, somewhere in memory.
struct Steps<'a> {
    dim: usize,
    values: &'a [f32],
}

impl Prepare for Steps<'_> {
    fn prepare(&self, _: &mut Preparer, _: &mut [u8]) -> Result<(), ItemError> {
        Err(not_an_image())
    }

    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError> {
        spec.check(self.dim, self.values)?;
        out.extend_from_slice(self.values);
        Ok(())
    }
}
