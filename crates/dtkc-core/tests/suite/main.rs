//! Tests of the method: one binary, because linking burn is slow.
#![allow(clippy::unwrap_used, missing_docs)]

mod degenerate;
mod gradients;
mod kernels;
mod model;
mod network;
mod properties;
mod support;
