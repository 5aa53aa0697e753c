//! `--duplicates`: copies are found, listed and shown, whichever way a run goes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::io::{Cursor, Write};
use std::process::Stdio;

use common::{Place, json, refused, rows};
use dtkc_label::journal::Reader;
use dtkc_testing::wait_until;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::{ImageFormat, RgbImage};

/// A number between -1 and 1 for every point of a grid, other ones for every picture.
fn noise(number: u32, x: u32, y: u32) -> f32 {
    let mixed = number.wrapping_mul(0x9e37_79b9) ^ x.wrapping_mul(0x85eb_ca6b) ^ y.wrapping_mul(0xc2b2_ae35);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x2c1b_3c6d);
    let mixed = (mixed ^ (mixed >> 12)).wrapping_mul(0x297a_2d39);
    (mixed >> 8) as f32 / 8_388_608.0 - 1.0
}

/// The same between the points of a grid of so many cells.
fn clouds(number: u32, cells: f32, x: f32, y: f32) -> f32 {
    let (x, y) = (x * cells, y * cells);
    let (left, top) = (x.floor(), y.floor());
    let at = |dx: u32, dy: u32| noise(number, left as u32 + dx, top as u32 + dy);
    let (right, down) = (x - left, y - top);
    let between = |a: f32, b: f32, part: f32| a + (b - a) * part;
    between(between(at(0, 0), at(1, 0), right), between(at(0, 1), at(1, 1), right), down)
}

/// A picture with structure at several scales, as photographs have it, another for every number.
fn picture(number: u32, (width, height): (u32, u32)) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (x, y) = (x as f32 / width as f32, y as f32 / height as f32);
        let layers = [(4.0, 60.0), (9.0, 35.0), (19.0, 20.0)];
        let sum: f32 = (0..).zip(layers).map(|(i, (cells, high))| high * clouds(number * 3 + i, cells, x, y)).sum();
        let value = |share: f32| (128.0 + sum * share) as u8;
        image::Rgb([value(1.0), value(0.8), value(0.5)])
    })
}

fn png(image: &RgbImage) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, ImageFormat::Png).unwrap();
    out.into_inner()
}

fn jpeg(image: &RgbImage, quality: u8) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut out, quality).encode_image(image).unwrap();
    out.into_inner()
}

/// Six pictures, copies of two of them, and blank ones.
fn place() -> Place {
    let place = Place::new();
    for number in 0..6 {
        place.write(&format!("photos/{number}.png"), png(&picture(number, (200, 160))));
    }
    let of = |number| picture(number, (200, 160));
    let half = imageops::resize(&of(2), 100, 80, FilterType::Triangle);
    let cut = imageops::crop_imm(&of(2), 12, 10, 176, 140).to_image();
    place.write("photos/2-half.png", png(&half));
    place.write("photos/2-cut.jpg", jpeg(&cut, 60));
    place.write("photos/4-bright.png", png(&imageops::colorops::brighten(&of(4), 25)));
    place.write("photos/4-large.png", png(&imageops::resize(&of(4), 300, 240, FilterType::CatmullRom)));
    place.write("photos/bad.png", "no image");
    for (name, value) in [("white-1", 255), ("white-2", 250), ("black", 3)] {
        place.write(&format!("photos/{name}.png"), png(&RgbImage::from_pixel(50, 40, image::Rgb([value; 3]))));
    }
    place
}

const BASE: [&str; 3] = ["--input", "photos", "--duplicates"];

fn label(place: &Place, more: &[&str]) {
    place.ok(&[&BASE[..], more].concat());
}

/// The groups of a table: file names, the one to keep first.
fn groups(table: &str) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    for row in rows(table) {
        let name = row["path"].trim_start_matches("photos/").to_owned();
        match row["keep"].as_str() {
            "yes" => groups.push(vec![name]),
            _ => groups.last_mut().unwrap().push(name),
        }
        assert_eq!(row["group"], groups.len().to_string());
    }
    groups
}

