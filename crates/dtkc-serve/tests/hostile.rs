//! Small requests that ask for much get an answer, and cost little: memory, time, and nobody else's turn.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::{SIDE, Server, multipart, png, zip_of};
use dtkc_testing::{LONG, files, hostile, wait_until};
use serde_json::{Value, json};

const S: u32 = SIDE as u32;
const GZIP: [(&str, &str); 2] = [("content-type", "application/json"), ("content-encoding", "gzip")];

/// The most memory that the server has had at one time, in MiB; always the same where the system does not tell.
fn peak(server: &Server) -> u64 {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())) else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

fn infer(images: usize, outputs: &Value) -> Vec<u8> {
    let pixels = vec![0u8; images * SIDE * SIDE];
    let input = json!({"name": "image", "datatype": "UINT8", "shape": [images, SIDE, SIDE, 1], "data": pixels});
    json!({"inputs": [input], "outputs": outputs}).to_string().into_bytes()
}

/// A body of 4.8 KB ended the process.
#[test]
fn an_output_that_is_asked_for_again_and_again() {
    let server = Server::start(&[]);
    let path = "/v2/models/small/infer";
    let twice = infer(1, &json!([{"name": "embedding"}, {"name": "cluster"}, {"name": "embedding"}]));
    let answer = server.post(path, "application/json", &twice).expect(400, "bad_tensor");
    assert!(answer.text().contains("'embedding' is asked for twice"), "{}", answer.text());
    let often = infer(1000, &json!(vec![json!({"name": "embedding"}); 20_000]));
    let before = peak(&server);
    server.post_with(path, &GZIP, &files::gz(&often)).expect(400, "bad_json");
    assert!(peak(&server) - before < 50, "{} MiB", peak(&server));
    let all = infer(2, &json!([{"name": "embedding"}, {"name": "cluster"}, {"name": "probabilities"}]));
    assert_eq!(server.post(path, "application/json", &all).status, 200);
}

#[test]
fn an_answer_that_could_never_fit_is_refused_before_the_work() {
    let server = Server::start(&["--max-body", "256KiB", "--max-buffered", "512KiB"]);
    let images = vec![""; 900];
    let body = json!({"images": images, "top_k": 6, "embedding": true}).to_string();
    let answer = server.post("/v1/assign", "application/json", body.as_bytes()).expect(413, "answer_too_large");
    assert!(answer.text().contains("fewer images"), "{}", answer.text());
    assert_eq!(server.metric("dtkc_images_total{model=\"small\"}"), 0.0);
    server.post("/v2/models/small/infer", "application/json", &infer(400, &json!([]))).expect(413, "answer_too_large");
    server.assert_alive();
    wait_until("all memory is given back", || server.metric("dtkc_buffered_bytes") == 0.0);
}

/// 32 KB took 1.3 GB, and six of them 4.6 GB.
#[test]
fn millions_of_images_in_a_few_kilobytes() {
    let server = Server::start(&[]);
    let body = format!("{{\"images\": [{}\"\"]}}", "\"\",".repeat(10_800_000));
    assert!(body.len() < 33 << 20);
    let packed = files::gz(body.as_bytes());
    let before = peak(&server);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| server.post_with("/v1/assign", &GZIP, &packed).expect(413, "too_many_images"));
        }
    });
    // The bodies themselves, twice while they grow.
    assert!(peak(&server) - before < 6 * 2 * 32 + 50, "{} MiB", peak(&server));
    // Other shapes of the same: lists, objects and numbers without end.
    let path = "/v2/models/small/infer";
    let before = peak(&server);
    for (begin, item, end) in [
        ("{\"inputs\": [", "{\"name\":\"\",\"shape\":[],\"datatype\":\"\"},", "{}]}"),
        ("{\"inputs\": [{\"shape\": [", "1,", "1]}]}"),
        ("{\"inputs\": [], \"outputs\": [", "{\"name\":\"cluster\"},", "{}]}"),
        ("{\"inputs\": [{\"data\": ", "[", ""),
        ("{\"what\": ", "[", ""),
    ] {
        let body = format!("{begin}{}{end}", item.repeat((8 << 20) / item.len()));
        server.post_with(path, &GZIP, &files::gz(body.as_bytes())).expect(400, "bad_json");
        server.post_with("/v1/assign", &GZIP, &files::gz(body.as_bytes())).expect(400, "bad_json");
    }
    assert!(peak(&server) - before < 100, "{} MiB", peak(&server));
    server.assert_alive();
}

