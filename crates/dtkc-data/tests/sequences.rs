//! `dtkc-data` with datasets of sequences: info, subset, merge, preview.
#![allow(clippy::unwrap_used)]

use dtkc_dataset::{Writer, WriterOptions};
use dtkc_item::ItemShape;
use dtkc_testing::{Place, labels};

const LETTERS: &str = "@problemName L\n@classLabel true a b z\n@data\n\
    1,2,3:4,5,6:0,0,1:z\n7:8:0:a\n9,10:11,12:0,1:b\n1,1:1,1:1,1:a\n";

fn letters(place: &Place) {
    place.write("letters.ts", LETTERS);
    place.run(["import", "letters.ts", "--out", "letters.h5"]).ok();
}

#[test]
fn info_tells_lengths_ranges_and_what_is_missing() {
    let place = Place::of("dtkc-data");
    letters(&place);
    let said = place.run(["info", "letters.h5"]).ok();
    for part in [
        "4 sequences of 3 values, 1 to 3 steps long",
        "1 to 3 steps, median 2, 8 in all",
        "missing      none",
        "1   1 to 10, mean 4.2500, deviation 3.5620",
        "3   0 to 1,",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let json: serde_json::Value = serde_json::from_str(&place.run(["info", "letters.h5", "--json"]).ok()).unwrap();
    assert_eq!(json["sequence"]["median"], 2);
    assert_eq!(json["values"]["missing"], 0);
    assert_eq!(json["values"]["dimensions"][1]["max"], 12.0);
    // A file of another program may hold NaN and sequences without steps; it is described, and no part of it is lost.
    let options = WriterOptions::new(ItemShape::Sequence { dim: 1 }, "odd", "");
    let mut writer = Writer::create(&place.path("odd.h5"), options).unwrap();
    writer.push_sequence(&[f32::NAN, 2.0, f32::INFINITY], None, None).unwrap();
    writer.finish().unwrap();
    let said = place.run(["info", "odd.h5"]).ok();
    assert!(said.contains("missing      2 values") && said.contains("1   2 to 2, mean 2, deviation 0"), "{said}");
    place.run(["preview", "odd.h5", "--out", "odd.png"]).ok();
}

#[test]
fn parts_are_taken_and_joined_as_with_images() {
    let place = Place::of("dtkc-data");
    letters(&place);
    let part = place.made(&["subset", "letters.h5", "--classes", "z,a", "--out", "part.h5"], "part.h5");
    assert_eq!(part.label_names().unwrap().unwrap(), ["a", "z"]);
    assert_eq!(labels(&part), [1, 0, 0]);
    assert_eq!(part.read_sequence(2).unwrap(), [1.0; 6]);
    let both = place.made(&["merge", "part.h5", "letters.h5", "--compress", "--out", "both.h5"], "both.h5");
    assert_eq!((both.len(), both.label_names().unwrap().unwrap()), (7, vec!["a".into(), "z".into(), "b".into()]));
    assert_eq!(labels(&both), [1, 0, 0, 1, 0, 2, 0]);
    assert_eq!(both.read_sequence(5).unwrap(), [9.0, 11.0, 0.0, 10.0, 12.0, 1.0]);
    // Packed and in other blocks, but the same content.
    let again = place.made(&["subset", "both.h5", "--range", "3..", "--out", "again.h5"], "again.h5");
    assert_eq!(again.len(), 4);
    let again = place.made(&["merge", "again.h5", "part.h5", "--out", "c.h5"], "c.h5");
    assert_eq!(again.read_sequence(0).unwrap(), both.read_sequence(3).unwrap());
    let error = place.fails(&["subset", "letters.h5", "--classes", "q", "--out", "d.h5"], 2);
    assert!(error.contains("no class 'q'; it has a, b, z"), "{error}");
    place.write("flat.ts", "@problemName F\n@classLabel true a\n@data\n1,2:a\n");
    place.run(["import", "flat.ts", "--out", "flat.h5"]).ok();
    let error = place.fails(&["merge", "letters.h5", "flat.h5", "--out", "d.h5"], 1);
    assert!(error.contains("sequences of 3 values a step") && error.contains("of 1 values a step"), "{error}");
    assert!(!error.contains("colour"), "{error}");
}

#[test]
fn sequences_are_drawn_in_every_style() {
    let place = Place::of("dtkc-data");
    letters(&place);
    for (flags, height) in [("", 444), ("--cumulative", 354), ("--draw map", 258), ("--draw curves --cumulative", 444)]
    {
        let line = format!("preview letters.h5 --columns 3 --out a.png --force {flags}");
        let said = place.run(line.split_whitespace()).ok();
        assert!(said.contains(&format!("x{height} pixels")), "{flags}: {said}");
        let picture = image::open(place.path("a.png")).unwrap().to_rgb8();
        let colors: std::collections::BTreeSet<_> = picture.pixels().map(|p| p.0).collect();
        assert!(colors.len() > 10, "{flags}: {} colours", colors.len());
    }
    let error = place.fails(&["preview", "letters.h5", "--draw", "dots", "--out", "b.png"], 2);
    assert!(error.contains("curves, pen or map"), "{error}");
    place.write("flat.ts", "@problemName F\n@classLabel true a\n@data\n1,2:a\n");
    place.run(["import", "flat.ts", "--out", "flat.h5"]).ok();
    let error = place.fails(&["preview", "flat.h5", "--draw", "pen", "--out", "b.png"], 2);
    assert!(error.contains("need 2 or 3 values a step and there are 1"), "{error}");
    place.run(["synth", "--kind", "glyphs", "--count", "10", "--out", "g.h5"]).ok();
    let error = place.fails(&["preview", "g.h5", "--cumulative", "--out", "b.png"], 2);
    assert!(error.contains("g.h5 holds images"), "{error}");
}
