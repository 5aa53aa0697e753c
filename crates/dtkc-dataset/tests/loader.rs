//! The minibatch loader: every image once per epoch, a repeatable order, the same in both modes.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dtkc_dataset::{Batches, LoadMode, LoadOptions, Writer, WriterOptions};
use dtkc_item::{Batch, ImageShape, ItemShape, Items};
use dtkc_testing::{CHUNK_ROWS, Place, SHAPE, Set, image};
use proptest::prelude::*;

const SMALL: ImageShape = ImageShape { height: 4, width: 4, channels: 1 };

/// 100 images in 5 chunks.
fn several_chunks() -> &'static Path {
    static FILE: OnceLock<(Place, PathBuf)> = OnceLock::new();
    let (_, path) = FILE.get_or_init(|| {
        let place = Place::new();
        let path = Set::new(SHAPE, 100).write(&place.path("a.h5"));
        (place, path)
    });
    path
}

fn options(mode: LoadMode, batch: usize, seed: u64, window: Option<usize>) -> LoadOptions {
    LoadOptions { batch, seed, mode, window, ..LoadOptions::default() }
}

fn epoch(batches: &mut Batches, number: u64) -> Vec<Batch> {
    batches.epoch(number).collect::<Result<_, _>>().unwrap()
}

fn order(batches: &[Batch]) -> Vec<usize> {
    batches.iter().flat_map(|b| b.indices.iter().copied()).collect()
}

/// Every index once, right pixels, right batch sizes.
fn check(batches: &[Batch], shape: ImageShape, len: usize, size: usize) {
    let mut seen = order(batches);
    seen.sort_unstable();
    assert_eq!(seen, (0..len).collect::<Vec<_>>());
    assert_eq!(batches.len(), len.div_ceil(size));
    for (number, batch) in batches.iter().enumerate() {
        assert_eq!(batch.indices.len(), size.min(len - number * size));
        let pixels: Vec<u8> = batch.indices.iter().flat_map(|&i| image(shape, i)).collect();
        assert!(batch.items == Items::Images { shape, pixels }, "batch {number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_image_once_per_epoch(batch in 1usize..130, seed: u64, number in 0u64..1000, window in 1usize..8, stream: bool) {
        let mode = if stream { LoadMode::Stream } else { LoadMode::Memory };
        let mut batches = Batches::new(several_chunks(), options(mode, batch, seed, Some(window))).unwrap();
        prop_assert_eq!(batches.in_memory(), !stream);
        let once = epoch(&mut batches, number);
        prop_assert_eq!(once.len(), batches.batches_per_epoch());
        check(&once, SHAPE, 100, batch);
    }

    #[test]
    fn the_order_is_a_function_of_seed_and_epoch(seed: u64, number in 0u64..1000, window in 1usize..8, batch in 1usize..40) {
        let options = options(LoadMode::Stream, batch, seed, Some(window));
        let mut one = Batches::new(several_chunks(), options.clone()).unwrap();
        let mut two = Batches::new(several_chunks(), options).unwrap();
        // The second one has another history, which must not matter.
        let _ = two.epoch(number ^ 1).next();
        prop_assert_eq!(epoch(&mut one, number), epoch(&mut two, number));
        prop_assert_eq!(epoch(&mut one, number + 1), epoch(&mut two, number + 1));
    }

    #[test]
    fn both_modes_agree_where_the_window_covers_the_set(seed: u64, number in 0u64..1000, batch in 1usize..130, extra in 0usize..3) {
        let mut memory = Batches::new(several_chunks(), options(LoadMode::Memory, batch, seed, None)).unwrap();
        let mut stream = Batches::new(several_chunks(), options(LoadMode::Stream, batch, seed, Some(5 + extra))).unwrap();
        prop_assert_eq!(epoch(&mut memory, number), epoch(&mut stream, number));
    }

    #[test]
    fn a_resumed_epoch_continues_the_same_way(seed: u64, batch in 1usize..40, first in 0usize..120, window in 1usize..7, stream: bool) {
        let mode = if stream { LoadMode::Stream } else { LoadMode::Memory };
        let mut batches = Batches::new(several_chunks(), options(mode, batch, seed, Some(window))).unwrap();
        let whole = epoch(&mut batches, 3);
        let rest: Vec<Batch> = batches.epoch_from(3, first).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&rest[..], &whole[first.min(whole.len())..]);
    }

    #[test]
    fn sets_of_any_size(count in 1usize..60, batch in 1usize..70, seed: u64) {
        let place = Place::new();
        let path = Set::new(SMALL, count).write(&place.path("a.h5"));
        let mut memory = Batches::new(&path, options(LoadMode::Auto, batch, seed, None)).unwrap();
        let mut stream = Batches::new(&path, options(LoadMode::Stream, batch, seed, None)).unwrap();
        let once = epoch(&mut memory, 0);
        check(&once, SMALL, count, batch);
        prop_assert_eq!(once, epoch(&mut stream, 0));
    }
}

