//! `dtkc-data views`, as a user calls it.
#![allow(clippy::unwrap_used)]

use dtkc_item::ImageShape;
use dtkc_testing::{Place, Set, image, write_sequences};
use dtkc_views::{AugmentConfig, BatchKey, ViewMaker, reduced, scale_pixels, seen_pixels};
use image::RgbImage;

const GRAY: ImageShape = ImageShape { height: 28, width: 28, channels: 1 };
/// How large a pixel of images of 28 or 32 is drawn, the margin around the sheet, the gaps, and the line of the title.
const FACTOR: u32 = 2;
const MARGIN: u32 = 16;
const GAP: u32 = 3;
const APART: u32 = 12;
const TITLE: u32 = 28;

/// The image of 28 pixels that is drawn in a column of the first row of a set without labels.
fn drawn(sheet: &RgbImage, column: u32) -> Vec<u8> {
    red(sheet, column, 28)
}

/// The red of an image of `side` pixels there.
fn red(sheet: &RgbImage, column: u32, side: u32) -> Vec<u8> {
    let left = MARGIN + column * (side * FACTOR + GAP) + if column > 0 { APART } else { 0 };
    let value = |i: u32| sheet.get_pixel(left + i % side * FACTOR, MARGIN + TITLE + i / side * FACTOR).0[0];
    (0..side * side).map(value).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().map(|value| (value * 255.0).round() as u8).collect()
}

#[test]
fn the_sheet_has_the_image_and_views_of_it() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 50).write(&place.path("a.h5"));
    let said = place.run_line("views a.h5 --out a.png --rows 3 --columns 4 --seed 5").ok();
    assert!(said.starts_with("views: aspect 0.3, ") && said.contains("rotation 25"), "{said}");
    let sheet = image::open(place.path("a.png")).unwrap().to_rgb8();
    let first = image(GRAY, dtkc_dataset::sample(&(0..50).collect::<Vec<_>>(), 3, 5)[0]);
    let clean = scale_pixels(&first, GRAY);
    assert_eq!(drawn(&sheet, 0), bytes(&clean));
    let maker = ViewMaker::new(&AugmentConfig::strong(), GRAY).unwrap();
    for column in 0..4 {
        let key = BatchKey { seed: 5, epoch: 0, batch: u64::from(column) };
        assert_eq!(drawn(&sheet, column + 1), bytes(&maker.second_views(&clean, key)));
    }
    place.run_line("views a.h5 --out b.png --rows 3 --columns 4 --seed 5").ok();
    assert_eq!(place.read("a.png"), place.read("b.png"));
}

#[test]
fn large_images_are_shown_as_training_sees_them() {
    let place = Place::of("dtkc-data");
    let size = ImageShape { height: 64, width: 64, channels: 3 };
    Set::new(size, 1).write(&place.path("a.h5"));
    place.run_line("views a.h5 --out a.png --columns 2").ok();
    let sheet = image::open(place.path("a.png")).unwrap().to_rgb8();
    let clean = seen_pixels(&image(size, 0), size, 2);
    let first_channel = |values: &[f32]| bytes(values).into_iter().step_by(3).collect::<Vec<u8>>();
    assert_eq!(red(&sheet, 0, 32), first_channel(&clean));
    let maker = ViewMaker::new(&AugmentConfig::strong(), reduced(size, 2)).unwrap();
    let key = BatchKey { seed: 0, epoch: 0, batch: 1 };
    assert_eq!(red(&sheet, 2, 32), first_channel(&maker.second_views(&clean, key)));
}

#[test]
fn settings_come_from_flags_and_from_a_run() {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 5).write(&place.path("a.h5"));
    let mirror = "--set augment.flip=1";
    place.write("run/config.toml", "method = 'dtkc'\npreset = 'plus'\n[dtkc.augment]\nflip = 1.0\nrotation = 0.0\n");
    let zeros: String = ["scale", "aspect", "shear", "translation", "brightness", "contrast", "gamma"]
        .map(|name| format!(" --set augment.{name}=0"))
        .concat();
    place.run_line(&format!("views a.h5 --out a.png --config run/config.toml{zeros}")).ok();
    place.run_line(&format!("views a.h5 --out b.png {mirror} --set augment.rotation=0{zeros}")).ok();
    assert_eq!(place.read("a.png"), place.read("b.png"));
    let sheet = image::open(place.path("a.png")).unwrap().to_rgb8();
    let mirrored: Vec<u8> = drawn(&sheet, 0).chunks_exact(28).flat_map(|row| row.iter().rev()).copied().collect();
    assert_eq!(drawn(&sheet, 7), mirrored);
    place
        .run_line("views a.h5 --out run/config.toml --config run/config.toml --force")
        .fails(2, "is one of the inputs");
}

