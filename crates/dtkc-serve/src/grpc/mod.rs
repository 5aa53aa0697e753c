//! The KServe Open Inference Protocol (v2) over gRPC, on a port of its own (`--grpc-port`).
//!
//! HTTP/2 comes from the library `h2`; the few rules of gRPC above it are kept here, and no framework is: every byte that
//! arrives is booked before more may come, and every wait has an end, as over HTTP. A call asks for the same keys, counts
//! for the same limits and takes its turn in the same queue. The connection is watched by the same [`Line`], so that one
//! without calls has a deadline; while there are calls, each of them has its own.
//!
//! [`Line`]: crate::connection::Line

mod call;
mod message;
mod messages;
mod methods;
mod status;
mod tensors;
mod wire;

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_server::{GracefulShutdownSignal, ServerBuilder};
use actix_service::fn_service;
use actix_web::rt::net::TcpStream;
use actix_web::web::{Bytes, Data};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::server::Builder;
use rustls::ServerConfig;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsAcceptor;

use self::call::{Call, Caller};
use crate::connection::Exchange;
use crate::error::ApiError;
use crate::http;
use crate::state::State;

/// Calls of one connection at one time. A client that has more waits, or opens another connection.
const CALLS: u32 = 16;
/// What a connection may send before somebody has taken and counted it.
const WINDOW: u32 = 128 << 10;
/// The head of a call: a path, a key, a few words about the client.
const HEAD: u32 = 8 << 10;
/// What is written at a time, and waits to be sent.
pub(super) const PIECE: usize = 16 << 10;
/// A connection without calls is told to end so much before it is cut off: what is on its way then is sent again by the
/// client's library.
const NOTICE: Duration = Duration::from_secs(15);

/// Adds the port to a server.
pub fn with_service(
    builder: ServerBuilder,
    state: Data<State>,
    listener: TcpListener,
    tls: Option<ServerConfig>,
) -> std::io::Result<ServerBuilder> {
    let tls = tls.map(|mut config| {
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    });
    let stopping = builder.graceful_shutdown_signal();
    builder.listen("grpc", listener, move || {
        let (state, tls, stopping) = (state.clone(), tls.clone(), stopping.clone());
        fn_service(move |stream: TcpStream| {
            let talking = talk(stream, state.clone(), tls.clone(), stopping.clone());
            async move {
                if let Err(error) = talking.await {
                    tracing::debug!("a gRPC connection ended: {error}");
                }
                Ok::<(), ()>(())
            }
        })
    })
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("it was not accepted")]
    Refused(#[from] DispatchError),
    #[error(transparent)]
    Broken(#[from] h2::Error),
}

/// Serves one connection until it ends. Its calls end with it.
async fn talk(
    stream: TcpStream,
    state: Data<State>,
    tls: Option<TlsAcceptor>,
    stopping: GracefulShutdownSignal,
) -> Result<(), Ended> {
    let (line, _, peer) = http::accept(stream, state.clone(), tls).await?;
    let connection = line.connection().clone();
    let caller = Rc::new(Caller { peer: peer.map(|peer| peer.ip()), is_spare: connection.is_spare() });
    let mut h2 = limits().handshake::<_, Bytes>(line).await?;
    let mut calls = FuturesUnordered::new();
    let mut exchange: Option<Exchange> = None;
    let mut quiet_since = Instant::now();
    let mut leaving = false;
    let mut stopped = std::pin::pin!(stopping.notified());
    loop {
        tokio::select! {
            accepted = h2.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    exchange.get_or_insert_with(|| Exchange::begin(&connection, false));
                    calls.push(Call::new(state.clone(), caller.clone(), request, respond).serve());
                }
                ended => {
                    // Nobody is there to be answered any more.
                    (0..calls.len()).for_each(|_| state.metrics.error(ApiError::ClientGone.code()));
                    return ended.map_or(Ok(()), |ended| Ok(ended.map(drop)?));
                }
            },
            Some(()) = calls.next() => if calls.is_empty() {
                exchange = None;
                quiet_since = Instant::now();
            },
            () = &mut stopped, if !leaving => {
                leaving = true;
                h2.graceful_shutdown();
            }
            () = sleep_until(quiet_since + http::IDLE - NOTICE), if calls.is_empty() && !leaving => {
                leaving = true;
                h2.graceful_shutdown();
            }
        }
    }
}

/// What a connection may cost; `bound` adds it up.
fn limits() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(CALLS)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_header_list_size(HEAD)
        .max_send_buffer_size(PIECE);
    builder
}
