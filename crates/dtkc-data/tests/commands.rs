//! The program's info, preview, subset and merge, as a user calls them.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use dtkc_dataset::Dataset;
use dtkc_item::ImageShape;
use dtkc_testing::{Place, SHAPE, Said, Set, image, program, sequence, write_sequences};

const GRAY: ImageShape = ImageShape { height: 28, width: 28, channels: 1 };

/// The numbers that the test images carry in their first bytes.
fn numbers(dataset: &Dataset) -> Vec<usize> {
    let bytes = dataset.image_shape().unwrap().len();
    let all = dataset.read_range(0..dataset.len()).unwrap();
    all.chunks_exact(bytes).map(|row| u32::from_le_bytes(row[..4].try_into().unwrap()) as usize).collect()
}

#[test]
fn info_describes_a_set_of_images() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 1000).labelled(&["zero", "one", "two"]).with_paths().write(&place.path("a.h5"));
    let text = place.run_line("info a.h5").ok();
    for words in [
        "a.h5: 1,000 gray images of 28x28 pixels",
        "u8 [1000, 28, 28, 1], 0 to 255",
        "chunks of 334 images (255.7 KiB), not compressed",
        "made by a test",
        "classes      3",
        "1 one   333  33.3 %",
    ] {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    let quick = place.run_line("info a.h5 --quick").ok();
    assert!(!quick.contains("fingerprint") && !quick.contains("mean"), "{quick}");
}

