//! A model for sequences over HTTP: JSON, tables, tensors, what cannot be used.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Answer, K, Server, multipart};
use dtkc_onnx::testing::{Expected, SequenceSample, forward_sequence};
use serde_json::{Value, json};

const SAMPLE: SequenceSample = SequenceSample { dim: 2, stacked: 2, units: 6, hidden: 9, clusters: 4, seed: 5 };

fn server(flags: &[&str]) -> Server {
    let bytes = dtkc_onnx::write(&SAMPLE.network(), &SAMPLE.metadata(SAMPLE.hidden)).unwrap();
    Server::with_model(&bytes, flags)
}

fn sequences() -> Vec<Vec<f32>> {
    SAMPLE.sequences(&[4, 1, 30, 7, 12])
}

fn expected() -> Vec<Expected> {
    let network = SAMPLE.network();
    sequences().iter().map(|sequence| forward_sequence(&network, sequence)).collect()
}

fn steps(sequence: &[f32]) -> Value {
    json!(sequence.chunks(2).collect::<Vec<_>>())
}

fn assign(server: &Server, kind: &str, body: &[u8]) -> Answer {
    server.post("/v1/assign", kind, body)
}

/// All sequences in one table.
fn table() -> String {
    let mut text = "id,x,y\n".to_owned();
    for (number, sequence) in sequences().iter().enumerate() {
        sequence.chunks(2).for_each(|step| text += &format!("s{number},{},{}\n", step[0], step[1]));
    }
    text
}

#[track_caller]
fn check(answer: &Answer, names: &[&str]) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let found = json["sequences"].as_array().unwrap_or_else(|| panic!("{json}"));
    assert_eq!((found.len(), json["failed"].as_u64(), json.get("images")), (5, Some(0), None));
    for ((found, expected), name) in found.iter().zip(expected()).zip(names) {
        assert_eq!((found["name"].as_str(), found["cluster"].as_u64()), (Some(*name), Some(expected.cluster() as u64)));
        let difference = found["confidence"].as_f64().unwrap() - expected.probabilities[expected.cluster()];
        assert!(difference.abs() < 1e-5, "{difference}");
    }
}

#[test]
fn json_tables_and_forms_give_the_answers_of_the_definition() {
    let server = server(&["--max-batch", "3"]);
    let mut given: Vec<Value> = sequences().iter().map(|sequence| steps(sequence)).collect();
    given[3] = json!({"name": "fourth", "values": given[3]});
    let answer = assign(&server, "application/json", json!({"sequences": given, "top_k": 4}).to_string().as_bytes());
    check(&answer, &["0", "1", "2", "fourth", "4"]);
    let top = answer.json()["sequences"][2]["top"].as_array().unwrap().len();
    assert_eq!(top, 4);
    let ids = ["s0", "s1", "s2", "s3", "s4"];
    check(&assign(&server, "text/csv", table().as_bytes()), &ids);
    let files: Vec<(String, String)> = sequences()
        .iter()
        .enumerate()
        .map(|(number, sequence)| {
            let rows: String = sequence.chunks(2).map(|step| format!("{};{}\n", step[0], step[1])).collect();
            (format!("{number}.csv"), format!("x;y\n{rows}"))
        })
        .collect();
    let parts: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let (kind, body) = multipart(&parts);
    check(&assign(&server, &kind, &body), &["0.csv", "1.csv", "2.csv", "3.csv", "4.csv"]);
    let (kind, body) = multipart(&[("all.csv", table().as_bytes())]);
    check(&assign(&server, &kind, &body), &ids.map(|id| format!("all.csv#{id}")).each_ref().map(String::as_str));
    let csv = server.post_with(
        "/v1/assign?embedding=true",
        &[("content-type", "text/csv"), ("accept", "text/csv")],
        table().as_bytes(),
    );
    assert_eq!((csv.status, csv.text().lines().count()), (200, 6), "{}", csv.text());
}

