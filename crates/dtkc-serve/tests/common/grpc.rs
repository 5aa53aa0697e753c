//! A gRPC client with the messages as prost derives them, so that nothing here reads or writes with the service's code.
#![allow(dead_code, clippy::unwrap_used)]

use std::net::SocketAddr;

use actix_web::web::Bytes;
use dtkc_testing::LONG;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

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

/// The answer to a call.
#[derive(Debug)]
pub struct Reply {
    pub http: u16,
    pub status: i32,
    pub sentence: String,
    pub code: String,
    pub head: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    /// The message of a call that went well.
    #[track_caller]
    pub fn message<M: Message + Default>(&self) -> M {
        assert_eq!(self.status, 0, "{self:?}");
        assert_eq!(u32::from_be_bytes(self.body[1..5].try_into().unwrap()) as usize, self.body.len() - 5);
        M::decode(&self.body[5..]).unwrap()
    }

    /// Checks status and code of one that did not; every refusal has a sentence and an id.
    #[track_caller]
    pub fn expect(&self, status: i32, code: &str) {
        assert_eq!((self.status, self.code.as_str()), (status, code), "{self:?}");
        assert!(self.sentence.len() > 10 && self.head.contains_key("x-request-id"), "{self:?}");
    }
}

/// A connection.
pub struct Channel {
    runtime: Runtime,
    send: SendRequest<Bytes>,
    authority: String,
}

/// A message with its length in front.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

impl Channel {
    pub fn open(address: SocketAddr) -> Self {
        Self::try_open(address).unwrap()
    }

    /// `Err` where the server does not want the connection.
    pub fn try_open(address: SocketAddr) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let send = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
            let (mut send, connection) = h2::client::handshake(stream).await.map_err(|e| e.to_string())?;
            tokio::spawn(connection);
            send = send.ready().await.map_err(|e| e.to_string())?;
            Ok::<_, String>(send)
        })?;
        Ok(Self { runtime, send, authority: address.to_string() })
    }

    /// From now on the service is called by another name.
    pub fn authority(mut self, name: &str) -> Self {
        self.authority = name.into();
        self
    }

    pub fn call(&mut self, method: &str, message: &impl Message) -> Reply {
        self.call_with(method, message, &[])
    }

    pub fn call_with(&mut self, method: &str, message: &impl Message, headers: &[(&str, &str)]) -> Reply {
        self.raw(method, headers, &framed(&message.encode_to_vec()), true).unwrap()
    }

    /// Sends bytes as they are; `Err` where no answer came.
    pub fn raw(&mut self, method: &str, headers: &[(&str, &str)], body: &[u8], end: bool) -> Result<Reply, String> {
        let path =
            if method.starts_with('/') { method.into() } else { format!("/inference.GRPCInferenceService/{method}") };
        let mut request = Request::post(format!("http://{}{path}", self.authority));
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("te", "trailers").body(()).unwrap();
        let (send, body) = (self.send.clone(), Bytes::copy_from_slice(body));
        let asking = async move {
            let mut send = send.ready().await?;
            let (response, mut stream) = send.send_request(request, false)?;
            stream.send_data(body, end)?;
            let (head, mut body) = response.await?.into_parts();
            let mut whole = Vec::new();
            while let Some(chunk) = body.data().await {
                let chunk = chunk?;
                body.flow_control().release_capacity(chunk.len())?;
                whole.extend_from_slice(&chunk);
            }
            let trailers = body.trailers().await?.unwrap_or_else(|| head.headers.clone());
            let text = |name: &str| trailers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
            Ok(Reply {
                http: head.status.as_u16(),
                status: text("grpc-status").parse().unwrap_or(-1),
                sentence: text("grpc-message"),
                code: text("x-error-code"),
                head: head.headers,
                body: whole,
            })
        };
        let asked = self.runtime.block_on(async { tokio::time::timeout(LONG, asking).await });
        asked.unwrap().map_err(|error: h2::Error| error.to_string())
    }
}
