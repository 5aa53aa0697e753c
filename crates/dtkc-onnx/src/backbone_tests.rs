use dtkc_item::{Color, FeatureShape, ImageShape, ImageSpec, ItemShape, Resize};

use super::*;
use crate::proto::{Entry, Node, ValueInfo};
use crate::testing::{End, Foreign, WIDTH};
use crate::{Cluster, ImageInput, Layer, Metadata, Network, Weights, read_metadata, read_network};

const IMAGE: ImageShape = ImageShape { height: 6, width: 4, channels: 3 };

fn preparation() -> Preparation {
    Preparation { image: IMAGE, size: [6, 4], mean: vec![0.5; 3], deviation: vec![0.25; 3] }
}

fn refusal(change: impl FnOnce(&mut Graph)) -> String {
    Backbone::read(Foreign::default().model(change).encode_to_vec()).unwrap_err().to_string()
}

#[test]
fn inputs_are_found_whatever_their_order() {
    let input = |foreign: Foreign| Backbone::read(foreign.file()).unwrap().input().clone();
    let plain = input(Foreign::default());
    assert_eq!((plain.order, plain.channels, plain.size, plain.takes_bytes), (Channels::First, 3, [None, None], false));
    let last = input(Foreign { channels_last: true, bytes: true, side: Some(9), ..Foreign::default() });
    assert_eq!((last.order, last.size, last.takes_bytes), (Channels::Last, [Some(9), Some(9)], true));
    assert_eq!(last.to_string(), "input \"x\": 3 channels (channels last) of 9 x 9 pixels, bytes");
    assert_eq!(input(Foreign { channels: 1, ..Foreign::default() }).channels, 1);
}

#[test]
fn the_value_before_classes_is_taken_and_any_other_output_as_it_is() {
    let layer = |end| Backbone::read(Foreign { end, ..Foreign::default() }.file()).unwrap().layer().unwrap().0;
    assert_eq!([End::Classes, End::Vector, End::Maps, End::Tokens].map(layer), ["flat", "flat", "kept", "tokens"]);
    let backbone = Backbone::read(Foreign::default().file()).unwrap();
    backbone.check_layer("kept").unwrap();
    let error = backbone.check_layer("keptt").unwrap_err().to_string();
    assert!(error.contains("no value \"keptt\"; its outputs are \"classes\"") && error.contains("\"flat\""), "{error}");
}

