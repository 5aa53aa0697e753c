//! What is unlike anything in the training set: a column in every form, a line in the summary, a section of the gallery.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{EMBEDDING, Place, column, json, model, pixels};
use dtkc_infer::{ModelFile, Runtime, Session};
use dtkc_onnx::{Outlier, with_outlier};

const IMAGES: usize = 60;

/// A place whose model tells outliers, and what it says: knots are stretched until some images are above the threshold.
fn place() -> (Place, Vec<f32>) {
    let place = Place::new();
    place.images("photos", IMAGES);
    let drawings: Vec<u8> = (0..IMAGES).flat_map(pixels).collect();
    let mut outlier = Outlier::sample(EMBEDDING, false, 2);
    for _ in 0..40 {
        let bytes = with_outlier(&model(3), &outlier).unwrap();
        let file = ModelFile::from_bytes("model", bytes.clone()).unwrap();
        let mut session = Session::new(&Runtime::find(None).unwrap(), &file, &Default::default()).unwrap();
        let values = session.run(&drawings, IMAGES).unwrap().outliers;
        if (2..IMAGES / 2).contains(&above(&values)) {
            place.write("model.onnx", bytes);
            return (place, values);
        }
        outlier.knots.iter_mut().for_each(|knot| *knot *= 1.1);
    }
    panic!("all drawings are as far as each other");
}

fn above(values: &[f32]) -> usize {
    values.iter().filter(|&&value| value > 0.99).count()
}

#[test]
fn every_form_has_the_models_values() {
    let (place, expected) = place();
    place.write("photos/9999.png", "no image");
    let csv = |name: &str| {
        let found = column(&place.text(name), "outlier");
        assert_eq!(found.last().map(String::as_str), Some(""), "what failed has none");
        found[..IMAGES].iter().map(|value| value.parse::<f32>().unwrap()).collect::<Vec<f32>>()
    };
    for form in ["csv", "jsonl", "parquet", "h5"] {
        let out = format!("out.{form}");
        place.ok(&["--input", "photos", "--output", &out, "--probabilities"]);
        // Through `merge` every form is read back and written as a table.
        for shard in ["1/2", "2/2"] {
            let part = format!("p{}.{form}", &shard[..1]);
            place.ok(&["--input", "photos", "--output", &part, "--shard", shard, "--probabilities"]);
        }
        place.merge(&[&format!("p1.{form}"), &format!("p2.{form}")], &format!("{form}.csv"));
        assert_eq!(csv(&format!("{form}.csv")), expected, "{form}");
    }
    assert_eq!(csv("out.csv"), expected);
    let line = json(place.text("out.jsonl").lines().next().unwrap());
    assert_eq!(line["outlier"].as_f64().unwrap() as f32, expected[0]);
    let dataset = hdf5::File::open(place.path("out.h5")).unwrap();
    assert_eq!(dataset.dataset("outlier").unwrap().read_raw::<f32>().unwrap(), expected);
}

#[test]
fn the_summary_and_the_gallery_tell_of_them() {
    let (place, expected) = place();
    let count = above(&expected);
    let arguments = ["--model", "model.onnx", "--input", "photos", "--output", "out.csv", "--gallery", "page.html"];
    let said = place.run(arguments).ok();
    let share = 100.0 * count as f64 / expected.len() as f64;
    let sentence = format!("{count} images ({share:.1} %) are unlike the training set; of its own images 1.0 % are");
    assert!(said.contains(&sentence), "{}", said);
    let page = place.text("page.html");
    assert!(page.contains("Unlike anything in the training set") && page.contains(&format!("<b>{count}</b> images")));
    let summary = json(&place.ok(&["--input", "photos", "--output", "out.csv", "--json"]).out);
    assert_eq!(summary["outliers"]["images"], count);
    // A model file that does not tell has neither column nor line.
    place.write("model.onnx", model(3));
    let said = place.run([&arguments[..], &["--force"]].concat()).ok();
    assert!(!said.contains("unlike") && !place.text("page.html").contains("Unlike anything"));
    assert!(
        place
            .text("out.csv")
            .starts_with("index,path,cluster,cluster_name,confidence,second_cluster,second_confidence,margin,error\n")
    );
}
