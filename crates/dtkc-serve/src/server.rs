//! From settings to a running service, and its orderly end.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use actix_web::dev::{Server, ServerHandle};
use actix_web::http::KeepAlive;
use actix_web::middleware::{Compress, from_fn};
use actix_web::web::{self, Data};
use actix_web::{App, HttpServer};
use anyhow::{Context, anyhow};
use dtkc_cli::exit::Interrupted;
use dtkc_infer::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{LogFormat, ServeConfig};
use crate::error::ApiError;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::middleware::{access, cors, observe};
use crate::models;
use crate::routes;
use crate::state::{Phase, State};
use crate::{logging, tls};

/// A connection that says nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(75);
/// A request's head must be there by then.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client may take to close its side.
const CLOSE: Duration = Duration::from_secs(3);
/// Connections per thread; more wait in the system's queue.
const CONNECTIONS: usize = 4096;
/// Between two rounds of tidying up.
const TIDY: Duration = Duration::from_secs(5);

/// Runs the service until a signal ends it.
pub fn run(config: ServeConfig) -> anyhow::Result<()> {
    config.check()?;
    logging::start(&config)?;
    actix_web::rt::System::new().block_on(serve(config))
}

async fn serve(config: ServeConfig) -> anyhow::Result<()> {
    let keys = Keys::load(&config)?;
    let runtime = Runtime::for_device(config.device, config.onnxruntime.as_deref())?;
    let metrics = Metrics::new().context("the metrics cannot be set up")?;
    if let Some(folder) = &config.state_dir {
        fs_err::create_dir_all(folder).context("--state-dir cannot be used")?;
    }
    let models = models::open_all(&config.model, config.state_dir.as_deref(), &metrics).map_err(|e| anyhow!(e))?;
    let listener = listen(&config)?;
    let address = listener.local_addr()?;
    let state = Data::new(State::new(config, models, metrics, keys, runtime));

    let mut signals = Signals::new()?;
    let mut reload = signal(SignalKind::hangup())?;
    let server = start_http(&state, listener)?;
    let handle = server.handle();
    let serving = actix_web::rt::spawn(server);
    // The port answers at once, with 503 until the models have run a warm-up.
    let loading = web::block({
        let state = state.clone();
        move || start_models(&state)
    });
    tokio::select! {
        loaded = loading => loaded.map_err(|_| anyhow!("a model could not be loaded"))?.map_err(|e| anyhow!(e))?,
        // Nothing is being served yet, so there is nothing to finish.
        stop = signals.stop() => return ended(stop),
    }
    state.set_phase(Phase::Ready);
    announce(&state, address);
    actix_web::rt::spawn(tidy(state.clone()));

    let stop = loop {
        tokio::select! {
            stop = signals.stop() => break stop,
            _ = reload.recv() => reload_all(state.clone()),
        }
    };
    let in_time = finish(&state, handle, &mut signals).await;
    serving.await.context("the server ended in a panic")?.context("the server failed")?;
    if !in_time {
        tracing::warn!("some requests were cut off: they took longer than --stop-timeout");
    }
    tracing::info!("stopped");
    ended(stop)
}

fn listen(config: &ServeConfig) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(config.host, config.port);
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow!("{address} is already in use; stop the other program or choose another port with --port")
        }
        _ => anyhow!("cannot listen on {address}: {error}; choose another --host or --port"),
    })?;
    cut_off_stalled(&listener, config.request_timeout)?;
    Ok(listener)
}

/// A client that has asked and then never reads would keep its answer, its connection and its place among the
/// connections for ever: the HTTP library has no limit for writing. The system has one, which connections inherit
/// from the socket that accepts them; it counts from the last byte that the client took.
fn cut_off_stalled(listener: &TcpListener, limit: Duration) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(listener).set_tcp_user_timeout(Some(limit))?;
    #[cfg(not(target_os = "linux"))]
    let _ = (listener, limit);
    Ok(())
}

