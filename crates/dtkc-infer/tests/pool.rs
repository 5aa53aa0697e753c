//! Many images through worker threads: order, failures, stopping.

#![allow(clippy::unwrap_used)]

mod common;

use dtkc_item::ItemError;
use dtkc_item::Color;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{model, runtime, session};
use dtkc_image::Limits;
use dtkc_infer::{Assignment, Job, Pool, PoolOptions, Source, Work};
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

fn answers(pool: Pool<usize>, jobs: Vec<Job<usize>>) -> Vec<Result<Assignment, ItemError>> {
    let mut all = Vec::new();
    let mut expected_tag = 0;
    pool.run(jobs.into_iter(), |done| {
        assert_eq!(done.tag, expected_tag);
        expected_tag += 1;
        let batch = done.outcome.map_err(|error| error.to_string())?;
        all.extend(batch.iter().map(|answer| answer.map_err(Clone::clone)));
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
    let source = |number: usize| match number % 3 {
        0 => Source::Encoded(pgm(image(number))),
        1 => {
            let path = folder.path().join(format!("{number}.pgm"));
            std::fs::write(&path, pgm(image(number))).unwrap();
            Source::File(path)
        }
        _ => Source::Pixels { pixels: image(number).to_vec(), height: 20, width: 22, color: Color::Gray },
    };
    for (workers, batch) in [(1, 1), (1, 7), (2, 8), (3, 16), (4, 50)] {
        let parts: Vec<Vec<usize>> = (0..count).collect::<Vec<_>>().chunks(batch).map(<[usize]>::to_vec).collect();
        let start = || Pool::start(&runtime(), &model, &options(workers)).unwrap();
        let jobs = parts
            .iter()
            .enumerate()
            .map(|(tag, part)| Job { tag, work: Work::Images(part.iter().map(|&number| source(number)).collect()) });
        assert_eq!(answers(start(), jobs.collect()), direct, "images, {workers} workers, batches of {batch}");
        let jobs = pixels.chunks(batch * each).enumerate().map(|(tag, part)| {
            let count = part.len() / each;
            Job { tag, work: Work::Pixels { pixels: part.to_vec(), count, height: 20, width: 22, color: Color::Gray } }
        });
        assert_eq!(answers(start(), jobs.collect()), direct, "pixels, {workers} workers, batches of {batch}");
    }
}

#[test]
fn a_bad_image_fails_alone_and_keeps_its_place() {
    let model = model(&SAMPLE);
    let pixels = SAMPLE.images(2);
    let (first, second) = pixels.split_at(pixels.len() / 2);
    let images = vec![
        Source::Encoded(b"not an image".to_vec()),
        Source::Encoded(pgm(first)),
        Source::Encoded(Vec::new()),
        Source::Failed(ItemError::new("gone", "it went away")),
        Source::File("/no/such/file.png".into()),
        Source::Encoded(b"P5 60000 60000 255\n".to_vec()),
        Source::Encoded(pgm(second)),
        Source::Pixels { pixels: vec![0; 3], height: 20, width: 22, color: Color::Gray },
    ];
    let options = PoolOptions { keep_pixels: true, ..options(2) };
    let pool = Pool::start(&runtime(), &model, &options).unwrap();
    let mut batches = Vec::new();
    pool.run([Job { tag: (), work: Work::Images(images) }].into_iter(), |done| done.outcome.map(|b| batches.push(b)))
        .unwrap();
    let batch = &batches[0];
    let codes: Vec<&str> =
        batch.rows.iter().map(|row| row.as_ref().map_or_else(|error| error.code, |_| "good")).collect();
    let expected = ["not_an_image", "good", "empty", "gone", "unreadable", "too_large", "good", "wrong_length"];
    assert_eq!(codes, expected);
    assert_eq!(batch.assignments, session(&model, 1).run(&pixels, 2).unwrap());
    assert_eq!(batch.pixels.as_deref(), Some(&pixels[..]));
}

#[test]
fn pixels_of_another_size_or_colour_are_brought_to_the_models() {
    let model = model(&SAMPLE);
    let mut gray = SAMPLE.images(1);
    gray[0] = 0;
    let rgb: Vec<u8> = gray.iter().flat_map(|&pixel| [pixel; 3]).collect();
    let large: Vec<u8> =
        gray.chunks(22).flat_map(|row| row.iter().flat_map(|&p| [p; 2]).collect::<Vec<_>>().repeat(2)).collect();
    let job = |tag, pixels: &[u8], height, width, color| Job {
        tag,
        work: Work::Pixels { pixels: pixels.to_vec(), count: 1, height, width, color },
    };
    let jobs =
        vec![job(0, &gray, 20, 22, Color::Gray), job(1, &rgb, 20, 22, Color::Rgb), job(2, &large, 40, 44, Color::Gray)];
    let found = answers(Pool::start(&runtime(), &model, &options(2)).unwrap(), jobs);
    assert_eq!(found[0], found[1]);
    assert!(found[2].is_ok());
    let wrong = job(0, &gray[1..], 20, 22, Color::Gray);
    let pool = Pool::start(&runtime(), &model, &options(1)).unwrap();
    let error = pool.run([wrong].into_iter(), |done| done.outcome.map(|_| ())).unwrap_err();
    assert!(error.to_string().contains("439"), "{error}");
}

#[test]
fn the_work_under_way_is_bounded_and_stops_with_its_reader() {
    let model = model(&SAMPLE);
    let taken = AtomicUsize::new(0);
    let job = |tag| {
        taken.fetch_add(1, Ordering::SeqCst);
        Job { tag, work: Work::Images(vec![Source::Encoded(pgm(&SAMPLE.images(1)))]) }
    };
    let pool = Pool::start(&runtime(), &model, &options(2)).unwrap();
    let mut seen = 0;
    let stopped = pool.run((0..1_000_000).map(job), |_| {
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
    let work = || Work::Images(vec![Source::Encoded(exact.clone()), Source::Encoded(b"P5 23 1 255\n".repeat(4))]);
    let found = answers(Pool::start(&runtime(), &model, &options).unwrap(), vec![Job { tag: 0, work: work() }]);
    assert_eq!(found[0].as_ref().map_err(|error| error.code), Err("too_large"));
    let options = PoolOptions { limits: Limits { max_bytes: 453, ..limits }, ..options };
    let found = answers(Pool::start(&runtime(), &model, &options).unwrap(), vec![Job { tag: 0, work: work() }]);
    assert!(found[0].is_ok());
    assert_eq!(found[1].as_ref().map_err(|error| error.code), Err("too_large"));
}
