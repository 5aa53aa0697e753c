//! Images in every form, answers in every form, and the same numbers as the model itself.
#![allow(clippy::unwrap_used)]

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{EMBEDDING, K, SIDE, Server, multipart, pixels, png, reference, zip_of};
use dtkc_item::Resize;
use dtkc_onnx::InputSpec;
use dtkc_testing::model::{metadata, network};
use serde_json::json;

const S: u32 = SIDE as u32;

#[test]
fn every_way_to_send_an_image_gives_the_models_own_answer() {
    let server = Server::start(&[]);
    let expected = reference(&server.model_path(), &pixels(7), 1);
    let image = png(S, S, 7);
    let (form_type, form) = multipart(&[("a.png", &image)]);
    let (_, zipped_form) = multipart(&[("a.zip", &zip_of(&[("a.png", &image)]))]);
    let base64 = STANDARD.encode(&image);
    let bodies: [(&str, &str, Vec<u8>); 8] = [
        ("raw", "image/png", image.clone()),
        ("octets", "application/octet-stream", image.clone()),
        ("multipart", &form_type, form),
        ("zip in multipart", &form_type, zipped_form),
        ("zip", "application/zip", zip_of(&[("a.png", &image)])),
        ("json", "application/json", json!({"images": [base64]}).to_string().into_bytes()),
        (
            "named json",
            "application/json",
            json!({"images": [{"name": "a.png", "data": base64}]}).to_string().into_bytes(),
        ),
        (
            "data url",
            "application/json; charset=utf-8",
            json!({"images": [format!("data:image/png;base64,{base64}")]}).to_string().into_bytes(),
        ),
    ];
    for (what, content_type, body) in bodies {
        for path in ["/v1/assign", "/v1/models/small/assign"] {
            let answer = server.post(&format!("{path}?top_k=100&embedding=true"), content_type, &body);
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            let image = &answer.json()["images"][0];
            assert_eq!(image["cluster"], expected.clusters[0], "{what}");
            let top = image["top"].as_array().unwrap();
            assert_eq!(top.len(), K);
            for entry in top {
                let cluster = entry["cluster"].as_u64().unwrap() as usize;
                let difference =
                    entry["probability"].as_f64().unwrap() - f64::from(expected.probabilities[[0, cluster]]);
                assert!(difference.abs() < 1e-6, "{what}: {difference}");
            }
            let embedding: Vec<f32> = serde_json::from_value(image["embedding"].clone()).unwrap();
            assert_eq!(embedding.len(), EMBEDDING);
            assert!(embedding.iter().zip(expected.embedding.row(0)).all(|(a, b)| (a - b).abs() < 1e-5), "{what}");
        }
    }
}

#[test]
fn a_large_request_is_split_and_put_together_in_order() {
    let server = Server::start(&["--max-batch", "7", "--workers", "3"]);
    let images: Vec<Vec<u8>> = (0..100).map(|seed| png(S, S, seed)).collect();
    let names: Vec<String> = (0..100).map(|n| format!("{n}.png")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().zip(&images).map(|(n, i)| (n.as_str(), i.as_slice())).collect();
    let all: Vec<u8> = (0..100).flat_map(pixels).collect();
    let expected = reference(&server.model_path(), &all, 100);
    let answer = server.assign(&files);
    let json = answer.json();
    for (n, image) in json["images"].as_array().unwrap().iter().enumerate() {
        assert_eq!(image["name"], names[n]);
        assert_eq!(image["cluster"], expected.clusters[n], "image {n}");
    }
    assert_eq!(json["images"].as_array().unwrap().len(), 100);
    assert!(server.metric("dtkc_batch_images_count{model=\"small\"}") >= 15.0, "batches of at most 7");
    assert_eq!(server.metric("dtkc_images_total{model=\"small\"}"), 100.0);
}

#[test]
fn a_bad_image_fails_alone() {
    let server = Server::start(&[]);
    let (good, cut) = (png(S, S, 1), png(200, 200, 2)[..300].to_vec());
    let files: [(&str, &[u8]); 4] =
        [("a.png", &good), ("notes.txt", b"hello, this is no image"), ("cut.png", &cut), ("b.png", &good)];
    let json = server.assign(&files).json();
    assert_eq!(json["failed"], 2);
    let codes: Vec<&str> =
        json["images"].as_array().unwrap().iter().map(|i| i["code"].as_str().unwrap_or("ok")).collect();
    assert_eq!(codes, ["ok", "not_an_image", "truncated", "ok"]);
    assert_eq!(json["images"][0]["cluster"], json["images"][3]["cluster"]);
    assert!(json["images"][1].get("cluster").is_none());
    assert_eq!(server.metric("dtkc_image_failures_total{model=\"small\",code=\"truncated\"}"), 1.0);
}

#[test]
fn answers_come_as_csv_and_lines_on_request() {
    let server = Server::start(&[]);
    let (content_type, body) = multipart(&[("a, \"b\".png", &png(S, S, 1)), ("broken.png", b"no image at all")]);
    let ask = |accept: &str| {
        server.post_with("/v1/assign?top_k=1", &[("content-type", &content_type), ("accept", accept)], &body)
    };
    let csv = ask("text/csv");
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    let mut reader = csv::Reader::from_reader(csv.body.as_slice());
    assert_eq!(reader.headers().unwrap().iter().next(), Some("name"));
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0][0].starts_with("a, "), "{}", csv.text());
    assert_eq!(&rows[1][rows[1].len() - 2], "not_an_image");
    let lines = ask("application/x-ndjson");
    assert_eq!(lines.header("content-type"), "application/x-ndjson");
    let parsed: Vec<serde_json::Value> = lines.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(parsed.len(), 2);
    assert!(parsed[0]["cluster"].is_number() && parsed[1]["error"].is_string());
}

