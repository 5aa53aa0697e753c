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

    // Whatever lies in the current folder, a name means the bundled model and a path the file.
    let here = tempfile::tempdir().unwrap();
    let other = model(&Sample { clusters: 6, ..Sample::small() });
    std::env::set_current_dir(here.path()).unwrap();
    let clusters = |name: &str| ModelFile::open(name).map(|file| file.clusters()).map_err(|error| error.to_string());
    std::fs::create_dir("test-shapes").unwrap();
    assert_eq!(clusters("test-shapes"), Ok(4), "a folder does not hide it");
    let error = clusters("test-shapes/").unwrap_err();
    assert!(error.contains("a folder without a .onnx file"), "{error}");
    std::fs::write("test-shapes/model.onnx", other.bytes()).unwrap();
    let error = clusters("./test-shapes").unwrap_err();
    assert!(error.contains("give the path of a file, as ./test-shapes/model.onnx"), "{error}");
    assert_eq!(clusters("test-shapes/model.onnx"), Ok(6));
    std::fs::remove_dir_all("test-shapes").unwrap();
    std::fs::write("test-shapes", other.bytes()).unwrap();
    assert_eq!(clusters("test-shapes"), Ok(4), "nor does a file without the ending");
    assert_eq!(clusters("./test-shapes"), Ok(6));
    std::fs::write("test-shapes.onnx", other.bytes()).unwrap();
    assert_eq!(clusters("test-shapes.onnx"), Ok(6), "a path of a model is a path");
    assert_eq!(clusters("test-shapes"), Ok(4));
    std::fs::rename("test-shapes", "unheard-of").unwrap();
    assert_eq!(clusters("unheard-of"), Ok(6), "where no model has the name, a file may");
}
