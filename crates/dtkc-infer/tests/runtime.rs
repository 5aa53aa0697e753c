//! Finding the library. One test, because a process can load only one.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::model;
use dtkc_infer::{Device, InferError, Runtime, Session, SessionOptions};
use dtkc_onnx::testing::Sample;

#[test]
fn the_runtime_is_found_or_the_error_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| Runtime::find(Some(path)).unwrap_err().to_string();
    assert!(error(&folder.path().join("none.so")).contains("no such file"));
    assert!(error(folder.path()).contains("holds no libonnxruntime"));
    let text =
        folder.path().join(format!("{}onnxruntime{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    std::fs::write(&text, "not a library").unwrap();
    let refused = error(folder.path());
    assert!(refused.contains("cannot be used") && refused.contains("--onnxruntime PATH"), "{refused}");

    let runtime = common::runtime();
    let library = runtime.path().unwrap().to_owned();
    assert_eq!(Runtime::find(None).unwrap().path(), Some(&*library));
    if library.exists() {
        assert_eq!(Runtime::find(Some(&library)).unwrap().path(), Some(&*library));
    }
    assert!(error(&text).contains("already loaded"));

    let missing = InferError::RuntimeMissing { looked: "here".into() }.to_string();
    assert!(missing.contains("scripts/setup.sh") && missing.contains("pip install onnxruntime"));

    // A CPU build of the library has no GPU, and must say so instead of using the processor.
    let model = model(&Sample::small());
    for device in [Device::Cuda(0), Device::TensorRt(0)] {
        let options = SessionOptions { device, ..SessionOptions::default() };
        match Session::new(&runtime, &model, &options) {
            Err(error) => {
                let text = error.to_string();
                println!("{text}");
                assert!(text.contains(&format!("device {device} cannot be used")), "{text}");
                assert!(text.contains("; use --device cpu") && !text.contains(".;") && !text.contains('\n'), "{text}");
            }
            Ok(_) => println!("this machine has {device}"),
        }
    }
}
