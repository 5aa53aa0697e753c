//! From a listening socket to the application: connections, encryption, HTTP.

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol};
use actix_server::{Server, ServerBuilder};
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::body::MessageBody;
use actix_web::dev::AppConfig;
use actix_web::http::KeepAlive;
use actix_web::middleware::{Compress, from_fn};
use actix_web::rt::net::TcpStream;
use actix_web::web::{self, Data};
use actix_web::{App, Error};
use anyhow::anyhow;
use tokio_rustls::TlsAcceptor;

use crate::config::ServeConfig;
use crate::connection::{Connection, Line, Patience, Stream};
use crate::error::ApiError;
use crate::middleware::{cors, observe};
use crate::routes;
use crate::state::State;
use crate::tls;

/// A request's head must be there by then.
const HEAD: Duration = Duration::from_secs(10);
/// A connection that says nothing for so long after an answer is closed.
pub(crate) const IDLE: Duration = Duration::from_secs(75);
/// How long a client may take to close its side.
const CLOSE: Duration = Duration::from_secs(3);

/// What a service listens on.
#[derive(Debug)]
pub struct Sockets {
    http: TcpListener,
    #[cfg(feature = "grpc")]
    grpc: Option<TcpListener>,
}

impl Sockets {
    /// Opens them.
    pub fn open(config: &ServeConfig) -> anyhow::Result<Self> {
        Ok(Self {
            http: listen(config, config.port, "--port")?,
            #[cfg(feature = "grpc")]
            grpc: config.grpc_port.map(|port| listen(config, port, "--grpc-port")).transpose()?,
        })
    }

    /// Where HTTP is spoken.
    pub fn http_address(&self) -> std::io::Result<SocketAddr> {
        self.http.local_addr()
    }

    /// Where gRPC is spoken, if anywhere.
    pub fn grpc_address(&self) -> std::io::Result<Option<SocketAddr>> {
        #[cfg(feature = "grpc")]
        return self.grpc.as_ref().map(TcpListener::local_addr).transpose();
        #[cfg(not(feature = "grpc"))]
        Ok(None)
    }
}

fn listen(config: &ServeConfig, port: u16, flag: &str) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(config.host, port);
    TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow!("{address} is already in use; stop the other program or choose another port with {flag}")
        }
        _ => anyhow!("cannot listen on {address}: {error}; choose another --host or {flag}"),
    })
}

/// Serves the application on its sockets.
pub fn start(state: &Data<State>, sockets: Sockets) -> anyhow::Result<Server> {
    let config = &state.config;
    let tls = match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::load(certificate, key)?),
        _ => None,
    };
    let builder = Server::build()
        .workers(config.connection_threads())
        // Counted and refused by us, so that none waits unseen.
        .max_concurrent_connections(usize::MAX)
        .shutdown_timeout(config.stop_timeout.as_secs_f64().ceil() as u64)
        .disable_signals();
    #[cfg(feature = "grpc")]
    let builder = match sockets.grpc {
        Some(listener) => crate::grpc::with_service(builder, state.clone(), listener, tls.clone())?,
        None => builder,
    };
    let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    Ok(with_service(builder, state.clone(), sockets.http, tls)?.run())
}

fn with_service(
    builder: ServerBuilder,
    state: Data<State>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
) -> std::io::Result<ServerBuilder> {
    let address = listener.local_addr()?;
    let stopping = builder.graceful_shutdown_signal();
    builder.listen("http", listener, move || {
        let (door, tls, stopping) = (state.clone(), tls.clone(), stopping.clone());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(KeepAlive::Timeout(IDLE))
            .client_request_timeout(HEAD)
            .client_disconnect_timeout(CLOSE)
            // A client may close its side after its request and still wait for the answer.
            .h1_allow_half_closed(true)
            .local_addr(address)
            .on_connect_ext(|line: &Line, data| {
                data.insert(line.connection().clone());
            })
            .finish(map_config(application(state.clone()), |()| AppConfig::default()));
        fn_service(move |stream: TcpStream| accept(stream, door.clone(), tls.clone())).and_then(http)
    })
}

/// The routes with what happens around every request.
fn application(
    state: Data<State>,
) -> impl ServiceFactory<
    actix_http::Request,
    Config = AppConfig,
    Response = actix_web::dev::ServiceResponse<impl MessageBody>,
    Error = actix_web::HttpResponse,
    InitError = (),
> {
    let app = App::new()
        .app_data(state)
        .app_data(web::QueryConfig::default().error_handler(|e, _| ApiError::BadQuery(e.to_string()).into()))
        .app_data(web::PathConfig::default().error_handler(|e, _| ApiError::BadPath(e.to_string()).into()))
        .wrap(Compress::default())
        .wrap(from_fn(cors))
        .wrap(from_fn(observe))
        .configure(routes::routes);
    app.into_factory().map_err(|error: Error| error.error_response())
}

/// Gives a new connection its place, or none.
pub(crate) async fn accept(
    stream: TcpStream,
    state: Data<State>,
    tls: Option<TlsAcceptor>,
) -> Result<(Line, Protocol, Option<SocketAddr>), DispatchError> {
    let peer = stream.peer_addr()?;
    let place = state.places.enter(peer.ip()).map_err(|full| {
        state.metrics.connection_refused(full.label());
        DispatchError::DisconnectTimeout
    })?;
    // Small answers should not wait for more of them.
    stream.set_nodelay(true)?;
    let patience = Patience { head: HEAD, idle: IDLE, close: CLOSE, stall: state.config.request_timeout };
    let connection: Rc<Connection> = Connection::new(patience, place);
    let stream: Box<dyn Stream> = match tls {
        None => Box::new(stream),
        Some(tls) => {
            let late = |_| DispatchError::SlowRequestTimeout;
            Box::new(tokio::time::timeout(HEAD, tls.accept(stream)).await.map_err(late)??)
        }
    };
    Ok((Line::new(stream, connection), Protocol::Http1, Some(peer)))
}