#[test]
fn info_speaks_json() {
    let place = Place::of("dtkc-data");
    let set = Set::new(SHAPE, 30).numbered(4).gzip(5);
    set.write(&place.path("a.h5"));
    let json: serde_json::Value = serde_json::from_str(&place.run_line("info a.h5 --json").ok()).unwrap();
    assert_eq!(json["kind"], "images");
    assert_eq!(json["count"], 30);
    assert_eq!(json["image"], serde_json::json!({ "height": 64, "width": 64, "channels": 3 }));
    assert_eq!(json["storage"]["filters"], serde_json::json!(["shuffle", "gzip 5"]));
    assert_eq!(json["storage"]["chunk"], serde_json::json!([21, 64, 64, 3]));
    assert_eq!(json["classes"][3], serde_json::json!({ "label": 3, "name": null, "count": 7 }));
    assert_eq!(json["fingerprint"], place.open("a.h5").fingerprint().unwrap());
    let all: Vec<f64> = (0..30).flat_map(|i| image(SHAPE, i)).map(f64::from).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let variance = all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / all.len() as f64;
    assert!((json["values"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
    assert!((json["values"]["deviation"].as_f64().unwrap() - variance.sqrt()).abs() < 1e-6);

    Set::new(SHAPE, 2).write(&place.path("b.h5"));
    let json: serde_json::Value = serde_json::from_str(&place.run_line("info b.h5 --json --quick").ok()).unwrap();
    assert!(json["classes"].is_null() && json["values"].is_null() && json["fingerprint"].is_null());
}

#[test]
fn info_describes_sequences() {
    let place = Place::of("dtkc-data");
    write_sequences(&place.path("s.h5"), 20);
    let text = place.run_line("info s.h5").ok();
    assert!(text.contains("20 sequences of 3 values, 1 to 7 steps long"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&place.run_line("info s.h5 --json").ok()).unwrap();
    assert_eq!(
        json["sequence"],
        serde_json::json!({ "dim": 3, "median": 4, "shortest": 1, "longest": 7, "steps": 77 })
    );
}

#[test]
fn bad_files_get_one_sentence() {
    let place = Place::of("dtkc-data");
    place.write("text.h5", "hello");
    let whole = std::fs::read(Set::new(GRAY, 400).write(&place.path("a.h5"))).unwrap();
    place.write("half.h5", &whole[..whole.len() / 2]);
    place.run_line("info none.h5").fails(1, "none.h5");
    place.run_line("info text.h5").fails(1, "text.h5 is not an HDF5 file");
    place.run_line("info half.h5").fails(1, "half.h5 is damaged or incomplete (it is cut off)");
    place.run_line("preview half.h5 --out x.png").fails(1, "half.h5 is damaged");
    place.run_line("subset half.h5 --count 3 --out x.h5").fails(1, "half.h5 is damaged");
    place.run_line("merge a.h5 text.h5 --out x.h5").fails(1, "text.h5 is not an HDF5 file");
    place.run_line("subset a.h5 --count 3 --out no/such/x.h5").fails(1, "no/such/x.h5");
    assert_eq!(place.run_line("info").code, 2);
    assert_eq!(place.run_line("merge a.h5 --out x.h5").code, 2);
    assert_eq!(place.names(), ["a.h5", "half.h5", "text.h5"]);
}

#[test]
fn a_full_disk_is_one_sentence_and_leaves_nothing() {
    let place = Place::of("dtkc-data");
    Set::new(SHAPE, 400).labelled(&["a", "b"]).with_paths().write(&place.path("a.h5"));
    let program = program("dtkc-data");
    // A limit on the file size stands for the end of the disk: the write fails in the same place.
    // Also just before the end, where names and tables are written.
    place.run_line("subset a.h5 --count 400 --out whole.h5").ok();
    let size = std::fs::metadata(place.path("whole.h5")).unwrap().len() as usize / 1024;
    std::fs::remove_file(place.path("whole.h5")).unwrap();
    for blocks in [1, 8, 100, 1000, 4000].into_iter().chain(size - 20..size) {
        for extra in ["", "--compress 1"] {
            let line = format!(
                "trap '' XFSZ; ulimit -f {blocks}; exec '{}' subset a.h5 --count 400 --out b.h5 {extra}",
                program.display()
            );
            let mut shell = std::process::Command::new("bash");
            let said = Said::from(shell.current_dir(place.folder()).args(["-c", &line]).output().unwrap());
            if said.code == 0 {
                // What is compressed may fit.
                assert!(!extra.is_empty());
                std::fs::remove_file(place.path("b.h5")).unwrap();
                continue;
            }
            said.fails(1, "error: cannot write b.h5: the file would be larger");
            assert_eq!(place.names(), ["a.h5"]);
        }
    }
}

#[test]
fn subsets_by_count_range_class_and_chance() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 90).labelled(&["zero", "one", "two"]).with_paths().write(&place.path("a.h5"));
    let take = |flags: &str| {
        place.run_line(&format!("subset a.h5 --out b.h5 --force {flags}")).ok();
        numbers(&place.open("b.h5"))
    };
    assert_eq!(take("--count 5"), [0, 1, 2, 3, 4]);
    assert_eq!(take("--range 80.."), (80..90).collect::<Vec<_>>());
    assert_eq!(take("--range ..3"), [0, 1, 2]);
    assert_eq!(take("--range 10..20 --count 2"), [10, 11]);
    let sample = take("--sample 20 --seed 3");
    assert_eq!(sample.len(), 20);
    assert!(sample.is_sorted() && sample != (0..20).collect::<Vec<_>>());
    assert_eq!(sample, take("--sample 20 --seed 3"));
    assert_ne!(sample, take("--sample 20 --seed 4"));
    assert_eq!(take("--per-class 7").len(), 21);
    assert_eq!(take("--classes two,0 --count 4"), [0, 2, 3, 5]);
    let dataset = place.open("b.h5");
    // The class that is gone leaves no gap.
    assert_eq!(dataset.labels().unwrap().unwrap(), [0, 1, 0, 1]);
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["zero", "two"]);
    assert_eq!(dataset.paths(0..4).unwrap().unwrap()[1], "folder/2.png");
    assert_eq!(dataset.name(), "b");
    assert_eq!(dataset.source(), "4 of 90 items of test (made by a test)");
}

#[test]
fn subsets_keep_labels_without_names_and_sequences() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 10).numbered(5).write(&place.path("a.h5"));
    place.run_line("subset a.h5 --classes 2,4 --out b.h5 --compress 3 --name mine").ok();
    let dataset = place.open("b.h5");
    assert_eq!(dataset.labels().unwrap().unwrap(), [2, 4, 2, 4]);
    assert_eq!(dataset.label_names().unwrap(), None);
    assert_eq!(dataset.storage().filters, ["shuffle", "gzip 3"]);
    assert_eq!(dataset.name(), "mine");

    write_sequences(&place.path("s.h5"), 20);
    place.run_line("subset s.h5 --range 5..9 --out t.h5").ok();
    let dataset = place.open("t.h5");
    assert_eq!(dataset.len(), 4);
    assert_eq!(dataset.read_sequence(3).unwrap(), sequence(8));
}

#[test]
fn subset_mistakes_are_usage_errors() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 10).write(&place.path("a.h5"));
    Set::new(GRAY, 10).labelled(&["x", "y"]).write(&place.path("l.h5"));
    place.run_line("subset a.h5 --out b.h5").fails(2, "say which part to take");
    place.run_line("subset a.h5 --classes 1 --out b.h5").fails(2, "a.h5 has no labels");
    place.run_line("subset a.h5 --per-class 1 --out b.h5").fails(2, "a.h5 has no labels");
    place.run_line("subset l.h5 --classes z --out b.h5").fails(2, "l.h5 has no class 'z'; it has x, y");
    place.run_line("subset a.h5 --range 5..11 --out b.h5").fails(2, "the range 5..11 is not inside the set's 0..10");
    assert_eq!(place.run_line("subset a.h5 --count 0 --out b.h5").code, 2);
    assert_eq!(place.run_line("subset a.h5 --count 3 --sample 3 --out b.h5").code, 2);
    assert_eq!(place.names(), ["a.h5", "l.h5"]);
}

