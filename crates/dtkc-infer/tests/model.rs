//! Opening model files by path and by name, and refusing what is not one.

#![allow(clippy::unwrap_used)]

mod common;

use common::model;
use dtkc_infer::{ModelFile, Names};
use dtkc_item::{Color, ImageSpec, Resize};
use dtkc_onnx::InputSpec;
use dtkc_onnx::testing::Sample;

fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, bytes).unwrap();
    let text = ModelFile::open(&path).unwrap_err().to_string();
    assert!(text.contains("m.onnx") && !text.contains('\n'), "{text}");
    text
}

#[test]
fn a_model_is_opened_by_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.onnx");
    let bytes = model(&Sample::small()).bytes().to_vec();
    std::fs::write(&path, &bytes).unwrap();
    let file = ModelFile::open(&path).unwrap();
    assert_eq!((file.name(), file.path(), file.bytes()), ("digits", Some(&*path), &*bytes));
    let expected = ImageSpec { height: 22, width: 27, color: Color::Rgb, resize: Resize::Fit };
    assert_eq!(file.image(), Some(expected));
    assert_eq!((file.clusters(), file.embedding_size()), (4, 7));
    assert_eq!(file.metadata().cluster_name(0), "cluster 0");
    assert_eq!(file.metadata().cluster_name(1), "ones");
    assert_eq!(file.fingerprint().len(), 64);
}

#[test]
fn what_is_not_a_model_is_refused_with_its_name() {
    let good = model(&Sample::small()).bytes().to_vec();
    assert!(refusal(b"").contains("empty"));
    assert!(refusal(b"hello").contains("not a readable ONNX model"));
    assert!(refusal(&good[..good.len() / 2]).contains("m.onnx"));
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    assert!(refusal(&damaged).contains("altered"));
    let mut metadata = dtkc_onnx::read_metadata(&good).unwrap();
    if let InputSpec::Image(input) = &mut metadata.input {
        input.filter = "lanczos".into();
    }
    assert!(refusal(&dtkc_onnx::with_metadata(&good, &metadata).unwrap()).contains("lanczos"));
    // The metadata is not part of the checksum: a newer program may have written another word there.
    let key = b"dtkc.input.resize";
    let place = good.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    let mut newer = good.clone();
    let word = newer[place..].windows(3).position(|window| window == b"fit").unwrap() + place;
    newer[word..word + 3].copy_from_slice(b"zap");
    let text = refusal(&newer);
    let expected = "m.onnx: images are to be prepared with the resize rule \"zap\", which this program does not know; \
                    update the program";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_missing_model_is_named_with_what_there_is() {
    let error = ModelFile::open("no/such/model.onnx").unwrap_err().to_string();
    assert!(error.contains("no/such/model.onnx") && error.contains("no such file"), "{error}");
    let error = ModelFile::open("nosuchname").unwrap_err().to_string();
    assert!(error.contains("nosuchname") && error.contains(".onnx file"), "{error}");
}

#[test]
fn clusters_can_be_renamed_without_touching_the_file() {
    let mut file = model(&Sample::small());
    let (copy, bytes) = (file.clone(), file.bytes().to_vec());
    file.rename(&Names::parse("0,zeros\n1,first", 4).unwrap());
    assert_eq!(file.metadata().cluster_name(0), "zeros");
    assert_eq!(file.metadata().cluster_name(1), "first");
    assert_eq!(file.metadata().cluster_name(2), "cluster 2");
    assert_eq!(copy.metadata().cluster_name(0), "cluster 0");
    assert_eq!(file.bytes(), bytes);
}
