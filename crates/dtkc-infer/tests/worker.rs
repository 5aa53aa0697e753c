//! What goes wrong with one item costs that item alone.

#![allow(clippy::unwrap_used)]

mod common;

use common::{model, runtime, session};
use dtkc_image::{Limits, Preparer};
use dtkc_infer::{Prepare, Prepared, SequenceSpec, SessionOptions, Worker};
use dtkc_item::{ImageShape, ItemError, Items};
use dtkc_onnx::testing::Sample;

const SAMPLE: Sample =
    Sample { height: 20, width: 22, channels: 1, filters: 3, hidden: 5, clusters: 4, padding: 0, seed: 3 };

/// An item whose decoder may break down halfway.
struct Fragile<'a>(Option<&'a [u8]>);

impl Prepare for Fragile<'_> {
    fn prepare(&self, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
        out.fill(7);
        let pixels = self.0.unwrap_or_else(|| panic!("a strange file"));
        preparer.resize_pixels(pixels, SAMPLE.shape(), out)
    }

    fn prepare_sequence(&self, spec: &SequenceSpec, out: &mut Vec<f32>) -> Result<(), ItemError> {
        out.extend(std::iter::repeat_n(7.0, 3 * spec.dim));
        match self.0 {
            Some(_) => Ok(()),
            None => panic!("a strange file"),
        }
    }
}

fn worker() -> Worker {
    Worker::new(&runtime(), &model(&SAMPLE), &SessionOptions::default(), Limits::default()).unwrap()
}

#[test]
fn a_panic_costs_one_item_and_the_worker_goes_on() {
    let mut worker = worker();
    let pixels = SAMPLE.images(3);
    let images: Vec<&[u8]> = pixels.chunks(SAMPLE.shape().len()).collect();
    let expected = session(&model(&SAMPLE), 1).run(&pixels, 3).unwrap();
    let mut batch = Prepared::new(worker.shape());
    for _ in 0..2 {
        let items = [None, Some(images[0]), Some(images[1]), None, Some(images[2])].map(Fragile);
        worker.prepare(&items, &mut batch);
        let codes: Vec<String> =
            batch.rows.iter().map(|row| row.as_ref().map_or_else(|e| e.code.to_string(), usize::to_string)).collect();
        assert_eq!(codes, ["panicked", "0", "1", "panicked", "2"]);
        assert_eq!((batch.usable(), batch.items.pixels()), (3, Some(&*pixels)));
        assert_eq!(worker.run(&batch).unwrap(), expected);
    }
    worker.prepare([Fragile(None)], &mut batch);
    assert!(worker.run(&batch).unwrap().is_empty());
}

#[test]
fn what_is_not_a_whole_number_of_images_is_refused_with_the_model() {
    let mut worker = worker();
    let mut batch = Prepared::new(worker.shape());
    let shape = ImageShape { height: 2, width: 2, channels: 1 };
    let error = worker.prepare_items(Items::Images { shape, pixels: vec![0; 7] }, &mut batch).unwrap_err();
    assert_eq!(error.to_string(), "2 images of 4 bytes need 8 bytes of pixels and there are 7");
    let sequences = Items::Sequences { dim: 2, values: vec![0.0; 4], offsets: vec![0, 2] };
    let error = worker.prepare_items(sequences, &mut batch).unwrap_err().to_string();
    assert!(error.starts_with("sample: the model takes images"), "{error}");
}