/// A chunk of a compressed body was unpacked whole before anybody counted.
#[test]
fn a_compressed_body_without_end() {
    let server = Server::start(&["--max-body", "1MiB"]);
    let before = peak(&server);
    let bomb = files::gz(&vec![0; 500 << 20]);
    let headers = [("content-type", "image/png"), ("content-encoding", "gzip")];
    server.post_with("/v1/assign", &headers, &bomb[..900 << 10]).expect(413, "body_too_large");
    assert!(peak(&server) - before < 50, "{} MiB", peak(&server));
    let cut = files::gz(&png(S, S, 1));
    let answer = server.post_with("/v1/assign", &headers, &cut[..cut.len() - 9]).expect(400, "broken_body");
    assert!(answer.text().contains("its compression is damaged"), "{}", answer.text());
    server.assert_alive();
}

/// 64 of them, in a zip of 39 KB, kept everybody else waiting for 87 s.
#[test]
fn progressive_jpegs_that_go_over_their_picture_a_hundred_times() {
    let server = Server::start(&[]);
    let jpeg = hostile::progressive_jpeg(8192, 100);
    let names: Vec<String> = (0..64).map(|n| format!("{n}.jpg")).collect();
    let zip = zip_of(&names.iter().map(|name| (name.as_str(), &jpeg[..])).collect::<Vec<_>>());
    assert!(zip.len() < 64 << 10);
    let images = server.post("/v1/assign", "application/zip", &zip).json();
    assert_eq!(images["failed"], 64);
    assert!(images["images"].as_array().unwrap().iter().all(|image| image["code"] == "too_costly"), "{images}");
    server.post("/v1/assign", "image/jpeg", &jpeg).expect(422, "too_costly");
    // What programs write is not meant.
    assert_eq!(server.post("/v1/assign", "image/jpeg", &hostile::progressive_jpeg(512, 10)).status, 200);
}

/// Each of them is allowed, all of them together are not.
#[test]
fn the_images_of_one_request_share_a_budget() {
    let server = Server::start(&["--max-image-pixels", "10000", "--max-request-pixels", "25000"]);
    let large = png(100, 100, 1);
    let files: Vec<(&str, &[u8])> = vec![("large.png", &large); 4];
    let images = server.assign(&files).json();
    let codes: Vec<&str> =
        images["images"].as_array().unwrap().iter().map(|image| image["code"].as_str().unwrap_or("ok")).collect();
    assert_eq!(codes, ["ok", "ok", "too_costly", "too_costly"]);
    assert_eq!(server.assign(&files[..2]).json()["failed"], 0);
}

/// It took a gigabyte.
#[test]
fn a_small_png_with_a_large_profile() {
    let server = Server::start(&[]);
    let before = peak(&server);
    let image = hostile::png_with(b"iCCP", 300 << 20, 28);
    assert_eq!(server.post("/v1/assign", "image/png", &image).status, 200);
    assert!(peak(&server) - before < 50, "{} MiB", peak(&server));
}

/// Work for a client that was told 504 went on until all of it was done.
#[test]
fn work_ends_with_the_client_that_asked_for_it() {
    let server = Server::start(&["--request-timeout", "1s", "--max-request-pixels", "1000000000000"]);
    // Each takes a while, none takes long; all of them take minutes.
    let jpeg = hostile::progressive_jpeg(8192, 8);
    let names: Vec<String> = (0..500).map(|n| format!("{n}.jpg")).collect();
    let zip = zip_of(&names.iter().map(|name| (name.as_str(), &jpeg[..])).collect::<Vec<_>>());
    let started = Instant::now();
    server.post("/v1/assign", "application/zip", &zip).expect(504, "deadline_passed");
    let one = Instant::now();
    let small = png(S, S, 1);
    while server.post("/v1/assign", "image/png", &small).status != 200 {
        assert!(one.elapsed() < LONG, "the service is still busy");
        std::thread::sleep(Duration::from_millis(10));
    }
    wait_until("nothing of it waits", || server.metric("dtkc_queue_images{model=\"small\"}") == 0.0);
    let done = server.metric("dtkc_images_total{model=\"small\"}");
    assert!(done < 500.0, "{done} images after {:?}", started.elapsed());
}