#[test]
fn merging_joins_and_reconciles() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 6).labelled(&["cat", "dog"]).with_paths().write(&place.path("a.h5"));
    Set::new(GRAY, 3).labelled(&["dog", "bird", "cat"]).write(&place.path("b.h5"));
    place.run_line("merge a.h5 b.h5 --out c.h5").ok();
    let dataset = place.open("c.h5");
    assert_eq!(numbers(&dataset), [0, 1, 2, 3, 4, 5, 0, 1, 2]);
    assert_eq!(dataset.labels().unwrap().unwrap(), [0, 1, 0, 1, 0, 1, 1, 2, 0]);
    assert_eq!(dataset.label_names().unwrap().unwrap(), ["cat", "dog", "bird"]);
    // A set without paths gets its name and the index.
    assert_eq!(dataset.paths(5..8).unwrap().unwrap(), ["folder/5.png", "test/0", "test/1"]);

    Set::new(GRAY, 2).write(&place.path("bare.h5"));
    place
        .run_line("merge a.h5 bare.h5 --out d.h5")
        .fails(1, "bare.h5 has no labels but others have; add --drop-labels");
    place.run_line("merge a.h5 bare.h5 --drop-labels --out d.h5").ok();
    assert_eq!(place.open("d.h5").labels().unwrap(), None);
    Set::new(SHAPE, 2).write(&place.path("rgb.h5"));
    place
        .run_line("merge a.h5 rgb.h5 --out e.h5")
        .fails(1, "a.h5 holds images of 28x28x1 but rgb.h5 holds images of 64x64x3");
    write_sequences(&place.path("s.h5"), 5);
    place.run_line("merge s.h5 a.h5 --out e.h5").fails(1, "s.h5 holds sequences of 3 values a step but");
    place.run_line("merge s.h5 s.h5 --out t.h5").ok();
    assert_eq!(place.open("t.h5").read_sequence(7).unwrap(), sequence(2));
}

fn size(path: &Path) -> (u32, u32) {
    image::image_dimensions(path).unwrap()
}

#[test]
fn previews_are_drawn() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 100).labelled(&["T-shirt", "a name that is far too long", "Пальто"]).write(&place.path("a.h5"));
    let line = place.run_line("preview a.h5 --out a.png --columns 5").ok();
    let (width, height) = size(&place.path("a.png"));
    assert_eq!(line, format!("wrote a.png: {width}x{height} pixels\n"));
    let drawn = image::open(place.path("a.png")).unwrap().to_rgb8();
    // The last image of the first row, its corner: 28 pixels are drawn twice as large.
    let labels: Vec<usize> = (0..100).filter(|i| i % 3 == 0).collect();
    let shown = dtkc_dataset::sample(&labels, 5, 0);
    let expected = image(GRAY, shown[4]);
    let left = width - 16 - 56;
    let top = 16 + 14 + 14;
    for (x, y) in [(0, 0), (27, 27), (3, 20)] {
        let found = drawn.get_pixel(left + x * 2 + 1, top + y * 2 + 1).0;
        assert_eq!(found, [expected[(y * 28 + x) as usize]; 3], "{x} {y}");
    }
    place.run_line("preview a.h5 --out b.png --columns 5").ok();
    assert_eq!(place.read("a.png"), place.read("b.png"));
    place.run_line("preview a.h5 --out b.png --columns 5 --seed 1 --force").ok();
    assert_ne!(place.read("a.png"), place.read("b.png"));
}

#[test]
fn previews_of_odd_sets() {
    let place = Place::of("dtkc-data");
    let tall = ImageShape { height: 300, width: 40, channels: 3 };
    Set::new(tall, 3).write(&place.path("tall.h5"));
    place.run_line("preview tall.h5 --out a.png").ok();
    Set::new(ImageShape { height: 1, width: 1, channels: 1 }, 1).write(&place.path("dot.h5"));
    place.run_line("preview dot.h5 --out b.png").ok();
    Set::new(GRAY, 300).numbered(100).write(&place.path("many.h5"));
    place.run_line("preview many.h5 --out c.png --rows 5").ok();
    place.run_line("preview many.h5 --out c.png --classes 7,99 --force").ok();
    write_sequences(&place.path("s.h5"), 5);
    place.run_line("preview s.h5 --out s.png").ok();
    place.run_line("preview tall.h5 --classes 1 --out d.png").fails(2, "tall.h5 has no labels");
    place.run_line("preview many.h5 --classes 100 --out d.png").fails(2, "many.h5 has no class '100'");
    assert!(!place.path("d.png").exists());
}
