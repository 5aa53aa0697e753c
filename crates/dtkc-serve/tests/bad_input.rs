//! Everything that can be wrong with a request gets an answer that says so, and nobody else notices.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{SIDE, Server, multipart, png, zip_of};
use dtkc_testing::{LONG, wait_for};
use serde_json::json;

const S: u32 = SIDE as u32;

#[test]
fn an_empty_body() {
    let server = Server::start(&[]);
    server.post("/v1/assign", "image/png", b"").expect(400, "empty_body");
    server.post("/v1/assign", "application/json", b"").expect(400, "empty_body");
    server.post("/v1/assign", "application/zip", b"").expect(400, "empty_body");
    server.post("/v1/assign", "multipart/form-data; boundary=edge", b"").expect(400, "bad_multipart");
    server.post("/v1/assign", "multipart/form-data; boundary=edge", b"--edge--\r\n").expect(422, "no_images");
    server.post("/v1/assign", "application/json", b"{\"images\": []}").expect(422, "no_images");
    let empty_file = server.assign(&[("empty.png", b"")]).json();
    assert_eq!(empty_file["images"][0]["code"], "empty");
    server.assert_alive();
}

#[test]
fn a_wrong_content_type() {
    let server = Server::start(&[]);
    for content_type in
        ["text/plain", "application/x-www-form-urlencoded", "nonsense", "video/mp4", "multipart/form-data"]
    {
        let answer = server.post("/v1/assign", content_type, &png(S, S, 1));
        let expected =
            if content_type.starts_with("multipart") { (400, "bad_multipart") } else { (415, "unsupported_type") };
        let answer = answer.expect(expected.0, expected.1);
        if expected.0 == 415 {
            assert!(
                answer.text().contains(content_type) && answer.text().contains("-F image=@file"),
                "{}",
                answer.text()
            );
        }
    }
    let none =
        server.raw(b"POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc");
    assert!(none.starts_with("HTTP/1.1 415") && none.contains("(none)"), "{none}");
    server.assert_alive();
}

#[test]
fn a_multipart_cut_short() {
    let server = Server::start(&[]);
    let (content_type, body) = multipart(&[("a.png", &png(S, S, 1)), ("b.png", &png(S, S, 2))]);
    for keep in [5, 30, 90, body.len() / 2, body.len() - 12] {
        server.post("/v1/assign", &content_type, &body[..keep]).expect(400, "bad_multipart");
    }
    // The client promises more than it sends and leaves.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(
        stream,
        "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(&body[..body.len() / 2]).unwrap();
    drop(stream);
    server.assert_alive();
}

#[test]
fn ten_thousand_tiny_parts() {
    let server = Server::start(&[]);
    let files: Vec<(&str, &[u8])> = vec![("x.png", b"x"); 10_000];
    let answer = server.assign(&files).expect(413, "too_many_images");
    assert!(answer.text().contains("1000 items"), "{}", answer.text());
    let json = json!({"images": vec!["AAAA"; 10_000]}).to_string();
    server.post("/v1/assign", "application/json", json.as_bytes()).expect(413, "too_many_images");
    let names: Vec<String> = (0..10_000).map(|n| format!("{n}.png")).collect();
    let zip = zip_of(&names.iter().map(|n| (n.as_str(), &b"x"[..])).collect::<Vec<_>>());
    server.post("/v1/assign", "application/zip", &zip).expect(413, "too_many_images");
    server.assert_alive();
}

/// A PNG whose header promises `width` x `height` pixels; the data behind it are zeros.
fn png_bomb(width: u32, height: u32) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(data);
        [&(data.len() as u32).to_be_bytes()[..], kind, data, &crc.sum().to_be_bytes()].concat()
    };
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    let mut zeros = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let line = vec![0; width as usize + 1];
    for _ in 0..height.min(1000) {
        zeros.write_all(&line).unwrap();
    }
    let data = zeros.finish().unwrap();
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &head), chunk(b"IDAT", &data), chunk(b"IEND", b"")].concat()
}

