#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::proto::{Attribute, Node};
use crate::testing::{Sample, SequenceSample};
use crate::write;

fn sample() -> Vec<u8> {
    write(&Sample::small().network(), &Sample::small().metadata()).unwrap()
}

/// The sample's model changed by `change`, with a checksum that fits again.
fn changed(change: impl FnOnce(&mut Model)) -> Vec<u8> {
    let mut model = Model::decode(&*sample()).unwrap();
    model.metadata_props.retain(|entry| entry.key != CHECKSUM);
    change(&mut model);
    model.encode_to_vec()
}

fn set_entry(key: &str, value: &str) -> Vec<u8> {
    changed(|model| {
        let entry = model.metadata_props.iter_mut().find(|entry| entry.key == key).unwrap();
        entry.value = value.into();
    })
}

fn refusal(bytes: &[u8]) -> String {
    let text = read_metadata(bytes).unwrap_err().to_string();
    assert!(text.len() > 20 && !text.contains('\n'), "not one sentence: {text}");
    text
}

#[test]
fn what_is_written_is_read() {
    let mut metadata = Sample::small().metadata();
    metadata.metrics.insert("acc".into(), 0.1 + 0.2);
    metadata.parity = Some(crate::Parity { images: 256, max_difference: 1.2e-7, differing_clusters: 0 });
    metadata.extra.insert("someone.else".into(), "kept".into());
    let bytes = write(&Sample::small().network(), &metadata).unwrap();
    assert_eq!(read_metadata(&bytes), Ok(metadata));
}

