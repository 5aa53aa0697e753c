//! The inference protocol: metadata, JSON tensors, binary tensors, refusals.
#![allow(clippy::unwrap_used)]

mod common;

use common::{EMBEDDING, K, SIDE, Server, pixels, reference};
use serde_json::{Value, json};

fn request(data: Value, shape: Value) -> Value {
    json!({"id": "7", "inputs": [{"name": "image", "datatype": "UINT8", "shape": shape, "data": data}]})
}

fn infer(server: &Server, body: &Value) -> common::Answer {
    server.post("/v2/models/small/infer", "application/json", body.to_string().as_bytes())
}

#[test]
fn the_server_and_the_model_describe_themselves() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/v2/health/live").status, 200);
    assert_eq!(server.get("/v2/health/ready").status, 200);
    let metadata = server.get("/v2").json();
    assert_eq!(metadata["extensions"], json!(["binary_tensor_data", "model_repository", "statistics"]));
    for path in ["/v2/models/small", "/v2/models/small/versions/1"] {
        let model = server.get(path).json();
        assert_eq!(model["inputs"], json!([{"name": "image", "datatype": "UINT8", "shape": [-1, SIDE, SIDE, 1]}]));
        assert_eq!(model["outputs"][1], json!({"name": "probabilities", "datatype": "FP32", "shape": [-1, K]}));
        assert_eq!(server.get(&format!("{path}/ready")).status, 200);
    }
    server.get("/v2/models/small/versions/2").expect(404, "unknown_version");
    server.get("/v2/models/none/ready").expect(404, "unknown_model");
}

#[test]
fn json_tensors_give_the_models_own_answer() {
    let server = Server::start(&["--max-batch", "2"]);
    let both: Vec<u8> = [pixels(1), pixels(2), pixels(3)].concat();
    let expected = reference(&server.model_path(), &both, 3);
    let answer = infer(&server, &request(json!(both), json!([3, SIDE, SIDE, 1])));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    assert_eq!((json["model_name"].as_str(), json["id"].as_str()), (Some("small"), Some("7")));
    assert_eq!(json["outputs"][0]["data"], json!(expected.clusters));
    assert_eq!(json["outputs"][1]["shape"], json!([3, K]));
    let probabilities: Vec<f32> = serde_json::from_value(json["outputs"][1]["data"].clone()).unwrap();
    assert!(probabilities.iter().zip(&expected.probabilities).all(|(a, b)| (a - b).abs() < 1e-6));
    assert_eq!(json["outputs"][2]["shape"], json!([3, EMBEDDING]));
}