#[test]
fn what_a_client_wrote_is_not_sent_back_whole() {
    let server = Server::start(&[]);
    let long = "x".repeat(5 << 20);
    let bodies = [
        format!("{{\"{long}\": 1}}"),
        format!("{{\"images\": [{{\"{long}\": 1}}]}}"),
        format!("{{\"images\": [], \"top_k\": \"{long}\"}}"),
    ];
    for body in &bodies {
        let answer = server.post("/v1/assign", "application/json", body.as_bytes()).expect(400, "bad_json");
        assert!(answer.body.len() < 600, "{} bytes", answer.body.len());
    }
    let input = |name: &str, datatype: &str| json!({"name": name, "datatype": datatype, "shape": [1, SIDE, SIDE, 1]});
    for body in [
        json!({"inputs": [input(&long, "UINT8")]}),
        json!({"inputs": [input("image", &long)]}),
        json!({"inputs": [input("image", "UINT8")], "id": long}),
        json!({"inputs": long}),
        json!({"inputs": [], "outputs": [{"name": long}]}),
    ] {
        let answer = server.post("/v2/models/small/infer", "application/json", body.to_string().as_bytes());
        assert_eq!(answer.status, 400);
        assert!(answer.body.len() < 600, "{} bytes", answer.body.len());
    }
    // A name is repeated, but not without end.
    let named = json!({"images": [{"name": long, "data": ""}]}).to_string();
    let json = server.post("/v1/assign", "application/json", named.as_bytes()).json();
    assert_eq!(json["images"][0]["name"].as_str().unwrap().len(), 1000);
    for (header, value) in [("content-type", &long[..30_000]), ("content-encoding", &long[..30_000])] {
        let mut headers = vec![("content-type", "image/png"), (header, value)];
        headers.dedup_by(|b, a| {
            a.0 == b.0 && {
                *a = *b;
                true
            }
        });
        let answer = server.post_with("/v1/assign", &headers, b"x");
        assert!(answer.status == 415 && answer.body.len() < 700, "{}", answer.text());
    }
    let query = server.post(&format!("/v1/assign?{}=1", &long[..20_000]), "image/png", b"x").expect(400, "bad_query");
    assert!(query.body.len() < 600, "{} bytes", query.body.len());
}

#[test]
fn options_may_be_fields_of_the_form() {
    let server = Server::start(&[]);
    let image = png(S, S, 1);
    let form = |fields: &[(&str, &str)]| {
        let (content_type, file) = multipart(&[("a.png", &image)]);
        let mut body = Vec::new();
        for (name, value) in fields {
            write!(body, "--edge\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").unwrap();
        }
        body.extend(file);
        server.post("/v1/assign?top_k=1", &content_type, &body)
    };
    let json = form(&[("top_k", "3"), ("embedding", "true")]).json();
    assert_eq!((json["images"].as_array().unwrap().len(), json["failed"].as_u64()), (1, Some(0)), "{json}");
    assert_eq!(json["images"][0]["top"].as_array().unwrap().len(), 3);
    assert!(json["images"][0]["embedding"].is_array());
    assert_eq!(form(&[]).json()["images"][0]["top"].as_array().unwrap().len(), 1);
    let answer = form(&[("top_k", "many")]).expect(400, "bad_query");
    assert!(answer.text().contains("whole number"), "{}", answer.text());
    form(&[("top_k", "10001")]).expect(400, "bad_query");
}

/// One name in Latin-1, or with a control byte, refused the whole form.
#[test]
fn file_names_in_every_spelling() {
    let server = Server::start(&[]);
    let image = png(S, S, 1);
    let mut body = Vec::new();
    let headers: [&[u8]; 6] = [
        b"form-data; name=\"image\"; filename=\"one.png\"",
        b"form-data; name=\"image\"; filename=\"\xe4\xf6.png\"",
        b"form-data; name=\"image\"; filename=\"x.png\"; filename*=UTF-8''%E2%82%AC%20rates.png",
        b"form-data; name=\"\xff\"; filename=\"four.png\"",
        b"form-data; name=\"im\x00age\"; filename=\"a\x1b[1m\x7f.png\"",
        b"attachment",
    ];
    for header in headers {
        body.extend([b"--edge\r\ncontent-disposition: ", header, b"\r\n\r\n", &image, b"\r\n"].concat());
    }
    body.extend(b"--edge--\r\n");
    let answer = server.post("/v1/assign", "multipart/form-data; boundary=edge", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let names: Vec<&str> =
        json["images"].as_array().unwrap().iter().map(|image| image["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one.png", "\u{fffd}\u{fffd}.png", "€ rates.png", "four.png", "a\u{fffd}[1m\u{fffd}.png", "5"]);
    assert_eq!(json["failed"], 0);
}

/// The sentence ended in "completing: None".
#[test]
fn a_body_that_ends_early_is_told_in_words() {
    let server = Server::start(&[]);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/png\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n").unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.contains("broken_body") && !text.contains("None") && !text.contains("Some("), "{text}");
    server.assert_alive();
}