#[test]
fn odd_sets_and_mistakes() {
    let place = Place::of("dtkc-data");
    Set::new(ImageShape { height: 300, width: 40, channels: 3 }, 3).write(&place.path("tall.h5"));
    place.run_line("views tall.h5 --out a.png").ok();
    place.run_line("views tall.h5 --out d.png --set network.reduce=41").fails(2, "network.reduce = 41 leaves nothing");
    Set::new(ImageShape { height: 1, width: 1, channels: 1 }, 1).write(&place.path("dot.h5"));
    place.run_line("views dot.h5 --out b.png").ok();
    Set::new(GRAY, 30).labelled(&["zero", "one"]).write(&place.path("named.h5"));
    place.run_line("views named.h5 --out c.png --rows 5").ok();
    write_sequences(&place.path("s.h5"), 5);
    place.write("paper.toml", "preset = 'paper'");
    place
        .run_line("views dot.h5 --out d.png --cumulative")
        .fails(2, "--cumulative are for sequences, and dot.h5 holds images");
    place.run_line("views s.h5 --out d.png --set sequence_views.warpp=1").fails(2, "did you mean `warp`?");
    place.run_line("views s.h5 --out d.png --config paper.toml").fails(2, "every number of the views is 0");
    place.run_line("views dot.h5 --out d.png --set augment.rotatoin=1").fails(2, "did you mean `rotation`?");
    place.run_line("views dot.h5 --out d.png --set augment.scale=2").fails(2, "augment.scale = 2 is out of range");
    place.run_line("views dot.h5 --out d.png --config no.toml").fails(1, "no.toml");
    assert!(!place.path("d.png").exists());
}

/// What is drawn in the first row, column by column.
fn tiles(sheet: &RgbImage, columns: u32) -> Vec<Vec<u8>> {
    let (width, height) = (128, (sheet.height() - 2 * MARGIN - TITLE - GAP) / 2);
    // Classes stand on the left, so columns are counted from the right margin, which the title does not reach.
    let right = sheet.width() - MARGIN;
    let apart = |column: u32| if column == 0 { APART } else { 0 };
    let left = |column: u32| right - (columns - column) * width - (columns - 1 - column) * GAP - apart(column);
    let tile = |column| image::imageops::crop_imm(sheet, left(column), MARGIN + TITLE, width, height).to_image();
    (0..columns).map(|column| tile(column).into_raw()).collect()
}

#[test]
fn sequences_are_drawn_with_their_views() {
    let place = Place::of("dtkc-data");
    write_sequences(&place.path("s.h5"), 40);
    let said = place.run_line("views s.h5 --out a.png --rows 2 --columns 12 --draw curves").ok();
    assert!(said.starts_with("views: ") && said.contains("warp 0.4"), "{said}");
    let sheet = |name: &str| image::open(place.path(name)).unwrap().to_rgb8();
    let drawn = tiles(&sheet("a.png"), 13);
    assert!(drawn.iter().enumerate().all(|(i, tile)| drawn[..i].iter().all(|other| other != tile)), "all differ");
    place.run_line("views s.h5 --out b.png --rows 2 --columns 12 --draw curves").ok();
    assert_eq!(place.read("a.png"), place.read("b.png"));
    // Turned by nothing, and noise that is next to nothing: the view is drawn as the sequence is.
    let zeros: String = ["warp", "speed", "crop", "mask", "scale", "shift", "rotation"]
        .map(|name| format!(" --set sequence_views.{name}=0"))
        .concat();
    let nearly = format!("--set sequence_views.noise=1e-9{zeros}");
    place.run_line(&format!("views s.h5 --out c.png --rows 2 --columns 12 --draw curves {nearly}")).ok();
    let same = tiles(&sheet("c.png"), 13);
    assert!(same[1..].iter().all(|tile| tile == &same[0]), "views in the units of the sequence");
}