#[test]
fn a_png_bomb_and_an_image_of_20000_x_20000() {
    let server = Server::start(&[]);
    for (width, height) in [(20_000, 20_000), (65_000, 65_000), (1, 2_000_000_000)] {
        let bomb = png_bomb(width, height);
        let answer = server.post("/v1/assign", "image/png", &bomb).expect(413, "too_large");
        assert!(answer.text().contains(&format!("{width}x{height}")), "{}", answer.text());
        let images = server.assign(&[("bomb.png", &bomb), ("good.png", &png(S, S, 1))]).json();
        assert_eq!(images["images"][0]["code"], "too_large");
        assert!(images["images"][1]["cluster"].is_number());
    }
    let memory = server.metric("process_resident_memory_bytes");
    assert!(memory < 400e6, "{memory} bytes are held");
}

#[test]
fn a_pixel_limit_of_ones_own() {
    let server = Server::start(&["--max-image-pixels", "10000"]);
    assert_eq!(server.post("/v1/assign", "image/png", &png(100, 100, 1)).status, 200);
    server.post("/v1/assign", "image/png", &png(101, 100, 1)).expect(413, "too_large");
}

#[test]
fn a_zip_bomb() {
    let server = Server::start(&["--max-body", "1MiB"]);
    let zeros = vec![0; 3 << 20];
    let one = zip_of(&[("bomb.png", &zeros), ("good.png", &png(S, S, 1))]);
    let images = server.post("/v1/assign", "application/zip", &one).json();
    assert_eq!(images["images"][0]["code"], "too_large", "{images}");
    assert!(images["images"][1]["cluster"].is_number());
    let zeros = &zeros[..900 << 10];
    let names: Vec<String> = (0..50).map(|n| format!("{n}.png")).collect();
    let many = zip_of(&names.iter().map(|n| (n.as_str(), zeros)).collect::<Vec<_>>());
    server.post("/v1/assign", "application/zip", &many).expect(413, "unpacked_too_large");
    for broken in [&b"PK\x03\x04 and nothing more"[..], &one[..one.len() / 2]] {
        server.post("/v1/assign", "application/zip", broken).expect(422, "bad_zip");
    }
    server.post("/v1/assign", "application/zip", &zip_of(&[("readme.txt", b"x")])).expect(422, "no_images");
    server.assert_alive();
}

/// A file without extension was tried whatever its content, a hidden folder was not seen, and nothing was told.
#[test]
fn a_zip_with_other_files() {
    let server = Server::start(&[]);
    let image = png(S, S, 1);
    let zip = zip_of(&[
        ("10.png", &image[..]),
        ("9.png", &image),
        ("photo", &image),
        ("LICENSE", b"free"),
        ("notes.txt", b"x"),
        (".cache/1.png", &image),
    ]);
    let json = server.post("/v1/assign", "application/zip", &zip).json();
    let names: Vec<&str> = json["images"].as_array().unwrap().iter().map(|i| i["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["9.png", "10.png", "photo"]);
    assert_eq!((&json["failed"], &json["passed_over"]["count"]), (&0.into(), &3.into()));
    let files = json["passed_over"]["files"].as_array().unwrap();
    assert!(files.contains(&json!({"name": "LICENSE", "code": "other_content"})), "{files:?}");
    let (content_type, body) = multipart(&[("all.zip", &zip), ("one", &image)]);
    let json = server.post("/v1/assign", &content_type, &body).json();
    assert_eq!(json["images"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["passed_over"]["count"], 3);
}

#[test]
fn a_zip_with_absolute_paths() {
    let server = Server::start(&[]);
    let image = png(S, S, 1);
    let zip = zip_of(&[("/etc/cron.d/a.png", &image), ("../../../tmp/b.png", &image)]);
    let json = server.post("/v1/assign", "application/zip", &zip).json();
    assert_eq!(json["images"][0]["name"], "etc/cron.d/a.png");
    assert_eq!(json["images"][1]["name"], "tmp/b.png");
    assert_eq!(json["failed"], 0);
    let left: Vec<_> = std::fs::read_dir(server.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["small.onnx"], "nothing is unpacked to the disk");
}

#[test]
fn an_image_of_one_pixel() {
    let server = Server::start(&[]);
    let answer = server.post("/v1/assign", "image/png", &png(1, 1, 1));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.json()["images"][0]["cluster"].is_number());
}

#[test]
fn invalid_base64_and_invalid_json() {
    let server = Server::start(&[]);
    let good = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, png(S, S, 1));
    let body = json!({"images": ["!!! not base64", good]}).to_string();
    let json = server.post("/v1/assign", "application/json", body.as_bytes()).json();
    assert_eq!((json["images"][0]["code"].as_str(), json["failed"].as_u64()), (Some("bad_base64"), Some(1)));
    for body in
        ["", "{", "[]", "{}", "{\"images\": \"x\"}", "{\"images\": [1]}", "{\"images\": [], \"topk\": 1}", "\u{0}"]
    {
        let answer = server.post("/v1/assign", "application/json", body.as_bytes());
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        answer.code();
    }
    for query in ["top_k=-1", "top_k=10001", "top_k=many", "embedding=maybe", "topk=3"] {
        server.post(&format!("/v1/assign?{query}"), "image/png", &png(S, S, 1)).expect(400, "bad_query");
    }
}

#[test]
fn a_body_that_is_too_large() {
    let server = Server::start(&["--max-body", "10KiB"]);
    server.post("/v1/assign", "image/png", &vec![0; 20 << 10]).expect(413, "body_too_large");
    // Without a length the limit is met on the way.
    let chunk = format!("{:x}\r\n{}\r\n", 4096, "0".repeat(4096)).repeat(4);
    let head = "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/png\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let text = server.raw(format!("{head}{chunk}0\r\n\r\n").as_bytes());
    assert!(text.starts_with("HTTP/1.1 413") && text.contains("body_too_large"), "{text}");
    server.assert_alive();
}

/// What a slow client has been answered so far, if anything.
fn answered(stream: &mut TcpStream) -> Option<String> {
    let mut text = [0; 512];
    let read = stream.read(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text[..read]).into_owned())
}

