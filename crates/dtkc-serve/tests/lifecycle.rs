//! Start, names, reload, overload, stop.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{SIDE, Server, model, model_of, multipart, png};
use dtkc_testing::wait_until;

const S: u32 = SIDE as u32;
/// Flags for a server whose worker waits that long for a batch that never fills: whatever is asked stays in the queue
/// for so long, however fast the machine is.
const PATIENT: [&str; 4] = ["--max-batch", "4096", "--max-wait-ms", "5000"];
const QUEUE: &str = "dtkc_queue_images{model=\"small\"}";
const IMAGES: &str = "dtkc_images_total{model=\"small\"}";
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = common::command().args(["--port", "0"]).args(args).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[test]
fn a_start_that_cannot_work_ends_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("good.onnx"), model(1)).unwrap();
    std::fs::write(at("noise.onnx"), b"this is no model").unwrap();
    std::fs::write(at("cut.onnx"), &model(1)[..1000]).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let twice = format!("good={}", at("cut.onnx"));
    let cases: [(Vec<&str>, i32, &str); 11] = [
        (vec!["--model", "no-such-model"], 1, "no-such-model"),
        (vec!["--model", &at("none.onnx")], 1, "none.onnx"),
        (vec!["--model", &at("noise.onnx")], 1, "noise.onnx"),
        (vec!["--model", &at("cut.onnx")], 1, "cut.onnx"),
        (vec!["--model", &at("good.onnx"), "--model", &twice], 1, "two models"),
        (vec!["--model", &at("good.onnx"), "--port", &port], 1, "--port"),
        (vec!["--model", &at("good.onnx"), "--workers", "0"], 2, "--workers"),
        (vec!["--model", &at("good.onnx"), "--device", "abacus"], 2, "abacus"),
        (vec!["--model", &at("good.onnx"), "--prot", "1"], 2, "'--port'"),
        (vec!["--model", &at("good.onnx"), "--log-format", "xml"], 2, "text, json"),
        (vec!["--model", &at("good.onnx"), "--api-key-file", &at("none")], 1, "none"),
    ]
    .map(|(args, code, text): (Vec<&str>, i32, &str)| {
        (args.into_iter().map(|a| &*a.to_owned().leak()).collect(), code, text)
    });
    for (args, code, expected) in cases {
        // The last --port wins only where it is given.
        let args: Vec<&str> = args.into_iter().collect();
        let output = if args.contains(&"--port") {
            let output = common::command().args(&args).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
        } else {
            refused(&args)
        };
        assert_eq!(output.0, Some(code), "{args:?}: {}", output.1);
        assert!(output.1.contains(expected), "{args:?}: {}", output.1);
        assert!(output.1.starts_with("error: ") && output.1.lines().count() == 1, "{args:?}: {}", output.1);
    }
}

/// A process, ended when dropped.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_setting_comes_from_the_environment_and_the_log_can_be_json() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.onnx"), model(1)).unwrap();
    let mut command = common::command();
    command.env("DTKC_MODEL", format!("mine={}", folder.path().join("small.onnx").display()));
    for (name, value) in
        [("PORT", "0"), ("WORKERS", "1"), ("API_KEY", "one,two"), ("LOG_FORMAT", "json"), ("MAX_IMAGES", "7")]
    {
        command.env(format!("DTKC_{name}"), value);
    }
    let piped = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut process = Process(piped.spawn().unwrap());
    let mut log = std::io::BufReader::new(process.0.stderr.take().unwrap()).lines();
    let mut line = || -> serde_json::Value { serde_json::from_str(&log.next().unwrap().unwrap()).unwrap() };
    let ready = line();
    assert_eq!((ready["message"].as_str(), ready["models"].as_str()), (Some("ready"), Some("mine")), "{ready}");
    let url = ready["url"].as_str().unwrap().to_owned();
    let ask =
        |key: &str| common::answer(common::agent().get(format!("{url}/v1/models")).header("x-api-key", key).call());
    ask("three").expect(401, "key_wrong");
    assert_eq!(ask("two").json()["limits"]["max_images"], 7);
    let refused = line();
    assert_eq!((refused["status"].as_u64(), refused["code"].as_str()), (Some(401), Some("key_wrong")), "{refused}");
}

