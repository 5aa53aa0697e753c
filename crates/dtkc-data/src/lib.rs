//! Any collection as one dataset file: importers, fetchers and generators.
//!
//! The file itself, its reader, writer and loader are `dtkc-dataset`; this crate only fills it.

pub mod fetch;
pub mod import;
pub mod synth;
