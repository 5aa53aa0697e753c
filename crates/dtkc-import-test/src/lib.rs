//! A model file of ours as burn code: burn-onnx writes it while this crate is built, the tests run it.

/// The imported model. What burn-onnx generates is not held to our lints.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub mod imported {
    include!(concat!(env!("OUT_DIR"), "/imported/sample.rs"));
}