#[test]
fn other_files_are_refused() {
    assert!(refusal(b"").contains("empty"));
    assert!(refusal(b"<html>not found</html>").contains("not a readable ONNX model"));
    assert!(refusal(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("not a readable ONNX model"));
    let limit = vec![0; MAX_BYTES as usize + 1];
    assert!(matches!(read_metadata(&limit), Err(OnnxError::TooLarge { .. })));
}

#[test]
fn a_foreign_model_is_refused() {
    assert!(refusal(&changed(|model| model.metadata_props.clear())).contains("without DTKC metadata"));
    let other = |model: &mut Model| {
        model.metadata_props = vec![Entry { key: "author".into(), value: "someone".into() }];
    };
    assert!(refusal(&changed(other)).contains("exported by `dtkc-train`"));
}

#[test]
fn a_missing_entry_is_named() {
    let keys: Vec<String> = Model::decode(&*sample()).unwrap().metadata_props.into_iter().map(|e| e.key).collect();
    assert!(keys.len() >= 18, "{keys:?}");
    for key in keys.iter().filter(|key| *key != CHECKSUM) {
        let bytes = changed(|model| model.metadata_props.retain(|entry| entry.key != *key));
        assert!(refusal(&bytes).contains(key.as_str()), "{key}");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    assert!(
        refusal(&set_entry("dtkc.schema", "3")).contains("schema version 3, and this program reads versions up to 2")
    );
}

#[test]
fn metadata_that_contradicts_the_graph_is_refused() {
    assert!(refusal(&set_entry("dtkc.input.height", "28")).contains("has shape [batch, 22, 27, 3]"));
    assert!(refusal(&set_entry("dtkc.input.color", "gray")).contains("says [batch, 22, 27, 1]"));
    for color in ["cmyk", "grey"] {
        let expected = format!("the model's metadata entry `dtkc.input.color` is {color:?} instead of gray or rgb");
        assert!(refusal(&set_entry("dtkc.input.color", color)).starts_with(&expected));
    }
    assert!(refusal(&set_entry("dtkc.embedding_size", "8")).contains("`embedding`"));
    assert!(refusal(&set_entry("dtkc.input.width", "0")).contains("not between 1 and"));
    assert!(refusal(&set_entry("dtkc.embedding_size", "99999999")).contains("not between 1 and"));
    assert!(refusal(&set_entry("dtkc.embedding_size", "-1")).contains("not a number"));
    assert!(refusal(&set_entry("dtkc.k", "5")).contains("4 values for 5 clusters"));
    assert!(refusal(&set_entry("dtkc.cluster_sizes", "[1,2")).contains("cannot be read"));
}

#[test]
fn an_unknown_resize_rule_asks_for_a_newer_program() {
    let expected = "images are to be prepared with the resize rule \"squash\", which this program does not know; \
                    update the program";
    assert_eq!(refusal(&set_entry("dtkc.input.resize", "squash")), expected);
}

/// What programs outside of this project may read; files of schema 1 all have these.
#[test]
fn the_entries_of_the_input_are_plain_words() {
    let entries = Sample::small().metadata().to_entries().unwrap();
    let input: Vec<(&str, &str)> =
        entries.iter().filter_map(|(key, value)| Some((key.strip_prefix("dtkc.input.")?, value.as_str()))).collect();
    let expected = [("color", "rgb"), ("filter", "triangle"), ("height", "22"), ("resize", "fit"), ("width", "27")];
    assert_eq!(input, expected);
}

#[test]
fn a_damaged_graph_is_refused() {
    let graph = |change: fn(&mut Graph)| changed(|model| change(model.graph.as_mut().unwrap()));
    assert!(refusal(&changed(|model| model.graph = None)).contains("no graph"));
    assert!(refusal(&graph(|graph| drop(graph.node.remove(3)))).contains("which nothing computes"));
    assert!(refusal(&graph(|graph| drop(graph.node.pop()))).contains("nothing computes its output"));
    assert!(refusal(&graph(|graph| graph.initializer[2].raw_data.truncate(8))).contains("incomplete"));
    assert!(refusal(&graph(|graph| drop(graph.output.pop()))).contains("no output `embedding`"));
    assert!(refusal(&graph(|graph| graph.input.clear())).contains("nothing computes"));
    let rename = |graph: &mut Graph| {
        graph.input[0].name = "picture".into();
        graph.node[0].input[0] = "picture".into();
    };
    assert!(refusal(&graph(rename)).contains("no input `image`"));
}

#[test]
fn a_flipped_bit_in_the_weights_is_noticed() {
    let bytes = sample();
    for position in [bytes.len() / 4, bytes.len() / 3, bytes.len() / 2] {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        assert!(read_metadata(&damaged).is_err(), "{position}");
    }
}

#[test]
fn weights_in_other_files_are_refused() {
    let external = |tensor: &mut Tensor| {
        tensor.data_location = 1;
        tensor.external_data = vec![Entry { key: "location".into(), value: "/etc/passwd".into() }];
    };
    let bytes = changed(|model| external(&mut model.graph.as_mut().unwrap().initializer[2]));
    assert!(refusal(&bytes).contains("in another file"));
    let hidden = changed(|model| {
        let mut tensor = Tensor::default();
        external(&mut tensor);
        let attribute = Attribute { name: "value".into(), t: Some(tensor), ..Attribute::default() };
        let node = Node { op_type: "Constant".into(), attribute: vec![attribute], ..Node::default() };
        model.graph.as_mut().unwrap().node.insert(0, node);
    });
    assert!(refusal(&hidden).contains("in another file"));
}

#[test]
fn the_largest_value_is_found() {
    // 22 x 27 x 3 pixels are fewer than 5 filters of 18 x 23.
    assert_eq!(largest_values(&sample()), Ok(Largest { item: 5 * 18 * 23, step: 0 }));
    let bare = changed(|model| model.graph.as_mut().unwrap().value_info.clear());
    assert_eq!(largest_values(&bare), Ok(Largest { item: 22 * 27 * 3, step: 0 }));
    assert!(largest_values(b"").is_err());
    // Two directions of 5 units are more than 3 values a step and than the 7 of the embedding.
    assert_eq!(largest_values(&sequences()), Ok(Largest { item: 10, step: 10 }));
}

#[test]
fn metadata_is_replaced_without_touching_the_rest() {
    let bytes = sample();
    let mut metadata = read_metadata(&bytes).unwrap();
    metadata.clusters[2].name = Some("Zweien \"2\"".into());
    let renamed = with_metadata(&bytes, &metadata).unwrap();
    assert_eq!(read_metadata(&renamed).unwrap(), metadata);
    assert_eq!(without_metadata(&renamed).unwrap(), without_metadata(&bytes).unwrap());
    metadata.clusters[2].name = None;
    assert_eq!(with_metadata(&renamed, &metadata).unwrap(), bytes);
    metadata.clusters.pop();
    assert!(with_metadata(&bytes, &metadata).unwrap_err().to_string().contains("`probabilities`"));
}

#[test]
fn metadata_that_json_cannot_hold_is_refused() {
    let mut metadata = Sample::small().metadata();
    metadata.metrics.insert("nmi".into(), f64::NAN);
    assert!(with_metadata(&sample(), &metadata).unwrap_err().to_string().contains("nmi is NaN"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_names_and_numbers_survive(
        names in proptest::collection::vec(proptest::option::of("\\PC{0,12}"), 4),
        sizes in proptest::collection::vec(any::<u64>(), 4),
        acc in proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
        seed in any::<u64>(),
        text in "\\PC{0,20}",
    ) {
        let mut metadata = Sample::small().metadata();
        metadata.clusters = names.into_iter().zip(sizes).map(|(name, size)| crate::Cluster { name, size }).collect();
        metadata.metrics.insert(text.clone(), acc);
        metadata.provenance.seed = seed;
        metadata.provenance.dataset = text;
        prop_assert_eq!(read_metadata(&with_metadata(&sample(), &metadata).unwrap()).unwrap(), metadata);
    }

    #[test]
    fn no_prefix_of_a_model_is_accepted(part in 0.0..1.0f64) {
        let bytes = sample();
        let length = (bytes.len() as f64 * part) as usize;
        prop_assert!(read_metadata(&bytes[..length]).is_err());
    }

    #[test]
    fn damage_never_panics(position in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut bytes = sample();
        let position = position.index(bytes.len());
        let same = bytes[position] == value;
        bytes[position] = value;
        if let Ok(metadata) = read_metadata(&bytes) {
            // Only text within the metadata can change without being noticed.
            prop_assert!(same || metadata != Sample::small().metadata() || bytes.len() - position < 2048);
        }
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read_metadata(&bytes).is_err());
    }
}

fn sequences() -> Vec<u8> {
    let sample = SequenceSample::small();
    write(&sample.network(), &sample.metadata(sample.hidden)).unwrap()
}

/// The same with an entry changed.
fn sequences_with(key: &str, value: &str) -> Vec<u8> {
    let mut model = Model::decode(&*sequences()).unwrap();
    model.metadata_props.iter_mut().find(|entry| entry.key == key).unwrap().value = value.into();
    model.encode_to_vec()
}

#[test]
fn a_model_for_sequences_says_what_it_takes() {
    let metadata = SequenceSample::small().metadata(7);
    assert_eq!(read_metadata(&sequences()), Ok(metadata.clone()));
    let entries = metadata.to_entries().unwrap();
    let of = |key: &str| entries.get(key).map(String::as_str);
    assert_eq!(
        (of("dtkc.schema"), of("dtkc.input.kind"), of("dtkc.input.dim")),
        (Some("2"), Some("sequences"), Some("3"))
    );
    assert_eq!((of("dtkc.input.height"), of("dtkc.input.resize")), (None, None));
}

#[test]
fn metadata_that_contradicts_a_graph_for_sequences_is_refused() {
    assert!(
        refusal(&sequences_with("dtkc.input.dim", "2")).contains("has shape [batch, time, 3] and the metadata says")
    );
    assert!(refusal(&sequences_with("dtkc.input.dim", "0")).contains("not between 1 and"));
    let sounds = refusal(&sequences_with("dtkc.input.kind", "sounds"));
    assert_eq!(
        sounds,
        "the model takes items of the kind \"sounds\", which this program does not know; update the program"
    );
    assert!(refusal(&sequences_with("dtkc.input.kind", "images")).contains("`dtkc.input.height` is missing"));
    assert!(refusal(&sequences_with("dtkc.schema", "1")).contains("`dtkc.input.height` is missing"));
    let mut model = Model::decode(&*sequences()).unwrap();
    model.metadata_props.retain(|entry| entry.key != CHECKSUM);
    let graph = model.graph.as_mut().unwrap();
    let known = graph.input[0].clone();
    graph.input.push(ValueInfo { name: "more".into(), ..known });
    assert!(refusal(&model.encode_to_vec()).contains("3 inputs instead of 2"));
}

/// Version 2 has a place for images, too; a later program may write them so.
#[test]
fn images_of_version_2_are_read() {
    let bytes = changed(|model| {
        model.metadata_props.iter_mut().find(|entry| entry.key == "dtkc.schema").unwrap().value = "2".into();
        model.metadata_props.push(Entry { key: "dtkc.input.kind".into(), value: "images".into() });
    });
    assert_eq!(read_metadata(&bytes), Ok(Sample::small().metadata()));
}