#[test]
fn copies_are_listed_the_one_to_keep_first() {
    let place = place();
    label(&place, &["--output", "out.csv", "--gallery", "page.html"]);
    let table = place.text("out.csv.duplicates.csv");
    assert_eq!(
        groups(&table),
        [
            vec!["2.png", "2-cut.jpg", "2-half.png"],
            vec!["4-large.png", "4.png", "4-bright.png"],
            vec!["white-2.png", "white-1.png"]
        ]
        .map(|group| {
            let mut group: Vec<String> = group.into_iter().map(str::to_owned).collect();
            group[1..].sort();
            group
        })
    );
    let labels = rows(&place.text("out.csv"));
    for row in rows(&table) {
        let label = &labels[row["index"].parse::<usize>().unwrap()];
        assert_eq!(
            (&row["path"], &row["cluster"], &row["cluster_name"]),
            (&label["path"], &label["cluster"], &label["cluster_name"])
        );
        let size = std::fs::metadata(place.path(&row["path"])).unwrap().len();
        assert_eq!(row["bytes"], size.to_string());
        let (distance, similarity): (u32, f32) = (row["distance"].parse().unwrap(), row["similarity"].parse().unwrap());
        assert!(distance <= 64 && (row["keep"] == "no" || (distance, similarity) == (0, 1.0)), "{row:?}");
    }
    let page = place.text("page.html");
    assert!(
        page.contains("<dt>near-duplicates</dt><dd>5</dd>") && page.contains("<b>5</b> could go, of <b>3</b> groups")
    );
    assert!(page.contains("keep <i>300×240</i>"));
    // Nothing else changes: neither the rows nor, without the flag, the page.
    place.ok(&["--input", "photos", "--output", "plain.csv", "--gallery", "plain.html"]);
    assert!(place.text("plain.csv") == place.text("out.csv"));
    assert!(!place.text("plain.html").contains("near-duplicates") && !place.path("plain.csv.duplicates.csv").exists());
}

#[test]
fn the_figures_are_said() {
    let place = place();
    let said = place.run([&["--model", "model.onnx", "--output", "out.csv"], &BASE[..]].concat());
    assert!(said.err.contains("5 images are near-duplicates of 3 others: out.csv.duplicates.csv"), "{said:?}");
    let said = place.run([&["--model", "model.onnx", "--output", "out.csv", "--force", "--json"], &BASE[..]].concat());
    let found = &json(&said.out)["duplicates"];
    assert_eq!((&found["groups"], &found["images"], &found["surplus"]), (&3.into(), &8.into(), &5.into()));
    assert_eq!(found["table"], "out.csv.duplicates.csv");
    let strict = ["--duplicate-distance", "0", "--output", "strict.csv", "--model", "model.onnx"];
    let said = place.run([&strict, &BASE[..]].concat());
    assert!(said.err.contains("2 images are near-duplicates of 2 others: strict.csv.duplicates.csv"), "{said:?}");
}

#[test]
fn shards_and_every_form_give_the_same_table() {
    let place = place();
    // Shards are runs of 64 images.
    for number in 0..100 {
        place.write(&format!("photos/{number:03}.png"), png(&picture(100 + number * 7, (64, 64))));
    }
    for ending in ["csv", "jsonl", "parquet", "h5"] {
        let out = |name: &str| format!("{name}.{ending}");
        label(&place, &["--output", &out("whole"), "--gallery", "whole.html"]);
        for shard in ["1", "2"] {
            label(
                &place,
                &["--output", &out(&format!("part-{shard}")), "--shard", &format!("{shard}/2"), "--batch", "5"],
            );
            assert!(!place.path(&format!("part-{shard}.{ending}.duplicates.csv")).exists());
        }
        let merge = ["merge", "-q", "--force", "--output", &out("all"), "--gallery", "all.html"];
        place.run([&merge[..], &[&out("part-2"), &out("part-1")]].concat()).ok();
        assert!(
            place.text(&(out("all") + ".duplicates.csv")) == place.text(&(out("whole") + ".duplicates.csv")),
            "{ending}"
        );
        assert!(place.text("all.html") == place.text("whole.html"), "{ending}");
        assert!(
            groups(&place.text(&(out("all") + ".duplicates.csv")))
                .contains(&vec!["white-2.png".into(), "white-1.png".into()])
        );
    }
    std::fs::remove_file(place.path("part-1.csv.prints")).unwrap();
    let said = place.run(["merge", "part-1.csv", "part-2.csv", "--output", "no.csv"]);
    refused(said, 1, "part-1.csv.prints is missing beside it, which --duplicates needs; copy it, too");
    assert!(!place.path("no.csv").exists());
}

