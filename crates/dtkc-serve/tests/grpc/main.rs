//! The inference protocol over gRPC: the same answers as over HTTP, behind the same guards.
#![allow(clippy::unwrap_used)]

mod client;
#[path = "../common/mod.rs"]
mod common;
mod limits;
mod messages;
mod protocol;
mod sequences;

use client::Channel;
use common::{SIDE, Server};
use messages::{InferRequest, ModelRequest, Tensor};

fn start(args: &[&str]) -> (Server, Channel) {
    let server = Server::start(&[&["--grpc-port", "0"], args].concat());
    let channel = Channel::open(server.grpc.unwrap());
    (server, channel)
}

fn small() -> ModelRequest {
    ModelRequest { name: "small".into(), version: String::new() }
}

fn image(count: usize) -> Tensor {
    let shape = vec![count as i64, SIDE as i64, SIDE as i64, 1];
    Tensor { name: "image".into(), datatype: "UINT8".into(), shape, ..Tensor::default() }
}

/// A request with raw pixels.
fn infer(pixels: &[u8]) -> InferRequest {
    let inputs = vec![image(pixels.len() / (SIDE * SIDE))];
    InferRequest { model_name: "small".into(), id: "7".into(), inputs, raw: vec![pixels.into()], ..Default::default() }
}
