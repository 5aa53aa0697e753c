//! The model's own rule brings images to its size, wherever they come from.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{CLUSTERS, Place, SIDE, column, pixels};
use dtkc_item::{ImageShape, Resize};
use dtkc_onnx::InputSpec;
use dtkc_testing::model::{metadata, network};
use dtkc_testing::{files, write_images};

/// The model that brings images to its size by another rule.
fn model_with(resize: Resize) -> Vec<u8> {
    let mut metadata = metadata(SIDE, CLUSTERS);
    if let InputSpec::Image(input) = &mut metadata.input {
        input.image.resize = resize;
    }
    dtkc_onnx::write(&network(3, SIDE, CLUSTERS), &metadata).unwrap()
}

/// Three images side by side; what a model that crops sees of it is the one in the middle.
fn wide(number: usize) -> Vec<u8> {
    let [left, middle, right] = [number + 1, number, number + 2].map(pixels);
    let row = |y: usize| [&left, &middle, &right].map(|image| &image[y * SIDE..(y + 1) * SIDE]).concat();
    (0..SIDE).flat_map(row).collect()
}

fn confidence(place: &Place, input: &str) -> Vec<String> {
    place.ok(&["--input", input, "--output", "out.csv"]);
    column(&place.text("out.csv"), "confidence")
}

#[test]
fn files_and_datasets_are_brought_to_size_by_the_models_own_rule() {
    let place = Place::new();
    place.images("plain", 5);
    place.dataset("plain.h5", 5);
    let shape = ImageShape { height: SIDE, width: 3 * SIDE, channels: 1 };
    write_images(&place.path("wide.h5"), "wide", shape, (0..5).map(|number| (wide(number), None)));
    for number in 0..5 {
        let image = files::png(SIDE as u32, 3 * SIDE as u32, &wide(number));
        place.write(&format!("wide/{number}.png"), image);
    }
    for resize in [Resize::Fit, Resize::Stretch, Resize::Crop] {
        place.write("model.onnx", model_with(resize));
        let plain = confidence(&place, "plain");
        // Of the model's own size, pixels are taken as they are, whatever the rule.
        assert_eq!(confidence(&place, "plain.h5"), plain, "{resize}");
        assert_eq!(confidence(&place, "wide") == plain, resize == Resize::Crop, "{resize}");
        assert_eq!(confidence(&place, "wide.h5"), confidence(&place, "wide"), "{resize}");
    }
}

/// What is trained on the labelled set must see later images as the model did.
#[test]
fn a_labelled_dataset_says_by_which_rule_its_images_came_to_size() {
    let place = Place::new();
    place.images("photos", 80);
    place.write("photos/0000.png", "no image");
    for resize in [Resize::Crop, Resize::Fit] {
        place.write("model.onnx", model_with(resize));
        place.ok(&["--input", "photos", "--output", "out.h5"]);
        assert_eq!(place.open("out.h5").resize(), Some(resize));
        for shard in ["1", "2", "3"] {
            // The third share is empty: a file without images, which says nothing.
            let (part, number) = (format!("part-{shard}.h5"), format!("{shard}/3"));
            place.ok(&["--input", "photos", "--output", &part, "--shard", &number]);
        }
        place.merge(&["part-3.h5", "part-1.h5", "part-2.h5"], "merged.h5");
        assert_eq!(place.open("merged.h5").resize(), Some(resize));
    }
}
