//! What a client cannot do.

use std::io::{Read, Write};
use std::net::TcpStream;

use dtkc_testing::{LONG, wait_until};
use prost::Message;

use crate::client::{Channel, framed};
use crate::common::{SIDE, Server, pixels};
use crate::messages::*;
use crate::{infer, small, start};

#[test]
fn the_guards_are_those_of_http() {
    let (server, mut channel) = start(&["--api-key", "secret", "--wrong-key-limit", "3/h"]);
    let methods = [
        "ModelReady",
        "ServerMetadata",
        "ModelMetadata",
        "ModelInfer",
        "RepositoryIndex",
        "RepositoryModelLoad",
        "RepositoryModelUnload",
        "NoSuchMethod",
        "/other.Service/Method",
    ];
    for method in methods {
        channel.call(method, &small()).expect(16, "key_missing");
    }
    for key in [("authorization", "Bearer secret"), ("x-api-key", "secret")] {
        channel.call_with("ModelMetadata", &small(), &[key]).message::<ModelMetadata>();
    }
    for (name, value) in [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")] {
        let headers = [("x-api-key", "secret"), (name, value)];
        channel.call_with("ModelMetadata", &small(), &headers).expect(7, "cross_site");
    }
    let mut other = Channel::open(server.grpc.unwrap()).authority("evil.example");
    other.call_with("ModelMetadata", &small(), &[("x-api-key", "secret")]).expect(7, "wrong_host");
    for _ in 0..4 {
        channel.call_with("ModelMetadata", &small(), &[("x-api-key", "guess")]).expect(16, "key_wrong");
    }
    // Neither port listens to that address now.
    channel.call_with("ModelMetadata", &small(), &[("x-api-key", "secret")]).expect(8, "too_many_wrong_keys");
    server.get_with("/v1/models", &[("x-api-key", "secret")]).expect(429, "too_many_wrong_keys");
    assert!(channel.call("ServerLive", &Nothing {}).message::<Yes>().yes, "health checks are open");
}

#[test]
fn both_ports_count_for_one_limit() {
    let (server, mut channel) = start(&["--rate-limit", "2/h"]);
    assert_eq!(server.get("/v1/models").status, 200);
    channel.call("ModelMetadata", &small()).message::<ModelMetadata>();
    let refused = channel.call("ModelMetadata", &small());
    refused.expect(8, "rate_limited");
    assert!(refused.head.contains_key("retry-after"));
    server.get("/v1/models").expect(429, "rate_limited");
    assert!(server.metric("dtkc_errors_total{code=\"rate_limited\"}") >= 2.0);
}

/// Two bytes of a message can stand for an entry in a list.
#[test]
fn small_messages_that_ask_for_much_cost_little() {
    let (server, mut channel) = start(&["--max-body", "32MiB"]);
    let before = peak(&server);
    // The rest is only read for a model that there is.
    let named = small().encode_to_vec();
    for field in [5, 6, 7, 4] {
        let many = [&named[..], &[field << 3 | 2, 0].repeat(4 << 20)].concat();
        channel.raw("ModelInfer", &[], &framed(&many), true).unwrap().expect(3, "bad_tensor");
    }
    let mut tensor = [&named[..], &[5 << 3 | 2]].concat();
    prost::encode_length_delimiter(8 << 20, &mut tensor).unwrap();
    tensor.extend([3 << 3, 1].repeat(4 << 20));
    let reply = channel.raw("ModelInfer", &[], &framed(&tensor), true).unwrap();
    reply.expect(3, "bad_tensor");
    // The message itself of 8 MiB, a few times while it grows and is read; lists would take hundreds.
    let more = peak(&server) - before;
    assert!(more < 90, "{more} MiB");
    wait_until("all memory is given back", || server.metric("dtkc_buffered_bytes") == 0.0);
}

/// The most memory that the server has had at one time, in MiB; always the same where the system does not tell.
fn peak(server: &Server) -> u64 {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())) else { return 0 };
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn bodies_have_limits_and_so_has_all_that_is_held() {
    let (server, mut channel) = start(&["--max-body", "64KiB", "--max-buffered", "128KiB", "--max-images", "600"]);
    let announced = [&[0], &(1u32 << 30).to_be_bytes()[..]].concat();
    channel.raw("ModelInfer", &[], &announced, false).unwrap().expect(8, "body_too_large");
    let long = ModelRequest { name: "x".repeat(70_000), version: String::new() };
    channel.call("ModelMetadata", &long).expect(8, "body_too_large");
    let many: Vec<u8> = (0..60_000 / (SIDE * SIDE)).flat_map(|_| pixels(1)).collect();
    channel.call("ModelInfer", &infer(&many)).expect(8, "answer_too_large");
    assert_eq!(server.metric("dtkc_images_total{model=\"small\"}"), 0.0);
    wait_until("all memory is given back", || server.metric("dtkc_buffered_bytes") == 0.0);
    channel.call("ModelInfer", &infer(&pixels(1))).message::<InferAnswer>();
}

