//! Clusters that are merged in the model file of a running service.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Answer, K, SIDE, Server, model, pixels, png, reference};

const S: u32 = SIDE as u32;
const EDITS: &str = "/v1/models/small/edits";
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn edit(server: &Server, body: &str) -> Answer {
    server.post_with(EDITS, &JSON, body.as_bytes())
}

/// The probabilities of all clusters for some images.
fn probabilities(server: &Server, seed: u64) -> Vec<f64> {
    let answer = server.post("/v1/assign?top_k=100", "image/png", &png(S, S, seed)).json();
    let mut top: Vec<(u64, f64)> = answer["images"][0]["top"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["cluster"].as_u64().unwrap(), entry["probability"].as_f64().unwrap()))
        .collect();
    top.sort_by_key(|(cluster, _)| *cluster);
    top.into_iter().map(|(_, probability)| probability).collect()
}

#[test]
fn merged_clusters_are_one_in_answers_and_in_the_file_and_can_be_parted_again() {
    let server = Server::start(&["--allow-edits"]);
    let before = std::fs::read(server.model_path()).unwrap();
    let listed = server.get("/v1/models/small").json();
    assert_eq!((&listed["editable"], &listed["edits"]), (&true.into(), &serde_json::json!([])));
    server.put("/v1/models/small/clusters/2", &JSON, b"{\"name\": \"sevens\"}");
    let single: Vec<Vec<f64>> = (0..5).map(|seed| probabilities(&server, seed)).collect();

    let answer = edit(&server, "{\"merge\": [2, 0]}");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let model = answer.json();
    assert_eq!(model["k"], K - 1);
    // The name that was given beside the old file is in the new one.
    assert_eq!(model["clusters"][0]["name"], "sevens");
    assert_eq!(model["edits"], serde_json::json!(["name 2=sevens", "merge 0,2"]));
    assert_eq!(answer.header("x-model-fingerprint"), model["fingerprint"].as_str().unwrap());
    for (seed, single) in single.iter().enumerate() {
        let mut expected = single.clone();
        expected[0] += expected.remove(2);
        let found = probabilities(&server, seed as u64);
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-5), "{expected:?} {found:?}");
    }
    // The file itself, in a session of its own.
    let alone = reference(&server.model_path(), &pixels(3), 1);
    assert_eq!(alone.probabilities.ncols(), K - 1);

    assert_eq!(edit(&server, "{\"undo\": true}").json()["k"], K);
    assert_eq!(edit(&server, "{\"undo\": true}").json()["edits"], serde_json::json!([]));
    assert_eq!(std::fs::read(server.model_path()).unwrap(), before, "the very bytes");
    edit(&server, "{\"undo\": true}").expect(422, "bad_edit");
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let server = Server::start(&["--allow-edits"]);
    for body in
        ["{\"merge\": [1]}", "{\"merge\": [1, 1]}", "{\"merge\": [0, 99]}", "{}", "{\"merge\": [0, 1], \"undo\": true}"]
    {
        edit(&server, body).expect(422, "bad_edit");
    }
    let all: Vec<usize> = (0..K).collect();
    edit(&server, &format!("{{\"merge\": {all:?}}}")).expect(422, "bad_edit");
    edit(&server, "{\"merge\": [-1, 2]}").expect(400, "bad_json");
    edit(&server, "{\"split\": 1}").expect(400, "bad_json");
    edit(&server, &" ".repeat(20_000)).expect(413, "body_too_large");
    server.post_with("/v1/models/none/edits", &JSON, b"{\"undo\": true}").expect(404, "unknown_model");
    let other = [JSON[0], ("if-match", "\"0123\"")];
    server.post_with(EDITS, &other, b"{\"merge\": [0, 1]}").expect(412, "model_changed");
    // Somebody has put another file there, which nobody has seen yet.
    std::fs::write(server.model_path(), model(2)).unwrap();
    edit(&server, "{\"merge\": [0, 1]}").expect(412, "model_changed");
    assert_eq!(std::fs::read(server.model_path()).unwrap(), model(2));
    std::fs::write(server.model_path(), b"this is no model").unwrap();
    edit(&server, "{\"merge\": [0, 1]}").expect(409, "bad_model_file");
    assert_eq!(server.get("/v1/models/small").json()["k"], K);
    assert_eq!(server.assign(&[("a.png", &png(S, S, 1))]).status, 200);
}

#[test]
fn nobody_edits_unless_it_is_allowed() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/v1/models/small").json()["editable"], false);
    edit(&server, "{\"merge\": [0, 1]}").expect(403, "edits_off");
    assert_eq!(std::fs::read(server.model_path()).unwrap(), model(1));
    let guarded = Server::start(&["--allow-edits", "--api-key", "secret"]);
    edit(&guarded, "{\"merge\": [0, 1]}").expect(401, "key_missing");
}

#[test]
fn a_bundled_model_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let bundled = folder.path().join("bundled.onnx");
    std::fs::write(&bundled, model(1)).unwrap();
    let mut command = common::command();
    command.env("DTKC_MODELS", folder.path());
    let server = Server::of(command, folder, &["--allow-edits", "--model", "bundled"]);
    let answer = server.post_with("/v1/models/bundled/edits", &JSON, b"{\"merge\": [0, 1]}");
    answer.expect(409, "bundled_model");
    assert_eq!(server.get("/v1/models/bundled").json()["editable"], false);
    assert_eq!(std::fs::read(&bundled).unwrap(), model(1));
}