#[test]
fn answers_say_where_the_time_went_and_carry_the_request_id() {
    let server = Server::start(&[]);
    let image = png(S, S, 1);
    let answer = server.post_with("/v1/assign", &[("content-type", "image/png"), ("x-request-id", "mine-1")], &image);
    assert_eq!(answer.header("x-request-id"), "mine-1");
    for name in ["x-queue-ms", "x-inference-ms"] {
        let ms: f64 = answer.header(name).parse().unwrap();
        assert!(ms.is_finite() && ms >= 0.0, "{name} {ms}");
    }
    assert!(answer.header("server-timing").starts_with("queue;dur="));
    let (first, second) = (server.get("/v1/models"), server.get("/nothing/here"));
    assert_eq!(first.header("x-request-id").len(), 16);
    assert_ne!(first.header("x-request-id"), second.header("x-request-id"));
}

#[test]
fn several_models_are_served_under_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.onnx"), folder.path().join("two.onnx"));
    std::fs::write(&one, common::model(1)).unwrap();
    std::fs::write(&two, common::model_of(2, 20, 3)).unwrap();
    let other = format!("other={}", two.display());
    let server = Server::in_folder(folder, &["--model", one.to_str().unwrap(), "--model", &other]);
    let list = server.get("/v1/models").json();
    assert_eq!(list["default"], "one");
    let names: Vec<&str> = list["models"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "other"]);
    assert_eq!(list["limits"]["max_images"], 1000);
    let other = server.get("/v1/models/other").json();
    assert_eq!((other["k"].as_u64(), other["input"]["width"].as_u64()), (Some(3), Some(20)));
    assert_eq!(other["clusters"][0]["size"], 300);
    assert_eq!(other["clusters"][0]["share"], 0.5);
    assert_eq!(other["provenance"]["dataset"], "noise");
    let image = png(50, 40, 3);
    let answer = server.post("/v1/models/other/assign?top_k=9", "image/png", &image).json();
    assert_eq!(
        (answer["model"].as_str(), answer["images"][0]["top"].as_array().map(Vec::len)),
        (Some("other"), Some(3))
    );
    assert_eq!(server.post("/v1/assign", "image/png", &image).json()["model"], "one");
}

#[test]
fn a_compressed_request_is_understood_and_its_size_counts_unpacked() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let server = Server::start(&["--max-body", "100KiB"]);
    let headers = [("content-type", "image/png"), ("content-encoding", "gzip")];
    let answer = server.post_with("/v1/assign", &headers, &gzip(&png(S, S, 1)));
    assert_eq!(answer.status, 200, "{}", answer.text());
    server.post_with("/v1/assign", &headers, &gzip(&vec![0; 1 << 20])).expect(413, "body_too_large");
    let odd = [("content-type", "image/png"), ("content-encoding", "br")];
    server.post_with("/v1/assign", &odd, b"x").expect(415, "unsupported_encoding");
}

#[test]
fn an_image_of_another_size_is_brought_to_the_models_by_the_models_own_rule() {
    // Three images side by side; what a model that crops sees of it is the one in the middle.
    let rows = |image: u64| pixels(image).chunks(SIDE).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (left, middle, right) = (rows(1), rows(2), rows(3));
    let wide: Vec<u8> = (0..SIDE).flat_map(|y| [&left[y][..], &middle[y], &right[y]].concat()).collect();
    let wide = dtkc_testing::files::png(S, 3 * S, &wide);
    for resize in [Resize::Crop, Resize::Fit, Resize::Stretch] {
        let mut metadata = metadata(SIDE, K);
        if let InputSpec::Image(input) = &mut metadata.input {
            input.image.resize = resize;
        }
        let server = Server::with_model(&dtkc_onnx::write(&network(1, SIDE, K), &metadata).unwrap(), &[]);
        assert_eq!(server.get("/v1/models/small").json()["input"]["resize"], resize.to_string());
        let confidence = |image: &[u8]| {
            server.post("/v1/assign", "image/png", image).json()["images"][0]["confidence"].as_f64().unwrap()
        };
        assert_eq!(confidence(&wide) == confidence(&png(S, S, 2)), resize == Resize::Crop, "{resize}");
    }
}