#[test]
fn every_wait_has_an_end() {
    let (server, mut channel) = start(&["--request-timeout", "1s"]);
    let begun = &framed(&infer(&pixels(1)).encode_to_vec())[..20];
    channel.raw("ModelInfer", &[], begun, false).unwrap().expect(4, "slow_body");
    let in_time = channel.raw("ModelInfer", &[("grpc-timeout", "1n")], begun, false).unwrap();
    in_time.expect(4, "slow_body");
    wait_until("all memory is given back", || server.metric("dtkc_buffered_bytes") == 0.0);
    // Whoever says nothing, or something else, is cut off.
    let mut silent = TcpStream::connect(server.grpc.unwrap()).unwrap();
    let mut strange = TcpStream::connect(server.grpc.unwrap()).unwrap();
    strange.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    for stream in [&mut silent, &mut strange] {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(ended.is_ok() || ended.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    }
    assert!(channel.call("ServerLive", &Nothing {}).message::<Yes>().yes);
}

#[test]
fn connections_of_both_ports_are_counted_together() {
    let server = Server::start(&["--grpc-port", "0", "--max-client-connections", "3", "--request-timeout", "1h"]);
    let address = server.grpc.unwrap();
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head =
            "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/png\r\ncontent-length: 9\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        held.push(stream);
    }
    let live = || Some(Channel::try_open(address).ok()?.raw("ServerLive", &[], &framed(b""), true).ok()?.status);
    wait_until("a fourth connection is closed", || live().is_none());
    drop(held);
    wait_until("there is room again", || live() == Some(0));
}

#[test]
fn beyond_the_limit_health_checks_are_answered_and_nothing_else() {
    let server = Server::start(&["--grpc-port", "0", "--max-connections", "2", "--request-timeout", "1h"]);
    let mut held: Vec<Channel> = (0..2).map(|_| Channel::open(server.grpc.unwrap())).collect();
    for channel in &mut held {
        channel.call("ModelMetadata", &small()).message::<ModelMetadata>();
    }
    let mut spare = Channel::open(server.grpc.unwrap());
    assert!(spare.call("ServerReady", &Nothing {}).message::<Yes>().yes);
    spare.call("ModelMetadata", &small()).expect(14, "crowded");
}

#[test]
fn an_open_connection_does_not_keep_the_service_from_ending() {
    let (mut server, mut channel) = start(&["--drain", "0s"]);
    channel.call("ModelInfer", &infer(&pixels(1))).message::<InferAnswer>();
    server.signal("TERM");
    // The client reads and answers what the connection says.
    wait_until("no call is taken any more", || channel.raw("ServerLive", &[], &framed(b""), true).is_err());
    assert_eq!(server.wait(), 0);
}

/// An answer that nobody reads is given up, and its memory with it.
#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let (server, mut channel) = start(&["--request-timeout", "3s"]);
    let many: Vec<u8> = (0..1000).flat_map(|n| pixels(n % 7)).collect();
    let response = channel.begin("ModelInfer", &infer(&many));
    let unread = channel.head(response);
    // What it may not send yet, because the client has taken nothing.
    wait_until("the answer waits", || server.metric("dtkc_buffered_bytes") > 0.0);
    wait_until("all memory is given back", || server.metric("dtkc_buffered_bytes") == 0.0);
    // What it holds back holds back the whole connection.
    drop(unread);
    channel.call("ModelInfer", &infer(&pixels(1))).message::<InferAnswer>();
}

#[test]
fn work_ends_with_the_client_that_asked_for_it() {
    // A worker waits so long for a fuller batch.
    let (server, mut channel) = start(&["--max-batch", "64", "--max-wait-ms", "10000", "--request-timeout", "1h"]);
    let waiting = |count: f64| server.metric("dtkc_queue_images{model=\"small\"}") == count;
    for gone in 1..=2 {
        let response = channel.begin("ModelInfer", &infer(&pixels(1)));
        wait_until("it waits", || {
            channel.turn();
            waiting(1.0)
        });
        // The call alone, then the whole connection.
        drop(response);
        if gone == 2 {
            channel = Channel::open(server.grpc.unwrap());
        }
        let counted = format!("dtkc_errors_total{{code=\"client_gone\"}} {gone}\n");
        wait_until("nobody waits any more", || {
            channel.turn();
            waiting(0.0) && server.get("/metrics").text().contains(&counted)
        });
    }
}
