//! Clusters that are merged and split in the model file of a running service.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Answer, EMBEDDING as WIDTH, K, SIDE, Server, model, pixels, png, reference};

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

/// The embedding, cluster and probabilities of an image.
fn seen(server: &Server, seed: u64) -> (Vec<f64>, usize) {
    let answer = server.post("/v1/assign?embedding=true", "image/png", &png(S, S, seed)).json();
    let image = &answer["images"][0];
    let embedding = image["embedding"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    (embedding, image["cluster"].as_u64().unwrap() as usize)
}

fn split_body(cluster: usize, embeddings: &[Vec<f64>]) -> String {
    serde_json::json!({ "split": { "cluster": cluster, "embeddings": embeddings } }).to_string()
}

fn random_rows(count: usize) -> Vec<Vec<f64>> {
    (0..count).map(|row| (0..WIDTH).map(|at| ((row * 31 + at * 17) % 23) as f64).collect()).collect()
}

#[test]
fn a_cluster_is_split_by_the_items_that_a_client_has_seen_of_it() {
    let server = Server::start(&["--allow-edits"]);
    let before = std::fs::read(server.model_path()).unwrap();
    let images: Vec<(u64, Vec<f64>, usize)> = (0..60)
        .map(|seed| {
            let (embedding, cluster) = seen(&server, seed);
            (seed, embedding, cluster)
        })
        .collect();
    let count = |cluster: usize| images.iter().filter(|image| image.2 == cluster).count();
    let largest = (0..K).max_by_key(|&cluster| count(cluster)).unwrap();
    let own: Vec<Vec<f64>> = images.iter().filter(|image| image.2 == largest).map(|image| image.1.clone()).collect();
    let single: Vec<Vec<f64>> = (0..60).map(|seed| probabilities(&server, seed)).collect();

    let answer = edit(&server, &split_body(largest, &own));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let model = answer.json();
    assert_eq!((&model["k"], &model["edits"]), (&(K + 1).into(), &serde_json::json!([format!("split {largest}")])));
    let mut halves = [0, 0];
    for ((seed, _, cluster), single) in images.iter().zip(&single) {
        let found = probabilities(&server, *seed);
        // What the cluster had is shared by its halves, and nothing else has moved.
        let whole = found[largest] + found[K];
        assert!((whole - single[largest]).abs() < 1e-5, "{found:?} {single:?}");
        for other in (0..K).filter(|&other| other != largest) {
            assert!((found[other] - single[other]).abs() < 1e-5, "{found:?} {single:?}");
        }
        if *cluster == largest {
            halves[usize::from(found[K] > found[largest])] += 1;
        }
    }
    assert!(halves[0] >= halves[1] && halves[1] > 0, "the smaller half is the new cluster: {halves:?}");
    assert_eq!(edit(&server, "{\"undo\": true}").json()["k"], K);
    assert_eq!(std::fs::read(server.model_path()).unwrap(), before, "the very bytes");
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
    edit(&server, &" ".repeat((16 << 20) + 1)).expect(413, "body_too_large");
    for (body, reason) in [
        (split_body(0, &vec![vec![1.0; WIDTH]; 20]), "four that differ"),
        (split_body(0, &[]), "four that differ"),
        (split_body(K, &random_rows(20)), "there is no cluster"),
        (split_body(0, &[vec![1.0, 2.0], vec![3.0, 4.0]]), "have 2 values each"),
    ] {
        let answer = edit(&server, &body);
        assert!(answer.text().contains(reason), "{}", answer.text());
        answer.expect(422, "bad_edit");
    }
    edit(&server, "{\"split\": {\"cluster\": 0, \"embeddings\": [[1], [1, 2]]}}").expect(400, "bad_json");
    edit(&server, &split_body(0, &random_rows(20)).replace('}', ", \"more\": 1}")).expect(400, "bad_json");
    let both = split_body(0, &random_rows(20)).replacen('{', "{\"undo\": true, ", 1);
    edit(&server, &both).expect(422, "bad_edit");
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