fn start_http(state: &Data<State>, listener: TcpListener) -> anyhow::Result<Server> {
    let config = &state.config;
    let tls = match (&config.tls_cert, &config.tls_key) {
        (Some(certificate), Some(key)) => Some(tls::load(certificate, key)?),
        _ => None,
    };
    let stop_seconds = config.stop_timeout.as_secs_f64().ceil() as u64;
    let shared = state.clone();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(shared.clone())
            .app_data(web::QueryConfig::default().error_handler(|e, _| ApiError::BadQuery(e.to_string()).into()))
            .app_data(web::PathConfig::default().error_handler(|e, _| ApiError::BadPath(e.to_string()).into()))
            .wrap(Compress::default())
            .wrap(from_fn(access))
            .wrap(from_fn(cors))
            .wrap(from_fn(observe))
            .configure(routes::routes)
    })
    .workers(config.connection_threads())
    .max_connections(CONNECTIONS)
    .keep_alive(KeepAlive::Timeout(IDLE))
    .client_request_timeout(HEAD)
    .client_disconnect_timeout(CLOSE)
    // The end of a client's side of the connection means that it has gone, and its images leave the queue.
    .h1_allow_half_closed(false)
    .tcp_nodelay(true)
    .shutdown_timeout(stop_seconds)
    .disable_signals();
    let server = match tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls)?,
        None => server.listen(listener)?,
    };
    Ok(server.run())
}

/// Starts the workers of every model; returns after the last warm-up. Blocks.
fn start_models(state: &State) -> Result<(), String> {
    let options = state.engine_options();
    for slot in &state.models {
        let started = Instant::now();
        slot.start(&state.runtime, &options)?;
        let seconds = started.elapsed().as_secs_f64();
        tracing::debug!(model = slot.name(), seconds, "loaded and warmed up");
    }
    Ok(())
}

/// Stops accepting, answers what was accepted, within the limit; a second signal ends it at once.
async fn finish(state: &Data<State>, handle: ServerHandle, signals: &mut Signals) -> bool {
    state.set_phase(Phase::Stopping);
    let limit = state.config.stop_timeout;
    tracing::info!("stopping; accepted requests have {} to finish", dtkc_human::duration(limit));
    let deadline = Instant::now() + limit;
    tokio::select! {
        _ = handle.stop(true) => {}
        _ = signals.stop() => handle.stop(false).await,
    }
    for slot in &state.models {
        slot.close();
    }
    state.models.iter().all(|slot| slot.join(deadline))
}

/// Swaps in changed model files, without keeping anybody waiting.
fn reload_all(state: Data<State>) {
    actix_web::rt::spawn(web::block(move || {
        for slot in &state.models {
            // The outcome is in the log.
            let _ = routes::models::reload_model(&state, slot.name());
        }
    }));
}

async fn tidy(state: Data<State>) {
    loop {
        tokio::time::sleep(TIDY).await;
        state.metrics.tidy();
        if let Some(limiter) = &state.limiter {
            limiter.forget_quiet_clients();
        }
    }
}

/// Tells people where to look, and programs through the log.
fn announce(state: &State, address: SocketAddr) {
    let scheme = if state.config.tls_cert.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}", reachable(address));
    if state.config.log_format == LogFormat::Json {
        let models: Vec<&str> = state.models.iter().map(|slot| slot.name()).collect();
        tracing::info!(url, models = models.join(","), "ready");
    } else {
        println!("dtkc-serve {} is ready", env!("CARGO_PKG_VERSION"));
        for slot in &state.models {
            let served = slot.served();
            let (spec, k) = (served.model.spec(), served.model.clusters());
            println!("  model  {}: {}x{} {}, {k} clusters", slot.name(), spec.width, spec.height, spec.color);
        }
        println!("  page   {url}/");
        println!("  docs   {url}/docs");
        println!("  try    curl -F image=@digit.png {url}/v1/assign");
    }
    if !address.ip().is_loopback() && !state.keys.required() {
        tracing::warn!("anybody who can reach {address} can use this service; set DTKC_API_KEY to ask for a key");
    }
}

/// An address that can be put into a browser on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The signals that end the service.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// Which signal ended the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Terminated,
    Interrupted,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn stop(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Terminated,
            _ = self.interrupt.recv() => Stop::Interrupted,
        }
    }
}

fn ended(stop: Stop) -> anyhow::Result<()> {
    match stop {
        Stop::Terminated => Ok(()),
        Stop::Interrupted => Err(Interrupted("by Ctrl-C".into()).into()),
    }
}
