//! Bundled models by name. A file of its own: the test sets an environment variable of the whole process.

#![allow(clippy::unwrap_used, unsafe_code)]

mod common;

use common::model;
use dtkc_infer::ModelFile;
use dtkc_onnx::testing::Sample;

#[test]
fn a_name_finds_the_model_in_the_folder_of_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("test-shapes.onnx"), model(&Sample::small()).bytes()).unwrap();
    // SAFETY: this is the only test of the process, and no other thread reads the environment.
    unsafe { std::env::set_var("DTKC_MODELS", folder.path()) };
    let file = ModelFile::open("test-shapes").unwrap();
    assert_eq!(file.name(), "test-shapes");
    assert!(ModelFile::bundled().contains(&"test-shapes".to_owned()));
    let error = ModelFile::open("test-forms").unwrap_err().to_string();
    assert!(error.contains("bundled models") && error.contains("test-shapes"), "{error}");
}