/// ONNX Runtime likes to keep a database for reports to its maker.
#[test]
fn nothing_is_written_outside_and_nobody_is_told() {
    let [folder, home] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    std::fs::write(folder.path().join("small.onnx"), model(1)).unwrap();
    let mut command = common::command();
    command.args(["--port", "0", "--workers", "1", "--model"]).arg(folder.path().join("small.onnx"));
    for name in ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR"] {
        command.env(name, home.path());
    }
    command.env("HOME", home.path()).env_remove("ORT_DISABLE_TELEMETRY");
    let mut process = Process(command.stdout(std::process::Stdio::piped()).spawn().unwrap());
    let lines = std::io::BufReader::new(process.0.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("page")), "it did not start");
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn names_survive_a_restart_and_belong_to_the_model() {
    let mut server = Server::start(&[]);
    let name = |server: &Server, id: &str, body: &str| {
        server.put(&format!("/v1/models/small/clusters/{id}"), &JSON, body.as_bytes())
    };
    let answer = name(&server, "2", "{\"name\": \"  sevens \"}");
    assert_eq!((answer.status, answer.json()["name"].as_str()), (200, Some("sevens")));
    name(&server, "9", "{\"name\": \"x\"}").expect(404, "unknown_cluster");
    name(&server, "two", "{\"name\": \"x\"}").expect(404, "unknown_cluster");
    name(&server, "2", "{\"name\": \"two\\nlines\"}").expect(422, "bad_name");
    name(&server, "2", &format!("{{\"name\": \"{}\"}}", "x".repeat(101))).expect(422, "bad_name");
    name(&server, "2", "{\"label\": \"x\"}").expect(400, "bad_json");
    name(&server, "2", &" ".repeat(20_000)).expect(413, "body_too_large");
    server.put("/v1/models/small/clusters/2", &[("content-type", "text/plain")], b"x").expect(415, "unsupported_type");
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    drop(server);

    let server = Server::in_folder(folder, &[]);
    let listed = server.get("/v1/models/small").json();
    assert_eq!(listed["clusters"][2]["name"], "sevens");
    assert_eq!(listed["clusters"][1]["name"], "cluster 1");
    let answer = server.post("/v1/assign?top_k=9", "image/png", &png(S, S, 1)).json();
    let named: Vec<&str> =
        answer["images"][0]["top"].as_array().unwrap().iter().map(|t| t["cluster_name"].as_str().unwrap()).collect();
    assert!(named.contains(&"sevens"), "{named:?}");
    // Another model under the same name starts without the names; the old one has them again.
    std::fs::write(server.model_path(), model(2)).unwrap();
    assert_eq!(server.post("/v1/models/small/reload", "", b"").json()["changed"], true);
    assert_eq!(server.get("/v1/models/small").json()["clusters"][2]["name"], "cluster 2");
    std::fs::write(server.model_path(), model(1)).unwrap();
    server.post("/v1/models/small/reload", "", b"");
    assert_eq!(server.get("/v1/models/small").json()["clusters"][2]["name"], "sevens");
    assert_eq!(name(&server, "2", "{\"name\": \"\"}").json()["name"], "cluster 2");
}

/// Somebody else may change the names: another server, or an editor.
#[test]
fn a_reload_reads_the_names_again() {
    let server = Server::start(&[]);
    let json = [("content-type", "application/json")];
    let named = server.put("/v1/models/small/clusters/0", &json, b"{\"name\": \"ours\"}");
    assert_eq!(named.status, 200);
    let file = std::fs::read_dir(server.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.to_string_lossy().ends_with(".names.json")).unwrap();
    std::fs::write(&file, "{\"0\": \"theirs\", \"1\": \"new\"}").unwrap();
    let answer = server.post_with("/v1/models/small/reload", &[], b"").json();
    assert_eq!(answer["changed"], false);
    let clusters = &server.get("/v1/models/small").json()["clusters"];
    assert_eq!((&clusters[0]["name"], &clusters[1]["name"]), (&"theirs".into(), &"new".into()));
}

#[test]
fn a_name_for_another_model_file_is_refused() {
    let server = Server::start(&[]);
    let fingerprint = server.get("/v1/models/small").json()["fingerprint"].as_str().unwrap().to_owned();
    let assigned = server.assign(&[("a.png", &png(S, S, 1))]);
    assert_eq!(assigned.header("x-model-fingerprint"), fingerprint);
    let rename = |tag: &str| {
        let headers = [("content-type", "application/json"), ("if-match", tag)];
        server.put("/v1/models/small/clusters/0", &headers, b"{\"name\": \"x\"}")
    };
    assert_eq!(rename(&format!("\"{fingerprint}\"")).status, 200);
    rename("\"0123\"").expect(412, "model_changed");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = Server::start(&["--state-dir", state.to_str().unwrap()]);
    // Root may write anywhere, so the folder is taken away instead of being locked.
    std::fs::remove_dir(&state).unwrap();
    server.put("/v1/models/small/clusters/0", &JSON, b"{\"name\": \"x\"}").expect(500, "not_saved");
    assert_eq!(server.get("/v1/models/small").json()["clusters"][0]["name"], "cluster 0");
}

