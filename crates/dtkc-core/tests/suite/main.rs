//! Tests of the method: one binary, because linking burn is slow.
#![allow(clippy::unwrap_used, missing_docs)]

mod deficient;
mod degenerate;
mod gradients;
mod kernels;
mod model;
mod network;
mod properties;
mod sequences;
mod support;
