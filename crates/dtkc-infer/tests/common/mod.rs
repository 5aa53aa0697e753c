//! What the tests share. They need the ONNX Runtime library and say so when it is missing.

#![allow(dead_code, clippy::unwrap_used)]

use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_onnx::testing::Sample;

pub fn runtime() -> Runtime {
    Runtime::find(None).unwrap_or_else(|error| panic!("{error}"))
}

pub fn model(sample: &Sample) -> ModelFile {
    let bytes = dtkc_onnx::write(&sample.network(), &sample.metadata()).unwrap();
    ModelFile::from_bytes("sample", bytes).unwrap()
}

pub fn session(model: &ModelFile, intra_threads: usize) -> Session {
    Session::new(&runtime(), model, &SessionOptions { intra_threads, ..SessionOptions::default() }).unwrap()
}