#[test]
fn binary_tensors_go_both_ways() {
    let server = Server::start(&[]);
    let pixels = pixels(4);
    let expected = reference(&server.model_path(), &pixels, 1);
    let head = json!({
        "inputs": [{"name": "image", "datatype": "UINT8", "shape": [1, SIDE, SIDE, 1], "parameters": {"binary_data_size": pixels.len()}}],
        "outputs": [{"name": "probabilities", "parameters": {"binary_data": true}}, {"name": "cluster", "parameters": {"binary_data": true}}],
    })
    .to_string();
    let size = head.len().to_string();
    let headers = [("content-type", "application/octet-stream"), ("inference-header-content-length", size.as_str())];
    let body = [head.as_bytes(), &pixels].concat();
    let answer = server.post_with("/v2/models/small/infer", &headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json_size: usize = answer.header("inference-header-content-length").parse().unwrap();
    let json: Value = serde_json::from_slice(&answer.body[..json_size]).unwrap();
    assert_eq!(json["outputs"][0]["parameters"]["binary_data_size"], 4 * K);
    let binary = &answer.body[json_size..];
    assert_eq!(binary.len(), 4 * K + 8);
    let first = f32::from_le_bytes(binary[..4].try_into().unwrap());
    assert!((first - expected.probabilities[[0, 0]]).abs() < 1e-6);
    assert_eq!(i64::from_le_bytes(binary[4 * K..].try_into().unwrap()), expected.clusters[0]);
}

#[test]
fn wrong_tensors_are_refused_one_by_one() {
    let server = Server::start(&[]);
    let good = json!(pixels(1));
    let shape = json!([1, SIDE, SIDE, 1]);
    let mut cases = vec![
        request(good.clone(), json!([1, SIDE, SIDE])),
        request(good.clone(), json!([2, SIDE, SIDE, 1])),
        request(good.clone(), json!([0, SIDE, SIDE, 1])),
        request(good.clone(), json!([-1, SIDE, SIDE, 1])),
        request(good.clone(), json!([1, SIDE, SIDE, 3])),
        request(json!([1, 2, 3]), shape.clone()),
        request(json!(vec![256; SIDE * SIDE]), shape.clone()),
        request(json!(vec![0.5; SIDE * SIDE]), shape.clone()),
        request(json!("text"), shape.clone()),
        json!({}),
        json!({"inputs": []}),
    ];
    let mut other = request(good.clone(), shape.clone());
    other["inputs"][0]["datatype"] = json!("FP32");
    cases.push(other.clone());
    other["inputs"][0]["datatype"] = json!("UINT8");
    other["inputs"][0]["name"] = json!("picture");
    cases.push(other.clone());
    other["inputs"][0]["name"] = json!("image");
    other["outputs"] = json!([{"name": "nothing"}]);
    cases.push(other);
    for case in cases {
        let answer = infer(&server, &case);
        assert_eq!(answer.status, 400, "{case}: {}", answer.text());
        assert!(["bad_tensor", "bad_json"].contains(&answer.code().as_str()));
    }
    let nan = request(json!("HERE"), shape)
        .to_string()
        .replace("\"HERE\"", &format!("[{}]", vec!["NaN"; SIDE * SIDE].join(",")));
    server.post("/v2/models/small/infer", "application/json", nan.as_bytes()).expect(400, "bad_json");
    // NaN in binary: floats are refused by their type, whatever is in them, and so are bytes that are too few.
    let nan: Vec<u8> = std::iter::repeat_n(f32::NAN.to_le_bytes(), SIDE * SIDE).flatten().collect();
    for (datatype, promised, sent) in [
        ("FP32", nan.len(), &nan[..]),
        ("UINT8", nan.len(), &nan[..]),
        ("UINT8", SIDE * SIDE, &nan[..SIDE * SIDE - 1]),
        ("UINT8", SIDE * SIDE - 1, &nan[..SIDE * SIDE]),
    ] {
        let head = json!({"inputs": [{"name": "image", "datatype": datatype, "shape": [1, SIDE, SIDE, 1],
            "parameters": {"binary_data_size": promised}}]})
        .to_string();
        let size = head.len().to_string();
        let headers =
            [("content-type", "application/octet-stream"), ("inference-header-content-length", size.as_str())];
        let body = [head.as_bytes(), sent].concat();
        server.post_with("/v2/models/small/infer", &headers, &body).expect(400, "bad_tensor");
    }
    server
        .post_with("/v2/models/small/infer", &[("inference-header-content-length", "99")], b"{}")
        .expect(400, "bad_tensor");
    server
        .post_with("/v2/models/small/infer", &[("inference-header-content-length", "x")], b"{}")
        .expect(400, "bad_tensor");
    server.post("/v2/models/none/infer", "application/json", b"{}").expect(404, "unknown_model");
    server.post("/v2/models/small/versions/3/infer", "application/json", b"{}").expect(404, "unknown_version");
    server.assert_alive();
}

#[test]
fn more_images_than_allowed_are_refused() {
    let server = Server::start(&["--max-images", "2"]);
    let three: Vec<u8> = vec![0; 3 * SIDE * SIDE];
    infer(&server, &request(json!(three), json!([3, SIDE, SIDE, 1]))).expect(413, "too_many_images");
}

#[test]
fn health_has_the_protocols_bodies() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/v2/health/live").json(), json!({"live": true}));
    assert_eq!(server.get("/v2/health/ready").json(), json!({"ready": true}));
    assert_eq!(server.get("/v2/models/small/ready").json(), json!({"name": "small", "ready": true}));
}

#[test]
fn models_are_listed_unloaded_and_loaded_again() {
    let server = Server::start(&[]);
    let post = |path: &str| server.post_with(path, &[], b"");
    let index = || post("/v2/repository/index").json();
    assert_eq!(index(), json!([{"name": "small", "version": "1", "state": "READY", "reason": ""}]));
    server.assert_alive();
    assert_eq!(post("/v2/repository/models/small/unload").status, 200);
    assert_eq!(index()[0]["state"], "UNAVAILABLE");
    server.post("/v1/assign", "image/png", b"x").expect(503, "unloaded");
    server.get("/v2/models/small/ready").expect(503, "unloaded");
    assert_eq!(server.get("/v1/models/small").status, 200, "it is still described");
    assert_eq!(post("/v2/repository/models/small/load").status, 200);
    assert_eq!(index()[0]["state"], "READY");
    server.assert_alive();
    post("/v2/repository/models/other/load").expect(404, "unknown_model");
}

#[test]
fn statistics_count_images_and_calls() {
    let server = Server::start(&[]);
    server.assert_alive();
    server.post("/v1/assign", "image/png", b"no image").expect(422, "not_an_image");
    for path in ["/v2/models/stats", "/v2/models/small/stats", "/v2/models/small/versions/1/stats"] {
        let answer = server.get(path).json();
        let model = &answer["model_stats"][0];
        assert_eq!(
            (&model["name"], &model["inference_count"], &model["execution_count"]),
            (&json!("small"), &json!(1), &json!(1))
        );
        assert_eq!(model["inference_stats"]["fail"]["count"], json!(1));
        assert!(model["inference_stats"]["compute_infer"]["ns"].as_u64() > Some(0), "{model}");
        assert!(model["last_inference"].as_u64() > Some(1_700_000_000_000), "{model}");
    }
    server.get("/v2/models/other/stats").expect(404, "unknown_model");
}
