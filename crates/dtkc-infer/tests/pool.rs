//! Many images through worker threads: order, failures, stopping.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{model, runtime, session};
use dtkc_image::Limits;
use dtkc_infer::{Assignment, Pool, PoolOptions, RawItem, Task, Work};
use dtkc_item::{ImageShape, ItemError, Items};
use dtkc_onnx::testing::Sample;

const SAMPLE: Sample =
    Sample { height: 20, width: 22, channels: 1, filters: 3, hidden: 5, clusters: 4, padding: 0, seed: 3 };

fn options(workers: usize) -> PoolOptions {
    PoolOptions { workers, queue: 2, ..PoolOptions::default() }
}

/// A PGM file of those pixels.
fn pgm(pixels: &[u8]) -> Vec<u8> {
    [b"P5 22 20 255\n", pixels].concat()
}

/// Decoded images as one task.
fn decoded(tag: usize, pixels: &[u8], shape: ImageShape) -> Task<usize> {
    Task { tag, work: Work::Decoded(Items::Images { shape, pixels: pixels.to_vec() }) }
}

fn code(answer: &Result<Assignment, ItemError>) -> &str {
    answer.as_ref().map_or_else(|error| &*error.code, |_| "good")
}

fn answers(pool: Pool<usize>, tasks: Vec<Task<usize>>) -> Vec<Result<Assignment, ItemError>> {
    let mut all = Vec::new();
    let mut expected_tag = 0;
    pool.run(tasks.into_iter(), |finished| {
        assert_eq!(finished.tag, expected_tag);
        expected_tag += 1;
        let answers = finished.outcome.map_err(|error| error.to_string())?;
        all.extend(answers.iter().map(|answer| answer.map_err(Clone::clone)));
        Ok::<(), String>(())
    })
    .unwrap();
    all
}

#[test]
fn every_form_batch_size_and_worker_count_gives_the_same_answers_in_order() {
    let model = model(&SAMPLE);
    let count = 50;
    let pixels = SAMPLE.images(count);
    let each = pixels.len() / count;
    let direct: Vec<_> = session(&model, 1).run(&pixels, count).unwrap().iter().map(Ok).collect();
    let folder = tempfile::tempdir().unwrap();
    let image = |number: usize| &pixels[number * each..(number + 1) * each];
    let item = |number: usize| match number % 3 {
        0 => RawItem::Encoded(pgm(image(number))),
        1 => {
            let path = folder.path().join(format!("{number}.pgm"));
            std::fs::write(&path, pgm(image(number))).unwrap();
            RawItem::File(path)
        }
        _ => RawItem::Pixels { shape: SAMPLE.shape(), pixels: image(number).to_vec() },
    };
    for (workers, batch) in [(1, 1), (1, 7), (2, 8), (3, 16), (4, 50)] {
        let parts: Vec<Vec<usize>> = (0..count).collect::<Vec<_>>().chunks(batch).map(<[usize]>::to_vec).collect();
        let start = || Pool::start(&runtime(), &model, &options(workers)).unwrap();
        let tasks = parts
            .iter()
            .enumerate()
            .map(|(tag, part)| Task { tag, work: Work::Raw(part.iter().map(|&number| item(number)).collect()) });
        assert_eq!(answers(start(), tasks.collect()), direct, "images, {workers} workers, batches of {batch}");
        let tasks = pixels.chunks(batch * each).enumerate().map(|(tag, part)| decoded(tag, part, SAMPLE.shape()));
        assert_eq!(answers(start(), tasks.collect()), direct, "pixels, {workers} workers, batches of {batch}");
    }
}