#[test]
fn epochs_and_seeds_differ() {
    let mut batches = Batches::new(several_chunks(), options(LoadMode::Memory, 100, 1, None)).unwrap();
    let first = order(&epoch(&mut batches, 0));
    assert_ne!(first, order(&epoch(&mut batches, 1)));
    assert_ne!(first, (0..100).collect::<Vec<_>>());
    let mut other = Batches::new(several_chunks(), options(LoadMode::Memory, 100, 2, None)).unwrap();
    assert_ne!(first, order(&epoch(&mut other, 0)));
}

#[test]
fn a_narrow_window_mixes_its_own_chunks_only() {
    let mut batches = Batches::new(several_chunks(), options(LoadMode::Stream, 7, 1, Some(2))).unwrap();
    let all = order(&epoch(&mut batches, 0));
    let window = |rows: &[usize]| {
        let mut chunks: Vec<usize> = rows.iter().map(|row| row / CHUNK_ROWS).collect();
        chunks.sort_unstable();
        chunks.dedup();
        chunks.len()
    };
    // Two windows of two chunks (42 images, or less where the last chunk of 16 is among them), then one.
    let first = if all[..42].iter().any(|row| row / CHUNK_ROWS == 4) { 37 } else { 42 };
    assert_eq!(window(&all[..first]), 2);
    assert!(!all[..first].is_sorted());
}

#[test]
fn the_budget_decides_and_bounds() {
    let bytes = (100 * SHAPE.len()) as u64;
    let with = |memory_budget| {
        Batches::new(several_chunks(), LoadOptions { memory_budget, ..LoadOptions::default() }).unwrap()
    };
    assert!(with(bytes).in_memory());
    let mut tight = with(bytes - 1);
    assert!(!tight.in_memory());
    check(&epoch(&mut tight, 0), SHAPE, 100, 120);
    check(&epoch(&mut with(1), 5), SHAPE, 100, 120);
}

#[test]
fn an_abandoned_epoch_does_no_harm() {
    let mut batches = Batches::new(several_chunks(), options(LoadMode::Stream, 9, 4, Some(1))).unwrap();
    let expected = epoch(&mut batches, 2);
    for taken in [0, 1, 3, 8] {
        let some: Vec<Batch> = batches.epoch(7).take(taken).collect::<Result<_, _>>().unwrap();
        assert_eq!(some.len(), taken);
        assert_eq!(epoch(&mut batches, 2), expected);
    }
}

#[test]
fn a_batch_may_be_used_again() {
    let mut batches = Batches::new(several_chunks(), options(LoadMode::Stream, 30, 4, Some(2))).unwrap();
    let expected = epoch(&mut batches, 2);
    // The last one was used for a set of another kind, which must not matter.
    for shape in [batches.shape(), ItemShape::Sequence { dim: 3 }] {
        let (mut batch, mut found) = (Batch::empty(shape), Vec::new());
        let mut once = batches.epoch(2);
        while once.next_into(&mut batch).unwrap() {
            found.push(batch.clone());
        }
        assert!(!once.next_into(&mut batch).unwrap() && batch.is_empty());
        assert_eq!(found, expected);
    }
}

#[test]
fn nonsense_is_refused() {
    let refused = |options| Batches::new(several_chunks(), options).unwrap_err().to_string();
    assert_eq!(refused(LoadOptions { batch: 0, ..LoadOptions::default() }), "a batch needs at least one item");
    let text = refused(LoadOptions { window: Some(0), ..LoadOptions::default() });
    assert_eq!(text, "a shuffle window needs at least one chunk");
}

