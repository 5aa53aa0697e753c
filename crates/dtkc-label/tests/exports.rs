//! `--export`: what labelling tools are given. Their own packages load it in `scripts/test-exports.sh`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{CLUSTERS, Place, SHAPE, SIDE, column, json, png};
use dtkc_testing::parquet::ImageTable;
use dtkc_testing::{Set, files};
use serde_json::Value;

const NAMES: [&str; 5] = ["0.png", "a/1 & <2>.png", "a/\"3\'.png", "b/ü#%?+=.png", "b/tab\t.png"];

/// Images with hostile names, of several sizes, and one that is none.
fn place() -> Place {
    let place = Place::new();
    for (number, name) in NAMES.iter().enumerate() {
        let (height, width) = (20 + number as u32, 30 + 2 * number as u32);
        place.write(&format!("photos/{name}"), files::gray_png(height, width, 40 * number as u8));
    }
    place.write("photos/zz.png", "no image");
    place.write("names.csv", "0,cats & \"dogs\" <1>\n");
    place
}

const ALL: [&str; 8] = [
    "--export",
    "label-studio=tasks.json",
    "--export",
    "cvat=a.xml",
    "--export",
    "fiftyone=51.json",
    "--export",
    "coco=set",
];
const FILES: [&str; 6] =
    ["tasks.json", "tasks.config.xml", "a.xml", "a.labels.json", "51.json", "set/annotations/labels_default.json"];

fn labelled(place: &Place, more: &[&str]) {
    let common = ["--input", "photos", "--output", "out.csv", "--names", "names.csv"];
    place.ok(&[&common[..], &ALL, more].concat());
}

/// The rows of the table that have a label: path, cluster name, confidence.
fn rows(place: &Place) -> Vec<[String; 3]> {
    let text = place.text("out.csv");
    let columns = ["path", "cluster_name", "confidence", "error"].map(|name| column(&text, name));
    let labelled = (0..columns[0].len()).filter(|row| columns[3][*row].is_empty());
    labelled.map(|row| [0, 1, 2].map(|c: usize| columns[c][row].clone())).collect()
}

fn confidence(value: &Value) -> String {
    (value.as_f64().unwrap() as f32).to_string()
}

#[test]
fn every_tool_is_told_what_the_table_says() {
    let place = place();
    labelled(&place, &[]);
    let rows = rows(&place);
    assert_eq!(rows.len(), NAMES.len());
    let here = place.folder().canonicalize().unwrap().to_string_lossy().into_owned();
    let tasks = json(&place.text("tasks.json"));
    let fiftyone = json(&place.text("51.json"));
    let coco = json(&place.text("set/annotations/labels_default.json"));
    assert_eq!(fiftyone["classes"].as_array().unwrap().len(), CLUSTERS);
    assert_eq!(coco["categories"].as_array().unwrap().len(), CLUSTERS);
    assert_eq!(tasks.as_array().unwrap().len(), rows.len());
    for (place, [path, cluster, sure]) in rows.iter().enumerate() {
        let number = NAMES.iter().position(|name| path == &format!("photos/{name}")).unwrap();
        let (task, image, annotation) = (&tasks[place], &coco["images"][place], &coco["annotations"][place]);
        let prediction = &task["predictions"][0];
        assert_eq!(task["data"]["path"], path.as_str());
        assert_eq!(prediction["result"][0]["value"]["choices"], serde_json::json!([cluster]));
        assert_eq!(confidence(&prediction["score"]), *sure);
        assert!(prediction["model_version"].as_str().unwrap().len() > 9);
        assert_eq!(image["file_name"], NAMES[number]);
        assert_eq!((&image["width"], &image["height"]), (&(30 + 2 * number).into(), &(20 + number).into()));
        assert_eq!(annotation["image_id"], image["id"]);
        let category = annotation["category_id"].as_u64().unwrap() as usize;
        assert_eq!(coco["categories"][category - 1]["name"], cluster.as_str());
        assert_eq!(confidence(&annotation["score"]), *sure);
        let whole = fiftyone["labels"].as_object().unwrap().iter().find(|(key, _)| key.ends_with(path.as_str()));
        let (key, label) = whole.unwrap();
        assert!(key.starts_with('/') && label["label"] == cluster.as_str(), "{key} {label}");
        assert_eq!(confidence(&label["confidence"]), *sure);
    }
    // As Python's urllib.parse.quote writes it.
    let addresses: Vec<&str> = (0..5).map(|task| tasks[task]["data"]["image"].as_str().unwrap()).collect();
    let encoded = "photos/b/%C3%BC%23%25%3F%2B%3D.png";
    assert!(addresses.iter().all(|address| address.starts_with("/data/local-files/?d=")), "{addresses:?}");
    assert!(addresses.iter().any(|address| address.ends_with(encoded)), "{addresses:?}");
    let xml = place.text("a.xml");
    assert_eq!(xml.matches("<image id=").count(), rows.len());
    for fragment in [
        "name=\"a/1 &amp; &lt;2&gt;.png\" width=\"32\" height=\"21\"",
        "name=\"a/&quot;3\'.png\"",
        "name=\"b/tab\u{fffd}.png\"",
        "<size>5</size>",
        "<name>cats &amp; &quot;dogs&quot; &lt;1&gt;</name>",
    ] {
        assert!(xml.contains(fragment), "{fragment}: {xml}");
    }
    assert!(place.text("tasks.config.xml").contains("<Choice value=\"cats &amp; &quot;dogs&quot; &lt;1&gt;\"/>"));
    assert_eq!(json(&place.text("a.labels.json")).as_array().unwrap().len(), CLUSTERS);
    assert_eq!(place.path("set/images").canonicalize().unwrap().to_string_lossy(), format!("{here}/photos"));
}

