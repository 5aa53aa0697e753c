//! The messages of `grpc_predict_v2.proto` as prost derives them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub struct Yes {
    #[prost(bool, tag = "1")]
    pub yes: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ModelRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ServerMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, repeated, tag = "3")]
    pub extensions: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ModelMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    pub versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub platform: String,
    #[prost(message, repeated, tag = "4")]
    pub inputs: Vec<Tensor>,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<Tensor>,
}

/// A tensor of a request, an answer or a description.
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub parameters: Vec<Parameter>,
    #[prost(message, optional, tag = "5")]
    pub contents: Option<Contents>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Parameter {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<ParameterValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ParameterValue {
    #[prost(int64, tag = "2")]
    pub number: i64,
    #[prost(string, tag = "3")]
    pub text: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Contents {
    #[prost(int64, repeated, tag = "3")]
    pub int64: Vec<i64>,
    #[prost(uint32, repeated, tag = "4")]
    pub uint: Vec<u32>,
    #[prost(float, repeated, tag = "6")]
    pub fp32: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Wanted {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub parameters: Vec<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InferRequest {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(message, repeated, tag = "5")]
    pub inputs: Vec<Tensor>,
    #[prost(message, repeated, tag = "6")]
    pub outputs: Vec<Wanted>,
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub raw: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InferAnswer {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<Tensor>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub raw: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Index {
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<Model>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, tag = "3")]
    pub state: String,
    #[prost(string, tag = "4")]
    pub reason: String,
}