#[test]
fn a_file_that_goes_bad_ends_the_epoch_with_an_error() {
    let place = Place::new();
    let path = Set::new(SHAPE, 100).write(&place.path("a.h5"));
    let mut batches = Batches::new(&path, options(LoadMode::Stream, 10, 1, Some(1))).unwrap();
    assert_eq!(epoch(&mut batches, 0).len(), 10);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
    for number in [5, 6] {
        let results: Vec<_> = batches.epoch(number).collect();
        let error = results.last().unwrap().as_ref().unwrap_err().to_string();
        assert!(error.contains("is damaged or incomplete (it is cut off)"), "{error}");
        assert!(results.len() <= 10 && results[..results.len() - 1].iter().all(Result::is_ok));
    }
}

/// Sequence `i` of a set of `count`: 1 to 60 steps of two values that say which one it is.
fn sequence(i: usize) -> Vec<f32> {
    let length = 1 + i * 37 % 60;
    (0..length).flat_map(|step| [i as f32, step as f32]).collect()
}

fn sequences(place: &Place, count: usize) -> PathBuf {
    let path = place.path("s.h5");
    let options = WriterOptions::new(ItemShape::Sequence { dim: 2 }, "s", "test");
    let mut writer = Writer::create(&path, options).unwrap();
    (0..count).for_each(|i| writer.push_sequence(&sequence(i), None, None).unwrap());
    writer.finish().unwrap();
    path
}

#[test]
fn sequences_come_once_per_epoch_whole_and_in_the_same_order_in_both_modes() {
    let place = Place::new();
    let path = sequences(&place, 500);
    let whole = |mode| {
        let mut batches = Batches::new(&path, options(mode, 33, 7, None)).unwrap();
        assert_eq!((batches.len(), batches.shape()), (500, ItemShape::Sequence { dim: 2 }));
        let some = epoch(&mut batches, 3);
        let later: Vec<Batch> = batches.epoch_from(3, 9).collect::<Result<_, _>>().unwrap();
        assert_eq!(later, some[9..], "a run that is resumed in mid-epoch");
        some
    };
    let (memory, stream) = (whole(LoadMode::Memory), whole(LoadMode::Stream));
    assert_eq!(memory, stream);
    let mut seen = order(&memory);
    assert_ne!(seen, (0..500).collect::<Vec<_>>());
    seen.sort_unstable();
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
    for batch in &memory {
        let (values, lengths) = batch.items.steps().unwrap();
        let expected: Vec<Vec<f32>> = batch.indices.iter().map(|&i| sequence(i)).collect();
        assert_eq!(lengths, expected.iter().map(|one| one.len() / 2).collect::<Vec<_>>());
        assert_eq!(values, expected.concat());
    }
}

#[test]
fn windows_of_sequences_stay_within_the_budget_where_the_longest_come_together() {
    let place = Place::new();
    let path = place.path("long.h5");
    let mut writer = Writer::create(&path, WriterOptions::new(ItemShape::Sequence { dim: 2 }, "s", "test")).unwrap();
    // 2000 sequences of 10 KiB, and a few of 8 MiB: 36 MiB in all, chunks of about a MiB.
    for i in 0..2000 {
        let steps = if i % 700 == 50 { 1 << 20 } else { 1280 };
        writer.push_sequence(&vec![i as f32; 2 * steps], None, None).unwrap();
    }
    writer.finish().unwrap();
    let budget = 30 << 20;
    let options = LoadOptions { batch: 50, memory_budget: budget, ..LoadOptions::default() };
    let mut batches = Batches::new(&path, options).unwrap();
    assert!(!batches.in_memory());
    let some = epoch(&mut batches, 0);
    assert_eq!(order(&some).len(), 2000);
    for batch in &some {
        let (values, lengths) = batch.items.steps().unwrap();
        let mut rest = values;
        for (&index, length) in batch.indices.iter().zip(lengths) {
            assert!(rest.split_off(..2 * length).unwrap().iter().all(|&value| value == index as f32));
        }
    }
}
