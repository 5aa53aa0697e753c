//! The inference protocol over gRPC: the same answers as over HTTP, behind the same guards.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/grpc.rs"]
mod grpc;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::{EMBEDDING, K, SIDE, Server, pixels, reference};
use dtkc_testing::{LONG, wait_until};
use grpc::*;
use prost::Message;

fn start(args: &[&str]) -> (Server, Channel) {
    let server = Server::start(&[&["--grpc-port", "0"], args].concat());
    let channel = Channel::open(server.grpc.unwrap());
    (server, channel)
}

fn small() -> ModelRequest {
    ModelRequest { name: "small".into(), version: String::new() }
}

fn image(count: usize) -> Tensor {
    let shape = vec![count as i64, SIDE as i64, SIDE as i64, 1];
    Tensor { name: "image".into(), datatype: "UINT8".into(), shape, ..Tensor::default() }
}

/// A request with raw pixels.
fn infer(pixels: &[u8]) -> InferRequest {
    let inputs = vec![image(pixels.len() / (SIDE * SIDE))];
    InferRequest { model_name: "small".into(), id: "7".into(), inputs, raw: vec![pixels.into()], ..Default::default() }
}

fn floats(raw: &[u8]) -> Vec<f32> {
    raw.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn the_server_and_the_model_describe_themselves() {
    let (_server, mut channel) = start(&[]);
    assert!(channel.call("ServerLive", &Nothing {}).message::<Yes>().yes);
    assert!(channel.call("ServerReady", &Nothing {}).message::<Yes>().yes);
    let server: ServerMetadata = channel.call("ServerMetadata", &Nothing {}).message();
    assert_eq!((server.name.as_str(), server.extensions), ("dtkc-serve", vec!["model_repository".to_owned()]));
    for version in ["", "1"] {
        let asked = ModelRequest { version: version.into(), ..small() };
        assert!(channel.call("ModelReady", &asked).message::<Yes>().yes);
        let model: ModelMetadata = channel.call("ModelMetadata", &asked).message();
        assert_eq!((model.name.as_str(), model.versions), ("small", vec!["1".to_owned()]));
        assert_eq!(model.inputs, [Tensor { shape: vec![-1, SIDE as i64, SIDE as i64, 1], ..image(1) }]);
        let outputs: Vec<_> = model.outputs.iter().map(|o| (&*o.name, &*o.datatype, o.shape.last().copied())).collect();
        let (k, e) = (K as i64, EMBEDDING as i64);
        let expected = [("cluster", "INT64", -1), ("probabilities", "FP32", k), ("embedding", "FP32", e)];
        assert_eq!(outputs, expected.map(|(name, kind, last)| (name, kind, Some(last))));
    }
    let none = ModelRequest { name: "none".into(), ..small() };
    assert!(!channel.call("ModelReady", &none).message::<Yes>().yes);
    channel.call("ModelMetadata", &none).expect(5, "unknown_model");
    let second = ModelRequest { version: "2".into(), ..small() };
    channel.call("ModelMetadata", &second).expect(5, "unknown_version");
    channel.call("NoSuchMethod", &Nothing {}).expect(12, "unknown_method");
}

#[test]
fn raw_contents_and_numbers_give_the_models_own_answer() {
    let (server, mut channel) = start(&["--max-batch", "2"]);
    let three: Vec<u8> = [pixels(1), pixels(2), pixels(3)].concat();
    let expected = reference(&server.model_path(), &three, 3);
    let raw = infer(&three);
    let contents = Contents { uint: three.iter().map(|&pixel| pixel.into()).collect(), fp32: vec![] };
    let numbers =
        InferRequest { inputs: vec![Tensor { contents: Some(contents), ..image(3) }], raw: vec![], ..raw.clone() };
    for request in [&raw, &numbers] {
        let answer: InferAnswer = channel.call("ModelInfer", request).message();
        assert_eq!((&*answer.model_name, &*answer.model_version, &*answer.id), ("small", "1", "7"));
        let shapes: Vec<_> = answer.outputs.iter().map(|output| (&*output.name, output.shape.clone())).collect();
        let (k, e) = (K as i64, EMBEDDING as i64);
        assert_eq!(shapes, [("cluster", vec![3]), ("probabilities", vec![3, k]), ("embedding", vec![3, e])]);
        let clusters: Vec<i64> =
            answer.raw[0].chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(clusters, expected.clusters.to_vec());
        let near = |raw: &[u8], expected: Vec<f32>| {
            let found = floats(raw);
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {expected:?}");
        };
        near(&answer.raw[1], expected.probabilities.iter().copied().collect());
        near(&answer.raw[2], expected.embedding.iter().copied().collect());
    }
    let one = InferRequest { outputs: vec![Wanted { name: "cluster".into(), parameters: vec![] }], ..raw };
    let answer: InferAnswer = channel.call("ModelInfer", &one).message();
    assert_eq!((answer.outputs.len(), answer.raw.len(), answer.raw[0].len()), (1, 1, 24));
}

/// More than the windows of a connection and of the client's buffers.
#[test]
fn large_messages_come_in_pieces_both_ways() {
    let (server, mut channel) = start(&["--max-images", "1000"]);
    let many: Vec<u8> = (0..1000).flat_map(|n| pixels(n % 7)).collect();
    let request = infer(&many);
    assert!(request.encoded_len() > 128 << 10);
    let answer = channel.call("ModelInfer", &request);
    assert!(answer.body.len() > 64 << 10, "{}", answer.body.len());
    let answer: InferAnswer = answer.message();
    let first = floats(&answer.raw[1][..4 * K]);
    assert_eq!(floats(&answer.raw[1][7 * 4 * K..8 * 4 * K]), first);
    wait_until("all memory is given back", || server.metric("dtkc_buffered_bytes") == 0.0);
}

#[test]
fn wrong_tensors_are_refused_one_by_one() {
    let (_server, mut channel) = start(&[]);
    let good = infer(&pixels(1));
    let with = |change: &dyn Fn(&mut InferRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    let parameter =
        |key: &str| vec![Parameter { key: key.into(), value: Some(ParameterValue { number: 3, text: "x".into() }) }];
    let numbers = |uint: Vec<u32>, fp32: Vec<f32>| Some(Contents { uint, fp32 });
    let wanted = |name: &str, parameters| Wanted { name: name.into(), parameters };
    let cases: Vec<InferRequest> = vec![
        with(&|r| r.inputs.clear()),
        with(&|r| r.inputs.push(image(1))),
        with(&|r| r.inputs[0].name = "picture".into()),
        with(&|r| r.inputs[0].datatype = "FP32".into()),
        with(&|r| r.inputs[0].shape = vec![2, SIDE as i64, SIDE as i64, 1]),
        with(&|r| r.inputs[0].shape = vec![-1, SIDE as i64, SIDE as i64, 1]),
        with(&|r| r.inputs[0].shape = vec![1; 5]),
        with(&|r| r.inputs[0].parameters = parameter("shared_memory_region")),
        with(&|r| r.inputs[0].contents = numbers(vec![1], vec![])),
        with(&|r| r.raw.push(vec![])),
        with(&|r| r.raw[0].truncate(9)),
        with(&|r| r.raw.clear()),
        with(&|r| (r.raw, r.inputs[0].contents) = (vec![], numbers(vec![256; SIDE * SIDE], vec![]))),
        with(&|r| (r.raw, r.inputs[0].contents) = (vec![], numbers(vec![], vec![0.5; SIDE * SIDE]))),
        with(&|r| r.outputs = vec![wanted("nothing", vec![])]),
        with(&|r| r.outputs = vec![wanted("cluster", vec![]); 2]),
        with(&|r| r.outputs = vec![wanted("cluster", vec![]); 4]),
        with(&|r| r.outputs = vec![wanted("cluster", parameter("classification"))]),
        with(&|r| r.id = "x".repeat(1001)),
    ];
    for case in cases {
        channel.call("ModelInfer", &case).expect(3, "bad_tensor");
    }
    let broken = |channel: &mut Channel, bytes: &[u8]| channel.raw("ModelInfer", &[], bytes, true).unwrap();
    broken(&mut channel, &framed(b"\x0a\xff")).expect(3, "bad_tensor");
    broken(&mut channel, &framed(b"\x0a\x02\xff\xff")).expect(3, "bad_tensor");
    broken(&mut channel, &[0, 0, 0, 0, 9, 1]).expect(3, "broken_body");
    broken(&mut channel, &[]).expect(3, "broken_body");
    broken(&mut channel, &[framed(b"").as_slice(), &framed(b"")].concat()).expect(3, "broken_body");
    broken(&mut channel, &[1, 0, 0, 0, 0]).expect(12, "unsupported_encoding");
    let page = channel.raw("ServerLive", &[("content-type", "text/plain")], b"", true).unwrap();
    assert_eq!((page.http, page.status), (415, -1));
    channel.call("ModelInfer", &good).message::<InferAnswer>();
}

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
    for field in [5, 6, 7, 4] {
        let many = [field << 3 | 2, 0].repeat(4 << 20);
        let reply = channel.raw("ModelInfer", &[], &framed(&many), true).unwrap();
        assert!([3, 5].contains(&reply.status), "{reply:?}");
    }
    let mut tensor = vec![5 << 3 | 2];
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
fn models_are_listed_unloaded_and_loaded_again() {
    let (_server, mut channel) = start(&[]);
    let state = |channel: &mut Channel| {
        let Index { models } = channel.call("RepositoryIndex", &Nothing {}).message();
        (models.len(), models[0].name.clone(), models[0].state.clone())
    };
    assert_eq!(state(&mut channel), (1, "small".into(), "READY".into()));
    // As KServe names the model, and as Triton does.
    let triton = ModelRequest { name: "repository".into(), version: "small".into() };
    for request in [small(), triton] {
        assert_eq!(channel.call("RepositoryModelUnload", &request).status, 0);
        assert_eq!(state(&mut channel), (1, "small".into(), "UNAVAILABLE".into()));
        assert!(!channel.call("ModelReady", &small()).message::<Yes>().yes);
        channel.call("ModelInfer", &infer(&pixels(1))).expect(14, "unloaded");
        assert_eq!(channel.call("RepositoryModelLoad", &request).status, 0);
        channel.call("ModelInfer", &infer(&pixels(1))).message::<InferAnswer>();
    }
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
