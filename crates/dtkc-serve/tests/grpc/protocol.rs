//! What is asked and answered.

use dtkc_testing::wait_until;
use prost::Message;

use crate::client::{Channel, framed};
use crate::common::{EMBEDDING, K, SIDE, Server, pixels, reference};
use crate::messages::*;
use crate::{image, infer, small, start};

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
    let contents = Contents { uint: three.iter().map(|&pixel| pixel.into()).collect(), ..Contents::default() };
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
    let numbers = |uint: Vec<u32>, fp32: Vec<f32>| Some(Contents { uint, fp32, ..Contents::default() });
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
fn it_is_encrypted_with_the_certificate_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let files = [cert.to_str().unwrap(), key.to_str().unwrap()];
    let server = Server::start(&["--grpc-port", "0", "--tls-cert", files[0], "--tls-key", files[1]]);
    let address = server.grpc.unwrap();
    let mut channel = Channel::encrypted(address, made.cert.der().clone()).unwrap();
    channel.call("ModelInfer", &infer(&pixels(1))).message::<InferAnswer>();
    let plain = Channel::try_open(address).and_then(|mut plain| plain.raw("ServerLive", &[], &framed(b""), true));
    assert!(plain.is_err(), "{plain:?}");
}
