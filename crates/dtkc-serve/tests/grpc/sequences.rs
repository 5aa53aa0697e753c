//! A model for sequences.

use dtkc_onnx::testing::{SequenceSample, forward_sequence};

use crate::client::Channel;
use crate::common::Server;
use crate::messages::*;
use crate::small;

const SAMPLE: SequenceSample = SequenceSample { dim: 2, stacked: 2, units: 6, hidden: 9, clusters: 4, seed: 5 };
const LENGTHS: [usize; 3] = [4, 1, 9];
const TIME: usize = 10;

fn start(flags: &[&str]) -> (Server, Channel) {
    let bytes = dtkc_onnx::write(&SAMPLE.network(), &SAMPLE.metadata(SAMPLE.hidden)).unwrap();
    let server = Server::with_model(&bytes, &[&["--grpc-port", "0"], flags].concat());
    let channel = Channel::open(server.grpc.unwrap());
    (server, channel)
}

fn tensors() -> Vec<Tensor> {
    let tensor = |name: &str, datatype: &str, shape: &[usize]| {
        let shape = shape.iter().map(|&size| size as i64).collect();
        Tensor { name: name.into(), datatype: datatype.into(), shape, ..Tensor::default() }
    };
    vec![tensor("values", "FP32", &[3, TIME, 2]), tensor("lengths", "INT64", &[3])]
}

fn values() -> Vec<f32> {
    let padded = |sequence: &Vec<f32>| {
        // Whatever stands behind a sequence is not looked at.
        let mut values = sequence.clone();
        values.resize(2 * TIME, 1e30);
        values
    };
    SAMPLE.sequences(&LENGTHS).iter().flat_map(padded).collect()
}

fn raw() -> InferRequest {
    let values = values().iter().flat_map(|value| value.to_le_bytes()).collect();
    let lengths = LENGTHS.iter().flat_map(|&length| (length as i64).to_le_bytes()).collect();
    InferRequest { model_name: "small".into(), inputs: tensors(), raw: vec![values, lengths], ..Default::default() }
}

fn listed() -> InferRequest {
    let mut request = InferRequest { raw: vec![], ..raw() };
    request.inputs[0].contents = Some(Contents { fp32: values(), ..Contents::default() });
    let int64 = LENGTHS.iter().map(|&length| length as i64).collect();
    request.inputs[1].contents = Some(Contents { int64, ..Contents::default() });
    request
}

#[test]
fn raw_contents_and_numbers_give_the_answers_of_the_definition() {
    let (_server, mut channel) = start(&[]);
    let model: ModelMetadata = channel.call("ModelMetadata", &small()).message();
    let inputs: Vec<_> = model.inputs.iter().map(|input| (&*input.name, input.shape.clone())).collect();
    assert_eq!(inputs, [("values", vec![-1, -1, 2]), ("lengths", vec![-1])]);
    let network = SAMPLE.network();
    let expected: Vec<_> =
        SAMPLE.sequences(&LENGTHS).iter().map(|sequence| forward_sequence(&network, sequence)).collect();
    for request in [raw(), listed()] {
        let answer: InferAnswer = channel.call("ModelInfer", &request).message();
        let clusters: Vec<usize> =
            answer.raw[0].as_chunks::<8>().0.iter().map(|&raw| i64::from_le_bytes(raw) as usize).collect();
        assert_eq!(clusters, expected.iter().map(|one| one.cluster()).collect::<Vec<_>>());
        let found = answer.raw[1].as_chunks::<4>().0.iter().map(|&raw| f64::from(f32::from_le_bytes(raw)));
        let wanted = expected.iter().flat_map(|one| one.probabilities.iter().copied());
        assert!(found.zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (_server, mut channel) = start(&["--max-images", "3"]);
    let with = |mut request: InferRequest, change: &dyn Fn(&mut InferRequest)| {
        change(&mut request);
        request
    };
    let cases = [
        with(raw(), &|r| drop(r.inputs.pop())),
        with(raw(), &|r| drop(r.raw.pop())),
        with(raw(), &|r| r.inputs.push(r.inputs[0].clone())),
        with(raw(), &|r| r.raw.push(vec![])),
        with(raw(), &|r| r.inputs[1].name = "values".into()),
        with(raw(), &|r| r.inputs[0].shape = vec![3, TIME as i64, 3]),
        with(raw(), &|r| r.inputs[0].shape = vec![-3, TIME as i64, 2]),
        with(raw(), &|r| r.raw[0].truncate(9)),
        with(listed(), &|r| r.raw = raw().raw),
        with(listed(), &|r| r.inputs[1].contents.as_mut().unwrap().int64[0] = -1),
        with(listed(), &|r| r.inputs[1].contents.as_mut().unwrap().int64[0] = TIME as i64 + 1),
        with(listed(), &|r| r.inputs[1].contents.as_mut().unwrap().uint = vec![1]),
    ];
    for case in cases {
        channel.call("ModelInfer", &case).expect(3, "bad_tensor");
    }
    let many = with(listed(), &|r| r.inputs[1].contents.as_mut().unwrap().int64 = vec![1; 4]);
    assert_ne!(channel.call("ModelInfer", &many).status, 0);
    channel.call("ModelInfer", &raw()).message::<InferAnswer>();
}