#[test]
fn a_client_that_sends_a_byte_a_second_blocks_nobody() {
    // Long enough that the others are answered in time on any machine.
    let server = Server::start(&["--request-timeout", "10s"]);
    let mut slow: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for stream in &mut slow {
        stream
            .write_all(
                b"POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/png\r\ncontent-length: 1000\r\n\r\n",
            )
            .unwrap();
    }
    for _ in 0..3 {
        for stream in &mut slow {
            let _ = stream.write_all(b"x");
        }
        server.assert_alive();
        std::thread::sleep(Duration::from_secs(1));
    }
    for mut stream in slow {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let text = answered(&mut stream).unwrap();
        assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    }
    assert_eq!(server.metric("dtkc_errors_total{code=\"slow_body\"}"), 20.0);
}

#[test]
fn a_client_that_sends_its_head_a_byte_a_second_blocks_nobody() {
    let server = Server::start(&[]);
    let mut slow = TcpStream::connect(server.address()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let text = wait_for("the service has had enough", || {
        let _ = slow.write_all(b"G");
        server.assert_alive();
        answered(&mut slow)
    });
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
}

#[test]
fn unknown_paths_models_and_methods() {
    let server = Server::start(&[]);
    server.get("/v1/models/none").expect(404, "unknown_model");
    server.post("/v1/models/none/assign", "image/png", b"x").expect(404, "unknown_model");
    server.get("/v1/nothing").expect(404, "not_found");
    server.get("/v1/models/..%2f..%2fetc%2fpasswd").expect(404, "unknown_model");
    let answer = server.get("/v1/assign").expect(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "POST");
    let answer = server.put("/v1/models", &[], b"x").expect(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "GET, HEAD");
}

#[test]
fn a_broken_image_alone_is_422() {
    let server = Server::start(&[]);
    server.post("/v1/assign", "image/png", b"this is no image").expect(422, "not_an_image");
    server.post("/v1/assign", "image/png", &png(300, 300, 1)[..500]).expect(422, "truncated");
    server.post("/v1/assign", "application/octet-stream", b"GIF89a").code();
    server.assert_alive();
}

#[test]
fn nonsense_instead_of_http_is_survived() {
    let server = Server::start(&[]);
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01"[..], b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n\r\n", &[0; 5000]]
    {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let _ = stream.write_all(bytes);
    }
    let huge = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let _ = stream.write_all(huge.as_bytes());
    server.assert_alive();
}
