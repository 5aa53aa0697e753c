//! What is unlike anything in the training set: in answers, tensors and descriptions; old model files tell nothing.
#![allow(clippy::unwrap_used)]

mod common;

use common::{EMBEDDING, SIDE, Server, drawing, model, multipart, pixels, reference};
use dtkc_onnx::{Outlier, with_outlier};
use dtkc_testing::browser::Browser;
use serde_json::{Value, json};

/// A model whose threshold some drawings are above and some are not: knots are stretched until it is so.
fn file() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let drawings: Vec<u8> = (0..24).flat_map(|number| dtkc_testing::drawing(SIDE, number)).collect();
    let mut outlier = Outlier::sample(EMBEDDING, false, 2);
    for _ in 0..40 {
        let bytes = with_outlier(&model(1), &outlier).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let above = reference(&path, &drawings, 24).outliers.into_iter().filter(|&value| value > 0.99).count();
        if (1..20).contains(&above) {
            return bytes;
        }
        outlier.knots.iter_mut().for_each(|knot| *knot *= 1.2);
    }
    panic!("all drawings are as far as each other");
}

fn server() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let [new, old] = ["small.onnx", "old.onnx"].map(|name| folder.path().join(name));
    std::fs::write(&new, file()).unwrap();
    std::fs::write(&old, model(1)).unwrap();
    let (new, old) = (new.to_str().unwrap().to_owned(), old.to_str().unwrap().to_owned());
    Server::in_folder(folder, &["--model", &new, "--model", &old])
}

fn infer(server: &Server, model: &str, outputs: Value) -> common::Answer {
    let data = [pixels(1), pixels(2)].concat();
    let input = json!({"name": "image", "datatype": "UINT8", "shape": [2, SIDE, SIDE, 1], "data": data});
    let body = json!({"inputs": [input], "outputs": outputs}).to_string();
    server.post(&format!("/v2/models/{model}/infer"), "application/json", body.as_bytes())
}

#[test]
fn answers_and_descriptions_tell_how_far_images_are() {
    let server = server();
    let expected = reference(&server.model_path(), &pixels(1), 1).outliers[0];
    let (kind, body) = multipart(&[("a.png", &common::png(SIDE as u32, SIDE as u32, 1)), ("b.png", b"no image")]);
    let json = server.post("/v1/models/small/assign", &kind, &body).json();
    let found = json["images"][0]["outlier"].as_f64().unwrap();
    assert!((found - f64::from(expected)).abs() < 1e-6 && (0.0..=1.0).contains(&found), "{found}");
    assert!(json["images"][1]["outlier"].is_null() && json["images"][1]["error"].is_string());
    let csv =
        server.post_with("/v1/models/small/assign", &[("content-type", &kind), ("accept", "text/csv")], &body).text();
    assert!(csv.starts_with("name,cluster,cluster_name,confidence,outlier,code,error\n"), "{csv}");
    let threshold = server.get("/v1/models/small").json()["outlier_threshold"].as_f64().unwrap();
    assert!((threshold - 0.99).abs() < 1e-6);
    // A file without that output is as it was.
    let json = server.post("/v1/models/old/assign", &kind, &body).json();
    assert!(json["images"][0]["outlier"].is_null() && json["images"][0]["cluster"].is_number());
    assert!(server.get("/v1/models/old").json()["outlier_threshold"].is_null());
}

#[test]
fn tensors_have_one_output_more() {
    let server = server();
    let outputs = |model: &str| server.get(&format!("/v2/models/{model}")).json()["outputs"].clone();
    assert_eq!(outputs("small")[3], json!({"name": "outlier", "datatype": "FP32", "shape": [-1]}));
    assert_eq!(outputs("old").as_array().unwrap().len(), 3);
    let expected = reference(&server.model_path(), &[pixels(1), pixels(2)].concat(), 2).outliers;
    for named in [json!([]), json!([{"name": "outlier"}])] {
        let answer = infer(&server, "small", named).json();
        let last = answer["outputs"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["name"], &last["shape"]), (&json!("outlier"), &json!([2])));
        let found: Vec<f32> = serde_json::from_value(last["data"].clone()).unwrap();
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
    }
    assert_eq!(infer(&server, "old", json!([])).json()["outputs"].as_array().unwrap().len(), 3);
    let refused = infer(&server, "old", json!([{"name": "outlier"}]));
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("the model has no output 'outlier'"), "{}", refused.text());
}

#[test]
fn the_page_marks_what_is_above_the_threshold() {
    let Some(browser) = Browser::start() else { return };
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for number in 0..24 {
        let path = folder.path().join(format!("{number}.png"));
        std::fs::write(&path, drawing(SIDE, number)).unwrap();
        files.push(path);
    }
    browser.open(&server.url);
    browser.wait("document.body.dataset.ready === 'yes'");
    let paths: Vec<&std::path::Path> = files.iter().map(|path| path.as_path()).collect();
    browser.choose("#files", &paths);
    browser.wait("document.body.dataset.done === '24'");
    let contents: Vec<(String, Vec<u8>)> =
        files.iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect();
    let contents: Vec<(&str, &[u8])> = contents.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let (kind, body) = multipart(&contents);
    let answer = server.post("/v1/assign", &kind, &body).json();
    let values = answer["images"].as_array().unwrap().iter().map(|image| image["outlier"].as_f64().unwrap());
    let above = values.filter(|&value| value as f32 > 0.99).count();
    assert!((1..24).contains(&above), "the test needs both kinds, and {above} are above");
    assert_eq!(browser.run("return document.querySelectorAll('.thumb.unlike').length"), json!(above));
    let figures = browser.run("return document.querySelector('#figures').textContent");
    assert!(figures.as_str().unwrap().contains(&format!("{above}unlike the training set")), "{figures}");
    let label = browser.run("return document.querySelector('.thumb.unlike').getAttribute('aria-label')");
    assert!(label.as_str().unwrap().ends_with("sure, unlike anything in the training set"), "{label}");
    browser.screenshot("8-unlike");
}