#[test]
fn a_bad_image_fails_alone_and_keeps_its_place() {
    let model = model(&SAMPLE);
    let pixels = SAMPLE.images(2);
    let (first, second) = pixels.split_at(pixels.len() / 2);
    let images = vec![
        RawItem::Encoded(b"not an image".to_vec()),
        RawItem::Encoded(pgm(first)),
        RawItem::Encoded(Vec::new()),
        RawItem::Failed(ItemError::new("gone", "it went away")),
        RawItem::File("/no/such/file.png".into()),
        RawItem::Encoded(b"P5 60000 60000 255\n".to_vec()),
        RawItem::Encoded(pgm(second)),
        RawItem::Pixels { shape: SAMPLE.shape(), pixels: vec![0; 3] },
    ];
    let options = PoolOptions { keep_items: true, ..options(2) };
    let pool = Pool::start(&runtime(), &model, &options).unwrap();
    let mut batches = Vec::new();
    pool.run([Task { tag: (), work: Work::Raw(images) }].into_iter(), |done| done.outcome.map(|b| batches.push(b)))
        .unwrap();
    let batch = &batches[0];
    let codes: Vec<&str> =
        batch.rows.iter().map(|row| row.as_ref().map_or_else(|error| &*error.code, |_| "good")).collect();
    let expected = ["not_an_image", "good", "empty", "gone", "unreadable", "too_large", "good", "wrong_length"];
    assert_eq!(codes, expected);
    assert_eq!(batch.assignments, session(&model, 1).run(&pixels, 2).unwrap());
    assert_eq!(batch.items.as_ref().and_then(Items::pixels), Some(&pixels[..]));
}

#[test]
fn pixels_of_another_size_or_colour_are_brought_to_the_models() {
    let model = model(&SAMPLE);
    let mut gray = SAMPLE.images(1);
    gray[0] = 0;
    let rgb: Vec<u8> = gray.iter().flat_map(|&pixel| [pixel; 3]).collect();
    let large: Vec<u8> =
        gray.chunks(22).flat_map(|row| row.iter().flat_map(|&p| [p; 2]).collect::<Vec<_>>().repeat(2)).collect();
    let shape = SAMPLE.shape();
    let tasks = vec![
        decoded(0, &gray, shape),
        decoded(1, &rgb, ImageShape { channels: 3, ..shape }),
        decoded(2, &large, ImageShape { height: 40, width: 44, ..shape }),
        decoded(3, &[gray.as_slice(), &gray].concat(), ImageShape { channels: 2, ..shape }),
    ];
    let found = answers(Pool::start(&runtime(), &model, &options(2)).unwrap(), tasks);
    assert_eq!(found[0], found[1]);
    assert!(found[2].is_ok());
    assert_eq!(code(&found[3]), "unsupported");
    let wrong = decoded(0, &gray[1..], shape);
    let pool = Pool::start(&runtime(), &model, &options(1)).unwrap();
    let error = pool.run([wrong].into_iter(), |done| done.outcome.map(|_| ())).unwrap_err();
    assert!(error.to_string().contains("439"), "{error}");
}

#[test]
fn the_work_under_way_is_bounded_and_stops_with_its_reader() {
    let model = model(&SAMPLE);
    let taken = AtomicUsize::new(0);
    let task = |tag| {
        taken.fetch_add(1, Ordering::SeqCst);
        Task { tag, work: Work::Raw(vec![RawItem::Encoded(pgm(&SAMPLE.images(1)))]) }
    };
    let pool = Pool::start(&runtime(), &model, &options(2)).unwrap();
    let mut seen = 0;
    let stopped = pool.run((0..1_000_000).map(task), |_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        seen += 1;
        // Two workers, a queue of two, one being handed in, one being handed out.
        assert!(taken.load(Ordering::SeqCst) <= seen + 6);
        if seen == 5 { Err("enough") } else { Ok(()) }
    });
    assert_eq!(stopped, Err("enough"));
    assert!(taken.load(Ordering::SeqCst) <= 12);
}

#[test]
fn limits_hold() {
    let model = model(&SAMPLE);
    let limits = Limits { max_bytes: 452, max_side: 22, max_pixels: 440 };
    let options = PoolOptions { limits, ..options(1) };
    let exact = pgm(&SAMPLE.images(1));
    let work = || Work::Raw(vec![RawItem::Encoded(exact.clone()), RawItem::Encoded(b"P5 23 1 255\n".repeat(4))]);
    let found = answers(Pool::start(&runtime(), &model, &options).unwrap(), vec![Task { tag: 0, work: work() }]);
    assert_eq!(code(&found[0]), "too_large");
    let options = PoolOptions { limits: Limits { max_bytes: 453, ..limits }, ..options };
    let found = answers(Pool::start(&runtime(), &model, &options).unwrap(), vec![Task { tag: 0, work: work() }]);
    assert!(found[0].is_ok());
    assert_eq!(code(&found[1]), "too_large");
}