#[test]
fn what_cannot_be_used_fails_alone_with_both_numbers() {
    let server = server(&["--max-steps", "10"]);
    let long = vec![[1.0, 2.0]; 11];
    let body = json!({"sequences": [[[1, 2, 3]], [], [[1, null]], long, [[1, 2]], [1, 2]]});
    let json = assign(&server, "application/json", body.to_string().as_bytes()).json();
    let codes: Vec<&str> =
        json["sequences"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap_or("good")).collect();
    let expected = ["other_dimension", "no_steps", "missing_values", "too_long", "good", "other_dimension"];
    assert_eq!(codes, expected, "{json}");
    assert_eq!(json["sequences"][0]["error"], "the sequence has 3 values a step and the model takes 2");
    assert_eq!(json["sequences"][5]["error"], "the sequence has 1 value a step and the model takes 2");
    let refused = assign(&server, "text/csv", b"id,x,y,z\na,1,2,3\n").expect(422, "bad_table");
    assert!(refused.text().contains("3 values a step and the model takes 2"), "{}", refused.text());
    assign(&server, "text/csv", b"id,x,y\na,1\n").expect(422, "bad_table");
    assign(&server, "text/csv", b"\n").expect(422, "bad_table");
    let wrong = assign(&server, "image/png", &common::png(4, 4, 1)).expect(415, "unsupported_type");
    assert!(wrong.text().contains("the model takes sequences"), "{}", wrong.text());
    assign(&server, "application/json", b"{\"images\": []}").expect(400, "bad_json");
    assign(&server, "application/json", b"{\"sequences\": []}").expect(422, "no_images");
    let images = Server::start(&[]);
    images.post("/v1/assign", "text/csv", b"x,y\n1,2\n").expect(415, "unsupported_type");
    images.post("/v1/assign", "application/json", b"{\"sequences\": []}").expect(400, "bad_json");
    assert_eq!(images.get("/v1/models/small").json()["input"]["kind"], "images");
    assert_eq!(K, 5);
}

#[test]
fn limits_hold_before_anything_is_made() {
    let server = server(&["--max-images", "3", "--max-body", "64KiB", "--max-buffered", "256KiB"]);
    let many = json!({"sequences": vec![[[1, 2]]; 4]}).to_string();
    assign(&server, "application/json", many.as_bytes()).expect(413, "too_many_images");
    assign(&server, "text/csv", b"id,x,y\na,1,2\nb,1,2\nc,1,2\nd,1,2\n").expect(413, "too_many_images");
    // A short table that would take more than all memory for requests while it is read.
    let wide = format!("x0,{}\n1\n", "y,".repeat(15_000));
    assign(&server, "text/csv", wide.as_bytes()).expect(413, "body_too_large");
    assert_eq!(assign(&server, "text/csv", b"x,y\n1,2\n").status, 200);
}

#[test]
fn tensors_go_both_ways_and_models_describe_themselves() {
    let server = server(&[]);
    let model = server.get("/v2/models/small").json();
    let inputs = json!([
        {"name": "values", "datatype": "FP32", "shape": [-1, -1, 2]},
        {"name": "lengths", "datatype": "INT64", "shape": [-1]},
    ]);
    assert_eq!(model["inputs"], inputs);
    let about = server.get("/v1/models/small").json();
    assert_eq!(about["input"], json!({"kind": "sequences", "dim": 2, "max_steps": 16384}));
    let (all, expected) = (sequences(), expected());
    let time = 30;
    let mut values = Vec::new();
    for sequence in &all {
        values.extend_from_slice(sequence);
        // Whatever stands behind a sequence is not looked at.
        values.resize(values.len() + 2 * time - sequence.len(), 1e30);
    }
    let lengths: Vec<i64> = all.iter().map(|sequence| (sequence.len() / 2) as i64).collect();
    let body = json!({"id": "7", "inputs": [
        {"name": "values", "datatype": "FP32", "shape": [5, time, 2], "data": values},
        {"name": "lengths", "datatype": "INT64", "shape": [5], "data": lengths},
    ]});
    let answer = server.post("/v2/models/small/infer", "application/json", body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let clusters: Vec<usize> = serde_json::from_value(answer.json()["outputs"][0]["data"].clone()).unwrap();
    assert_eq!(clusters, expected.iter().map(Expected::cluster).collect::<Vec<_>>());
    let binary = [
        values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
        lengths.iter().flat_map(|length| length.to_le_bytes()).collect(),
    ];
    let head = json!({"inputs": [
        {"name": "values", "datatype": "FP32", "shape": [5, time, 2], "parameters": {"binary_data_size": binary[0].len()}},
        {"name": "lengths", "datatype": "INT64", "shape": [5], "parameters": {"binary_data_size": binary[1].len()}},
    ], "outputs": [{"name": "cluster"}]})
    .to_string();
    let size = head.len().to_string();
    let whole = [head.as_bytes(), &binary[0], &binary[1]].concat();
    let headers = [("content-type", "application/octet-stream"), ("inference-header-content-length", size.as_str())];
    let answer = server.post_with("/v2/models/small/infer", &headers, &whole);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let again: Vec<usize> = serde_json::from_value(answer.json()["outputs"][0]["data"].clone()).unwrap();
    assert_eq!(again, clusters);
    let wrong = body.to_string().replace("[5,30,2]", "[5,20,3]");
    let refused = server.post("/v2/models/small/infer", "application/json", wrong.as_bytes()).expect(400, "bad_tensor");
    assert!(refused.text().contains("3 values a step and the model takes 2"), "{}", refused.text());
}