#[test]
fn what_is_not_sure_enough_comes_without_a_label() {
    let place = place();
    labelled(&place, &["--min-confidence", "1"]);
    let tasks = json(&place.text("tasks.json"));
    assert!(tasks.as_array().unwrap().iter().all(|task| task["predictions"] == serde_json::json!([])));
    assert!(!place.text("a.xml").contains("<tag"));
    let coco = json(&place.text("set/annotations/labels_default.json"));
    assert_eq!((coco["images"].as_array().unwrap().len(), &coco["annotations"]), (5, &serde_json::json!([])));
    assert!(json(&place.text("51.json"))["labels"].as_object().unwrap().values().all(Value::is_null));
}

#[test]
fn names_and_addresses_are_the_users() {
    let place = place();
    labelled(&place, &["--export-root", ".", "--export-url", "https://example.org/x/"]);
    assert_eq!(json(&place.text("tasks.json"))[0]["data"]["image"], "https://example.org/x/photos/0.png");
    assert!(place.text("a.xml").contains("name=\"photos/0.png\""));
    labelled(&place, &["--export-root", "."]);
    assert_eq!(json(&place.text("tasks.json"))[0]["data"]["image"], "/data/local-files/?d=photos/0.png");
    // Images of an archive have names, and no files.
    let zip: Vec<(&str, Vec<u8>)> = vec![("x/1.png", png(1)), ("2.png", png(2))];
    place.zip("a.zip", &zip);
    place.ok(&["--input", "a.zip", "--output", "zip.csv", "--export", "cvat=z.xml", "--export", "coco=z.json"]);
    assert!(place.text("z.xml").contains("name=\"x/1.png\""));
    assert!(place.text("z.json").contains("\"file_name\":\"2.png\""));
}

#[test]
fn paths_in_a_dataset_go_from_the_root() {
    let place = Place::new();
    Set::new(SHAPE, 2).with_paths().write(&place.path("set.h5"));
    let common = ["--input", "set.h5", "--output", "out.csv", "--export", "fiftyone=51.json", "--export", "cvat=a.xml"];
    place.ok(&[&common[..], &["--export-root", "/data/photos"]].concat());
    assert!(place.text("51.json").contains("\"/data/photos/folder/1.png\""));
    assert!(place.text("a.xml").contains(&format!("name=\"folder/1.png\" width=\"{SIDE}\" height=\"{SIDE}\"")));
}