/// Clients that never stop while `during` runs, and a while before and after; every answer must be 200.
fn under_load(server: &Server, during: impl FnOnce()) {
    let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let images: Vec<Vec<u8>> = (0..8).map(|seed| png(S, S, seed)).collect();
    let files: Vec<(&str, &[u8])> = images.iter().map(|i| ("x.png", i.as_slice())).collect();
    let (content_type, body) = multipart(&files);
    let answered = |more: usize| {
        let before = count.load(Ordering::Relaxed);
        wait_until("clients are answered", || count.load(Ordering::Relaxed) >= before + more);
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let answer = server.post("/v1/assign", &content_type, &body);
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        answered(6);
        during();
        answered(6);
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_reload_under_load_fails_no_request() {
    let server = Server::start(&[]);
    let fingerprint = || server.get("/v1/models/small").json()["fingerprint"].as_str().unwrap().to_owned();
    let first = fingerprint();
    under_load(&server, || {
        for seed in 2..8 {
            // Also another input size and another k.
            let bytes = if seed % 2 == 0 { model_of(seed, 20, 7) } else { model(seed) };
            std::fs::write(server.model_path(), bytes).unwrap();
            let answer = server.post("/v1/models/small/reload", "", b"");
            assert_eq!((answer.status, answer.json()["changed"].as_bool()), (200, Some(true)), "{}", answer.text());
        }
        let unchanged = server.post("/v1/models/small/reload", "", b"");
        assert_eq!(unchanged.json()["changed"], false);
    });
    assert_ne!(fingerprint(), first);
    server.post("/v1/models/none/reload", "", b"").expect(404, "unknown_model");
}

#[test]
fn a_bad_file_leaves_the_old_one_serving() {
    let server = Server::start(&[]);
    let before = server.get("/v1/models/small").json();
    for bad in [&b"no model"[..], &model(3)[..2000]] {
        std::fs::write(server.model_path(), bad).unwrap();
        let answer = server.post("/v1/models/small/reload", "", b"").expect(409, "bad_model_file");
        assert!(answer.text().contains("keeps serving"), "{}", answer.text());
        assert!(!answer.text().contains(server.folder.path().to_str().unwrap()), "no path goes out: {}", answer.text());
    }
    std::fs::remove_file(server.model_path()).unwrap();
    server.post("/v1/models/small/reload", "", b"").expect(409, "bad_model_file");
    server.assert_alive();
    assert_eq!(server.get("/v1/models/small").json(), before);
    assert_eq!(server.metric("dtkc_reloads_total{model=\"small\",result=\"failed\"}"), 3.0);
}

#[test]
fn sighup_reloads_and_sigterm_finishes_what_was_accepted() {
    let mut server = Server::start(&PATIENT);
    let fingerprint = || server.get("/v1/models/small").json()["fingerprint"].clone();
    let before = fingerprint();
    std::fs::write(server.model_path(), model(5)).unwrap();
    server.signal("HUP");
    wait_until("the changed file is loaded", || fingerprint() != before);

    let image = png(S, S, 1);
    let files: Vec<(&str, &[u8])> = vec![("x.png", &image); 200];
    let (status, images) = std::thread::scope(|scope| {
        let request = scope.spawn(|| {
            let answer = server.assign(&files);
            (answer.status, answer.json()["images"].as_array().map_or(0, Vec::len))
        });
        wait_until("the request is accepted", || server.metric(QUEUE) == 200.0 || request.is_finished());
        server.signal("TERM");
        request.join().unwrap()
    });
    assert_eq!((status, images), (200, 200));
    assert_eq!(server.wait(), 0);
    assert!(std::net::TcpStream::connect(server.address()).is_err(), "nobody listens any more");
}

/// The head of a request for so many bytes.
fn head(path: &str, content_type: &str, length: usize, extra: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\n{extra}content-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    )
}

#[test]
fn a_stop_does_not_wait_longer_than_allowed() {
    // Only the limit for stopping can end this: the request itself has a day.
    let mut server = Server::start(&["--request-timeout", "24h", "--stop-timeout", "1s"]);
    // A client that never finishes its request.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(format!("{}x", head("/v1/assign", "image/png", 99, "")).as_bytes()).unwrap();
    wait_until("the beginning has arrived", || server.metric("dtkc_buffered_bytes") > 0.0);
    server.signal("INT");
    assert_eq!(server.wait(), 130);
}

#[test]
fn a_full_queue_says_when_to_come_back_and_recovers() {
    let server = Server::start(&[&["--max-queue", "32"], &PATIENT[..]].concat());
    let image = png(S, S, 1);
    let (content_type, body) = multipart(&vec![("x.png", image.as_slice()); 32]);
    let post = || server.post("/v1/assign", &content_type, &body);
    std::thread::scope(|scope| {
        let first = scope.spawn(post);
        wait_until("the queue is full", || server.metric(QUEUE) == 32.0 || first.is_finished());
        let refused = post().expect(429, "queue_full");
        assert!((1..=60).contains(&refused.header("retry-after").parse::<u64>().unwrap()));
        assert_eq!(first.join().unwrap().status, 200);
    });
    assert_eq!(post().status, 200);
    assert_eq!(server.metric(QUEUE), 0.0);
}

#[test]
fn a_passed_deadline_is_504_and_takes_the_rest_out_of_the_queue() {
    let server = Server::start(&[&["--request-timeout", "2s"], &PATIENT[..]].concat());
    server.post("/v1/assign", "image/png", &png(S, S, 1)).expect(504, "deadline_passed");
    assert_eq!(server.metric(QUEUE), 0.0, "the rest was dropped");
}

#[test]
fn a_client_that_has_gone_leaves_the_queue() {
    let server = Server::start(&["--max-batch", "4096", "--max-wait-ms", "10000"]);
    let image = png(S, S, 1);
    let (content_type, body) = multipart(&vec![("x.png", image.as_slice()); 100]);
    let stream = ask_and_do_not_read(&server, "/v1/assign", &content_type, &body, "");
    wait_until("the request is accepted", || server.metric(QUEUE) == 100.0);
    drop(stream);
    wait_until("its images leave the queue", || server.metric(QUEUE) == 0.0);
    assert_eq!(server.metric(IMAGES), 0.0, "nobody waits for them");
}

/// Sends a whole request and gives the connection back unread.
fn ask_and_do_not_read(server: &Server, path: &str, content_type: &str, body: &[u8], extra: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(head(path, content_type, body.len(), extra).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

#[test]
fn a_client_that_never_reads_its_answer_is_cut_off() {
    // 200 clusters for each of 1000 images: an answer of many megabytes, more than the system buffers. It is held long
    // enough to be seen, and the images are labelled in time, on any machine.
    let server = Server::with_model(&model_of(1, SIDE, 200), &["--request-timeout", "10s", "--max-queue", "3000"]);
    let image = png(S, S, 1);
    let (content_type, body) = multipart(&vec![("x.png", image.as_slice()); 1000]);
    let open_files = || std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count();
    server.assert_alive();
    let before = open_files();
    let held = || server.metric("dtkc_buffered_bytes");
    let ask = |extra| ask_and_do_not_read(&server, "/v1/assign?top_k=200", &content_type, &body, extra);
    let streams = ["", "connection: close\r\n"].map(ask);
    wait_until("the answers wait", || held() >= 4e6 && server.metric(IMAGES) >= 2001.0);
    // Others are served meanwhile, and what the two held comes back, although they never close.
    server.assert_alive();
    wait_until("what they held comes back", || held() == 0.0 && open_files() <= before);
    for mut stream in streams {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        assert!(read.is_err() || rest.len() < 20_000_000, "the whole answer came: {} bytes", rest.len());
    }
}

#[test]
fn a_stop_does_not_wait_for_a_client_that_never_reads() {
    // Only the limit for stopping can end this: the client may take a day.
    let more = ["--request-timeout", "24h", "--stop-timeout", "1s"];
    let mut server = Server::with_model(&model_of(1, SIDE, 200), &more);
    let image = png(S, S, 1);
    let (content_type, body) = multipart(&vec![("x.png", image.as_slice()); 1000]);
    let _unread = ask_and_do_not_read(&server, "/v1/assign?top_k=200", &content_type, &body, "");
    wait_until("the answer waits", || server.metric(IMAGES) >= 1000.0);
    server.signal("TERM");
    server.wait();
}
