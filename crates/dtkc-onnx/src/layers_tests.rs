#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::testing::{Sample, SequenceSample};
use crate::write;

fn networks() -> Vec<(Sample, Network)> {
    let small = Sample::small();
    let padded = Sample { padding: 1, seed: 3, ..small };
    let gray = Sample { channels: 1, clusters: 2, ..small };
    let mut unfolded = small.network();
    unfolded.layers.insert(13, Layer::Relu);
    vec![
        (small, small.network()),
        (small, small.student_t()),
        (padded, padded.network()),
        (gray, gray.network()),
        small.reduced(3),
        (small, unfolded),
    ]
}

/// A model changed by `change`, without a checksum, as a tool leaves it that means well.
fn changed(change: impl FnOnce(&mut Graph)) -> Vec<u8> {
    let bytes = write(&Sample::small().student_t(), &Sample::small().metadata()).unwrap();
    let mut model = Model::decode(&*bytes).unwrap();
    model.metadata_props.retain(|entry| entry.key != "dtkc.graph_sha256");
    change(model.graph.as_mut().unwrap());
    model.encode_to_vec()
}

fn refusal(bytes: &[u8]) -> String {
    let text = read_network(bytes).unwrap_err().to_string();
    assert!(text.starts_with("the model's layers cannot be read back: ") && !text.contains('\n'), "{text}");
    text
}

#[test]
fn what_was_written_comes_back() {
    for (sample, network) in networks() {
        let bytes = write(&network, &sample.metadata()).unwrap();
        let (read, metadata) = read_network(&bytes).unwrap();
        assert_eq!(read, network);
        assert_eq!(metadata, sample.metadata());
    }
}

#[test]
fn the_bundled_models_can_be_read() {
    for name in ["mnist", "glyphs"] {
        let path = format!("{}/../../models/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
        let (network, metadata) = read_network(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(network.clusters().unwrap(), metadata.k(), "{name}");
    }
}

#[test]
fn sequences_are_refused() {
    let sample = SequenceSample::small();
    let bytes = write(&sample.network(), &sample.metadata(1)).unwrap();
    assert!(refusal(&bytes).ends_with("it takes sequences, for which this is not made; use a model for images"));
}

#[test]
fn graphs_that_somebody_changed_are_refused() {
    assert!(read_network(&changed(|_| {})).is_ok(), "nothing is changed yet");
    let node = |graph: &mut Graph, kind: &str, change: fn(&mut Node)| {
        change(graph.node.iter_mut().find(|node| node.op_type == kind).unwrap());
    };
    let strides = changed(|graph| node(graph, "Conv", |conv| conv.attribute[0].name = "strides".into()));
    assert!(refusal(&strides).contains("its graph is not as this version"), "{}", refusal(&strides));
    let more = changed(|graph| {
        node(graph, "Conv", |conv| {
            let another = Attribute { name: "group".into(), i: Some(1), ..Attribute::default() };
            conv.attribute.push(another);
        });
    });
    assert!(refusal(&more).contains("its graph is not as this version"));
    let other = changed(|graph| node(graph, "Relu", |relu| relu.op_type = "Elu".into()));
    assert!(refusal(&other).contains("(\"Elu\") does not fit, no layer of ours"), "{}", refusal(&other));
    let weights = changed(|graph| {
        let name = graph.node.iter().find(|node| node.op_type == "Gemm").unwrap().input[1].clone();
        graph.initializer.iter_mut().find(|tensor| tensor.name == name).unwrap().raw_data.clear();
    });
    assert!(refusal(&weights).contains("no block of 32-bit numbers"), "{}", refusal(&weights));
    let unscaled = changed(|graph| node(graph, "Max", |max| max.input.swap(0, 1)));
    assert!(refusal(&unscaled).contains("its graph is not as this version"));
    let cut = changed(|graph| {
        let place = graph.node.iter().position(|node| node.op_type == "Reciprocal").unwrap();
        graph.node[place].op_type = "Neg".into();
    });
    assert!(refusal(&cut).contains("its graph is not as this version"));
}

#[test]
fn a_second_graph_in_the_file_is_refused() {
    let mut bytes = changed(|_| {});
    let empty = Model { graph: Some(Graph::default()), ..Model::default() };
    bytes.extend(empty.encode_to_vec());
    assert!(refusal(&bytes).contains("its graph is not as this version"));
}

proptest! {
    #[test]
    fn damaged_files_never_panic(place in 0usize..100_000, value: u8) {
        let mut bytes = changed(|_| {});
        let place = place % bytes.len();
        bytes[place] = value;
        let _ = read_network(&bytes);
    }
}