#[test]
fn what_cannot_work_is_refused_in_a_sentence() {
    let two = refusal(|graph| {
        let other = ValueInfo { name: "mask".into(), ..graph.input[0].clone() };
        graph.input.push(other);
    });
    assert!(two.contains("has 2 inputs (\"x\", \"mask\")"), "{two}");
    let none = refusal(|graph| graph.input[0].r#type = None);
    assert!(none.contains("has no shape; export it with one"), "{none}");
    let outside = refusal(|graph| {
        graph.initializer[0].data_location = 1;
        graph.initializer[0].external_data.push(Entry { key: "location".into(), value: "/etc/passwd".into() });
    });
    assert!(outside.contains("are in another file") && outside.contains("onnx.save"), "{outside}");
    let sparse = refusal(|graph| graph.sparse_initializer.push(vec![1]));
    assert!(sparse.contains("sparse weights"), "{sparse}");
    let mut functions = Foreign::default().model(|_| ());
    functions.functions.push(vec![1]);
    let functions = Backbone::read(functions.encode_to_vec()).unwrap_err().to_string();
    assert!(functions.contains("functions of its own") && functions.contains("inline_local_functions"), "{functions}");
    let nested = refusal(|graph| graph.node[0].attribute[0].g = Some(Graph::default()));
    assert!(nested.contains("holds a graph of its own"), "{nested}");
    let channels = Backbone::read(Foreign { channels: 4, ..Foreign::default() }.file()).unwrap_err().to_string();
    assert!(channels.contains("nothing is 1 or 3 channels"), "{channels}");
    let old = Backbone::read(Foreign { opset: 11, ..Foreign::default() }.file()).unwrap_err().to_string();
    assert!(old.contains("version 11") && old.contains("convert_version"), "{old}");
    for bytes in [vec![], vec![7; 100], b"not onnx".to_vec()] {
        assert!(Backbone::read(bytes).unwrap_err().to_string().contains("no ONNX file"));
    }
    let gray = Backbone::read(Foreign { channels: 1, ..Foreign::default() }.file()).unwrap();
    let error = gray.prefix(&preparation(), "flat", Reading::Vector).unwrap_err().to_string();
    assert!(error.contains("--color gray"), "{error}");
    let backbone = Backbone::read(Foreign::default().file()).unwrap();
    let one = Preparation { mean: vec![0.5], ..preparation() };
    assert!(backbone.prefix(&one, "flat", Reading::Vector).unwrap_err().to_string().contains("3 numbers each"));
}

#[test]
fn only_what_leads_to_the_features_is_copied_under_other_names() {
    let backbone = Backbone::read(Foreign::default().file()).unwrap();
    let model = Model::decode(&*backbone.prefix(&preparation(), "flat", Reading::Vector).unwrap()).unwrap();
    let graph = model.graph.unwrap();
    check_graph(&graph).unwrap();
    let weights: Vec<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    assert!(weights.contains(&"backbone/w") && !weights.iter().any(|name| name.contains("class_w")), "{weights:?}");
    assert!(!graph.node.iter().any(|node| node.op_type == "Softmax" || node.op_type == "MatMul"));
    assert_eq!(graph.output.iter().map(|value| value.name.as_str()).collect::<Vec<_>>(), [FEATURES]);
}

#[test]
fn fields_that_are_not_known_here_stay() {
    // Field 6 of a node is its documentation, which this crate does not read.
    let mut node =
        Node { input: vec!["a".into(), String::new()], output: vec!["c".into()], ..Node::default() }.encode_to_vec();
    prost::encoding::string::encode(6, &"why".to_owned(), &mut node);
    let renamed = prefix::rename(&node, &[1, 2, 3]).unwrap();
    let read = Node::decode(&*renamed).unwrap();
    assert_eq!((read.input, read.output), (vec!["backbone/a".into(), String::new()], vec!["backbone/c".to_owned()]));
    assert!(renamed.windows(3).any(|part| part == b"why"));
}

#[test]
fn values_inside_are_found_and_told() {
    for channels_last in [false, true] {
        let backbone = Backbone::read(Foreign { channels_last, ..Foreign::default() }.file()).unwrap();
        // Convolutions have channels first, whatever the input has.
        let order = |name| backbone.order_of(name);
        assert_eq!([order("kept"), order("many"), order("turned")], [Channels::First, Channels::First, Channels::Last]);
        let error = backbone.check_tap("keptt").unwrap_err().to_string();
        assert!(
            error.contains("no value \"keptt\"; its values are") && error.contains("\"mixed\", \"kept\""),
            "{error}"
        );
        let tap = |name: &str, sizes: &[usize]| TapReading {
            name: name.into(),
            sizes: sizes.to_vec(),
            order: backbone.order_of(name),
        };
        // A value that nothing else needs comes along.
        let taps = [tap("turned", &[6, 4, 40]), tap("long", &[960])];
        let graph = backbone.prefix_with_taps(&preparation(), "flat", Reading::Vector, &taps).unwrap();
        let model = Model::decode(&*graph).unwrap();
        let nodes = model.graph.unwrap().node;
        let names: Vec<&str> = nodes.iter().flat_map(|node| &node.output).map(String::as_str).collect();
        assert!(
            names.contains(&"backbone/turned") && names.contains(&"backbone/long") && names.contains(&"backbone/flat")
        );
        assert_eq!(names.last(), Some(&FEATURES));
        let plain = backbone.prefix(&preparation(), "flat", Reading::Vector).unwrap();
        assert!(Model::decode(&*plain).unwrap().graph.unwrap().node.iter().all(|node| node.op_type != "Concat"));
    }
}

fn head(width: usize) -> Network {
    let dense = |from: usize, to: usize| Layer::Dense {
        weight: Weights::new([from, to], (0..from * to).map(|i| (i as f32 * 0.7).sin()).collect()),
        bias: vec![0.1; to],
    };
    let standard = Layer::Standardize { mean: vec![0.1; width], deviation: vec![0.5; width] };
    let layers = vec![standard, dense(width, 4), Layer::Relu, Layer::Embedding, dense(4, 3), Layer::Softmax];
    Network { input: ItemShape::Features(FeatureShape { dim: width, views: 2, taps: dtkc_item::Taps::NONE }), layers }
}

#[test]
fn a_joined_file_is_a_model_for_images() {
    let backbone = Backbone::read(Foreign::default().file()).unwrap();
    let graph = backbone.prefix(&preparation(), "flat", Reading::Vector).unwrap();
    let image = ImageSpec { height: 6, width: 4, color: Color::Rgb, resize: Resize::Fit };
    let metadata = Metadata::new(ImageInput { image, filter: "f".into() }.into(), vec![Cluster::default(); 3]);
    let bytes = join(&graph, &head(WIDTH), &metadata).unwrap();
    let read = read_metadata(&bytes).unwrap();
    assert_eq!((read.embedding_size, read.k(), read.input.shape()), (4, 3, ItemShape::Image(IMAGE)));
    assert_eq!(bytes, join(&graph, &head(WIDTH), &metadata).unwrap());
    assert!(read_network(&bytes).unwrap_err().to_string().contains("a network of somebody else"));
    let mut damaged = bytes.clone();
    let place = damaged.windows(4).position(|part| part == 0.25f32.to_le_bytes()).unwrap_or(damaged.len() / 2);
    damaged[place] ^= 1;
    assert!(read_metadata(&damaged).is_err());
    let two = Metadata { clusters: vec![Cluster::default(); 2], ..metadata.clone() };
    assert!(join(&graph, &head(WIDTH), &two).unwrap_err().to_string().contains("2 clusters"));
    // Inside a backbone values are larger than its input.
    assert_eq!(crate::largest_values(&bytes).unwrap().item, 12 * IMAGE.len());
}