#[test]
fn a_run_that_was_killed_goes_on_to_the_same_table() {
    let place = place();
    let list: String =
        dtkc_testing::names(&place.path("photos")).iter().map(|name| format!("photos/{name}\n")).collect();
    let arguments = ["--input", "-", "--duplicates", "--batch", "1", "--threads", "1", "--output"];
    place.ok_with_input(&[&arguments[..], &["whole.csv"]].concat(), &list);
    let mut child = place.label(&[&arguments[..], &["cut.csv"]].concat()).stdin(Stdio::piped()).spawn().unwrap();
    let half: String = list.lines().take(7).map(|line| format!("{line}\n")).collect();
    child.stdin.as_mut().unwrap().write_all(half.as_bytes()).unwrap();
    wait_until("seven rows are in the journal", || {
        let Ok(mut journal) = Reader::open(&place.path("cut.csv")) else { return false };
        std::iter::from_fn(|| journal.next_block().unwrap()).map(|rows| rows.len()).sum::<usize>() == 7
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path("cut.csv.duplicates.csv").exists());
    let without = ["--input", "-", "--batch", "1", "--threads", "1", "--resume", "--output", "cut.csv"];
    refused(place.label_with_input(&without, &list), 1, "duplicates was 64 and is now null");
    place.ok_with_input(&[&arguments[..], &["cut.csv", "--resume"]].concat(), &list);
    assert!(place.text("cut.csv.duplicates.csv") == place.text("whole.csv.duplicates.csv"));
    assert!(groups(&place.text("cut.csv.duplicates.csv")).len() == 3);
}

#[test]
fn rows_of_datasets_have_copies_too() {
    let place = Place::new();
    place.dataset("set.h5", 30);
    place.ok(&["--input", "set.h5", "set.h5", "--duplicates", "--output", "out.csv"]);
    let table = rows(&place.text("out.csv.duplicates.csv"));
    let index = |row: &std::collections::BTreeMap<String, String>| row["index"].parse::<usize>().unwrap();
    // Every row has its twin at least, and of equals the first is kept.
    for number in 0..30 {
        let [first, second] = [number, number + 30].map(|at| table.iter().find(|row| index(row) == at).unwrap());
        assert_eq!(first["group"], second["group"]);
        assert_eq!((second["keep"].as_str(), first["bytes"].as_str()), ("no", ""));
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let place = place();
    place.refused(
        &["--input", "photos", "--duplicates", "--output", "-"],
        2,
        "rows go to standard output; name a file",
    );
    place.refused(&["--input", "photos", "--duplicate-distance", "9", "--output", "a.csv"], 2, "--duplicates");
    place.refused(&[&BASE[..], &["--duplicate-distance", "97", "--output", "a.csv"]].concat(), 2, "97");
    place.write("a.csv.duplicates.csv", "precious");
    place.refused(&[&BASE[..], &["--output", "a.csv"]].concat(), 2, "a.csv.duplicates.csv exists already; add --force");
    assert_eq!(place.text("a.csv.duplicates.csv"), "precious");
    let twin = [&BASE[..], &["--output", "a.csv", "--force", "--gallery", "a.csv.duplicates.csv"]].concat();
    place.refused(&twin, 2, "two outputs would be the same file");
    place.write("list.csv.duplicates.csv", png(&picture(1, (20, 20))));
    let input = ["--input", "list.csv.duplicates.csv", "--duplicates", "--output", "list.csv", "--force"];
    place.refused(&input, 2, "list.csv.duplicates.csv is one of the inputs");
}