#[test]
fn shards_have_their_share_and_a_resumed_run_the_same() {
    let place = Place::new();
    place.images("photos", 200);
    let read = || FILES.map(|name| place.text(name));
    let common = ["--input", "photos", "--output", "out.csv"];
    place.ok(&[&common[..], &ALL].concat());
    let whole = read();
    let images = |text: &str| json(text)["images"].as_array().unwrap().clone();
    let all = images(&whole[5]);
    let mut shares = Vec::new();
    for shard in ["1/2", "2/2"] {
        place.ok(&[&common[..], &ALL, &["--shard", shard]].concat());
        shares.extend(images(&read()[5]));
    }
    shares.sort_by_key(|image| image["id"].as_u64());
    assert!(shares == all && all.len() == 200);
    // An export that cannot be made leaves the journal, from which it is made.
    let args = [&common[..], &ALL].concat();
    let elsewhere = tempfile::NamedTempFile::with_suffix(".png").unwrap();
    std::fs::write(elsewhere.path(), png(1)).unwrap();
    let list = format!("photos/0001.png\n{}\n", elsewhere.path().display());
    let listed = ["--input", "-", "--output", "listed.csv", "--export", "cvat=listed.xml"];
    let said = place.label_with_input(&listed, &list);
    common::refused(said, 2, "listed.csv is complete; the same command with --resume makes the exports");
    assert!(place.path("listed.csv").exists() && !place.path("listed.xml").exists());
    place.ok_with_input(&[&listed[..], &["--resume", "--export-root", "/"]].concat(), &list);
    assert_eq!(place.text("listed.xml").matches("<tag").count(), 2);
    place.ok(&args);
    assert_eq!(read(), whole);
    // A scheduler may start it again; what was never made is asked for.
    assert!(place.label(&[&args[..], &["--resume"]].concat()).output().unwrap().status.success());
    let more = [&args[..], &["--resume", "--export", "cvat=other.xml"]].concat();
    place.refused(&more, 1, "it is complete, and other.xml is not there");
}

#[test]
fn what_a_tool_cannot_use_is_said_before_any_work() {
    let place = place();
    place.dataset("set.h5", 20);
    Set::new(SHAPE, 2).with_paths().write(&place.path("paths.h5"));
    place.zip("a.zip", &[("1.png", png(1))]);
    place.write("t.parquet", ImageTable::new(&[("1.png", png(1))]).file());
    for (line, words) in [
        ("--input photos --output no.csv --export coco=no.csv", "the same file"),
        ("--input photos paths.h5 --output no.csv --export cvat=no.xml", "label it apart"),
        ("--input photos --output no.csv --export yolo=x", "there is no export for 'yolo'"),
        ("--input photos --output no.csv --export labelstudoi=x.json", "did you mean label-studio?"),
        ("--input photos --output no.csv --export no.json", "is not a format and a path"),
        (
            "--input photos --output no.csv --export cvat=no.xml --export cvat=./no.xml",
            "two outputs would be the same file",
        ),
        ("--input photos --output no.csv --export fiftyone=no.json --export label-studio=no.json", "the same file"),
        ("--input photos --output no.csv --export coco=no.csv.job.json", "the same file"),
        ("--input photos --output no.csv --export coco=photos/x", "lies in photos"),
        ("--input photos --output no.csv --export cvat=gone/no.xml", "gone"),
        (
            "--input photos --output no.csv --export coco=names.csv",
            "names.csv is a file, and --export coco makes a folder",
        ),
        ("--input photos --output - --export cvat=no.xml", "is written beside an output file"),
        ("--input set.h5 --output no.csv --export cvat=no.xml", "set.h5 holds images without their paths"),
        (
            "--input a.zip --output no.csv --export fiftyone=no.json",
            "fiftyone opens images as files, and those of a.zip",
        ),
        ("--input a.zip --output no.csv --export label-studio=no.json", "--export-url"),
        ("--input t.parquet --output no.csv --export fiftyone=no.json", "those of t.parquet lie inside it"),
        ("--input photos --output no.csv --export cvat=no.xml --export-root models", "photos does not lie below"),
        ("--input photos --output no.csv --export-root models", "--export"),
    ] {
        let said = place.label(&line.split(' ').collect::<Vec<_>>()).output().unwrap();
        assert!(matches!(said.status.code(), Some(1 | 2)), "{line}: {said:?}");
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(text.contains(words), "{line}: {text}");
        assert!(place.names().iter().all(|name| !name.starts_with("no.")), "{line}: {:?}", place.names());
    }
    // An address needs no file.
    place.ok(&[
        "--input",
        "a.zip",
        "--output",
        "zip.csv",
        "--export",
        "label-studio=z.json",
        "--export-url",
        "s3://b/",
    ]);
    assert_eq!(json(&place.text("z.json"))[0]["data"]["image"], "s3://b/1.png");
    // What is there is replaced when that is meant.
    place.write("old.xml", "mine");
    let line = ["--input", "photos", "--output", "yes.csv", "--export", "cvat=old.xml"];
    place.refused(&line, 2, "old.xml exists");
    assert_eq!(place.text("old.xml"), "mine");
    place.write("model.onnx", dtkc_testing::model::sequence_model(1, 2));
    place.write("a.csv", "id,x,y\na,1,2\na,3,4\n");
    let line = ["--input", "a.csv", "--id-column", "id", "--output", "no.csv", "--export", "cvat=no.xml"];
    place.refused(&line, 2, "is for a tool that shows images, and the model takes sequences");
}
