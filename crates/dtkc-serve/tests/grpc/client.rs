//! A gRPC client that shares no code with the service.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::web::Bytes;
use dtkc_testing::LONG;
use h2::RecvStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

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
        Self::over(address, |stream| async { Ok(stream) })
    }

    /// Encrypted, by whoever has that certificate.
    pub fn encrypted(address: SocketAddr, certificate: CertificateDer<'static>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let connector = TlsConnector::from(Arc::new(config));
        Self::over(address, |stream| async move {
            let stream = connector.connect(address.ip().into(), stream).await?;
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            Ok(stream)
        })
    }

    fn over<S, F>(address: SocketAddr, prepare: impl FnOnce(TcpStream) -> F) -> Result<Self, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = std::io::Result<S>>,
    {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let send = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
            let stream = prepare(stream).await.map_err(|e| e.to_string())?;
            let (send, connection) = h2::client::handshake(stream).await.map_err(|e| e.to_string())?;
            tokio::spawn(connection);
            send.ready().await.map_err(|e| e.to_string())
        })?;
        Ok(Self { runtime, send, authority: address.to_string() })
    }

    /// Sends a call and does not wait for its answer. It goes out with the next [`Channel::turn`].
    pub fn begin(&mut self, method: &str, message: &impl Message) -> ResponseFuture {
        let path = format!("http://{}/inference.GRPCInferenceService/{method}", self.authority);
        let request = Request::post(path).header("content-type", "application/grpc").body(()).unwrap();
        let (response, mut stream) = self.send.send_request(request, false).unwrap();
        stream.send_data(framed(&message.encode_to_vec()).into(), true).unwrap();
        response
    }

    /// Waits for the head of an answer and reads nothing more.
    pub fn head(&mut self, response: ResponseFuture) -> RecvStream {
        self.runtime.block_on(response).unwrap().into_body()
    }

    /// Lets the connection read and write for a moment. Otherwise it does so only while a call is waited for.
    pub fn turn(&mut self) {
        self.runtime.block_on(async { tokio::time::sleep(std::time::Duration::from_millis(1)).await });
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
