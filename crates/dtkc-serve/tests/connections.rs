//! Many, slow and broken connections.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use common::{SIDE, Server, multipart, png};
use dtkc_testing::{LONG, wait_until};

const S: u32 = SIDE as u32;

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Everything that comes until the server closes; an error where it does not in time.
fn rest(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => Err(error),
        _ => Ok(String::from_utf8_lossy(&text).into_owned()),
    }
}

fn ask(server: &Server, path: &str) -> String {
    let mut stream = connect(server);
    let sent =
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes());
    if sent.is_err() {
        return String::new();
    }
    rest(&mut stream).unwrap()
}

/// A request whose body does not come: its connection lasts as long as [`PATIENT`] says, however slow the machine is.
fn hold(server: &Server) -> TcpStream {
    let mut stream = connect(server);
    let head = "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/png\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

const PATIENT: [&str; 2] = ["--request-timeout", "1h"];

#[test]
fn one_client_cannot_take_all_connections() {
    let server = Server::start(&[&["--max-client-connections", "6"], &PATIENT[..]].concat());
    let held: Vec<TcpStream> = (0..6).map(|_| hold(&server)).collect();
    wait_until("a seventh connection is closed", || ask(&server, "/healthz").is_empty());
    drop(held);
    wait_until("there is room again", || ask(&server, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(server.metric("dtkc_connections_refused_total{limit=\"client\"}") >= 1.0);
}

#[test]
fn beyond_the_limit_health_checks_are_answered_and_nothing_else() {
    let server = Server::start(&[&["--max-connections", "4"], &PATIENT[..]].concat());
    let mut held: Vec<TcpStream> = (0..4).map(|_| hold(&server)).collect();
    wait_until("it is crowded", || ask(&server, "/v1/models").contains("\"crowded\""));
    let answer = ask(&server, "/v1/models");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 5"), "{answer}");
    for path in ["/healthz", "/readyz", "/metrics", "/v2/health/ready"] {
        assert!(ask(&server, path).starts_with("HTTP/1.1 200"), "{path}");
    }
    held.pop();
    wait_until("there is room again", || ask(&server, "/v1/models").starts_with("HTTP/1.1 200"));
}

/// A body that never ends keeps no connection, whatever was answered: the library would read it for ever.
#[test]
fn a_body_that_never_ends_does_not_keep_its_connection() {
    let server = Server::start(&["--api-key", "secret", "--request-timeout", "1s"]);
    let chunked = "host: localhost\r\ntransfer-encoding: chunked\r\n";
    let with_key = "x-api-key: secret\r\ncontent-type: image/png\r\n";
    let json = "x-api-key: secret\r\ncontent-type: application/json\r\n";
    let cases = [
        ("POST /v1/assign", "", "401"),
        ("GET /healthz", "", "200"),
        ("POST /made/up", with_key, "404"),
        ("POST /v1/assign", with_key, "408"),
        ("POST /v1/assign", "x-api-key: secret\r\ncontent-type: text/plain\r\n", "415"),
        ("PUT /v1/models/small/clusters/0", json, "408"),
        ("POST /v2/models/small/infer", json, "408"),
    ];
    let try_one = |(first, headers, status): (&str, &str, &str)| {
        let mut stream = connect(&server);
        stream.write_all(format!("{first} HTTP/1.1\r\n{chunked}{headers}\r\n5\r\nhello\r\n").as_bytes()).unwrap();
        let text = rest(&mut stream).unwrap_or_else(|error| panic!("{first} {status}: still open: {error}"));
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{first}: {text}");
    };
    // Each waits for its end, so all wait together.
    std::thread::scope(|scope| cases.into_iter().for_each(|case| drop(scope.spawn(move || try_one(case)))));
}

#[test]
fn a_client_may_close_its_side_and_wait_for_the_answer() {
    let server = Server::start(&[]);
    let image = png(S, S, 1);
    let files: Vec<(String, &[u8])> = (0..200).map(|i| (format!("{i}.png"), &image[..])).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect();
    let (content_type, body) = multipart(&files);
    let request = |more: &str| {
        let length = body.len();
        let head = "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\n";
        let head = format!("{head}content-type: {content_type}\r\ncontent-length: {length}\r\n{more}\r\n");
        [head.as_bytes(), &body].concat()
    };
    // Also after a second request on the same connection.
    let mut stream = connect(&server);
    stream.write_all(&request("")).unwrap();
    stream.write_all(&request("connection: close\r\n")).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let text = rest(&mut stream).unwrap().replace("HTTP/1.1 100 Continue\r\n\r\n", "");
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert_eq!(text.matches("\"cluster\":").count(), 400);
}

#[test]
fn what_is_no_request_gets_a_sentence_too() {
    let server = Server::start(&[]);
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "x".repeat(300_000));
    for (sent, status, code) in [
        (&b"nonsense\r\n\r\n"[..], 400, "not_http"),
        (b"GET / HTTP/9.9\r\n\r\n", 400, "not_http"),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", 400, "not_http"),
        (long.as_bytes(), 431, "head_too_large"),
    ] {
        let mut stream = connect(&server);
        // The answer may come, and the connection end, before all was sent.
        let _ = stream.write_all(sent);
        let text = rest(&mut stream).unwrap();
        if text.is_empty() && status == 431 {
            continue; // Closed while data was still on its way: the system threw the answer away.
        }
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")) && head.contains("x-request-id: "), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["code"], code);
    }
}

#[test]
fn requests_right_after_a_stop_are_still_answered() {
    let mut server = Server::start(&["--drain", "1h"]);
    server.signal("TERM");
    wait_until("it says that it is stopping", || server.get("/readyz").status == 503);
    server.assert_alive();
    assert!(ask(&server, "/v1/models").starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    assert_eq!(server.wait(), 0);
}
