//! From settings to a running service, and its orderly end.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use actix_server::ServerHandle;
use actix_web::web::{self, Data};
use anyhow::{Context, anyhow};
use dtkc_infer::{ModelFile, Runtime};
use tokio::sync::mpsc::Receiver;

use crate::bound::Bound;
use crate::config::ServeConfig;
use crate::http::{self, Sockets};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models;
use crate::routes;
use crate::state::{Phase, State};

/// Between two rounds of tidying up.
const TIDY: Duration = Duration::from_secs(5);

/// What a running service can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Answer what was accepted, then end. The second time: end at once.
    Stop,
    /// Load model files that have changed.
    Reload,
}

/// What a service says once it takes requests.
#[derive(Debug)]
pub struct Ready {
    /// Where it listens.
    pub address: SocketAddr,
    /// How to reach it by gRPC from this machine, where it speaks that.
    pub grpc: Option<SocketAddr>,
    /// How to reach it from this machine.
    pub url: String,
    /// The models under their names, the default one first.
    pub models: Vec<ModelFile>,
    /// Whether clients need a key.
    pub needs_key: bool,
    /// How much memory it takes at most, in bytes.
    pub memory: u64,
    /// The same in words, with its parts.
    pub memory_text: String,
}

/// Runs a service inside an actix system until `controls` say stop, or end. It looks at no signal and prints nothing:
/// that is for the program, which hears of `ready` when every model has run a warm-up.
pub async fn serve(
    config: ServeConfig,
    mut controls: Receiver<Control>,
    ready: impl FnOnce(&Ready),
) -> anyhow::Result<()> {
    config.check()?;
    let keys = Keys::load(&config)?;
    let runtime = Runtime::for_device(config.device, config.onnxruntime.as_deref())?;
    let metrics = Metrics::new().context("the metrics cannot be set up")?;
    if let Some(folder) = &config.state_dir {
        fs_err::create_dir_all(folder).context("--state-dir cannot be used")?;
    }
    let models = models::open_all(&config.model, config.state_dir.as_deref(), &metrics).map_err(|e| anyhow!(e))?;
    let sockets = Sockets::open(&config)?;
    let (address, grpc) = (sockets.http_address()?, sockets.grpc_address()?);
    let state = Data::new(State::new(config, models, metrics, keys, runtime));

    let server = http::start(&state, sockets)?;
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
        () = stopped(&mut controls, || {}) => {
            handle.stop(false).await;
            return Ok(());
        }
    }
    state.set_phase(Phase::Ready);
    ready(&describe(&state, address, grpc));
    actix_web::rt::spawn(tidy(state.clone()));
    stopped(&mut controls, || reload_all(state.clone())).await;
    let in_time = finish(&state, handle, &mut controls).await;
    serving.await.context("the server ended in a panic")?.context("the server failed")?;
    if !in_time {
        tracing::warn!("some requests were cut off: they took longer than --stop-timeout");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Waits for the word to stop; whoever has dropped the other end wants no service either.
async fn stopped(controls: &mut Receiver<Control>, reload: impl Fn()) {
    while let Some(Control::Reload) = controls.recv().await {
        reload();
    }
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

/// A second word to stop; nothing where nobody can give one any more.
async fn again(controls: &mut Receiver<Control>) -> Option<()> {
    loop {
        if controls.recv().await? == Control::Stop {
            return Some(());
        }
    }
}

/// Takes requests for a short while, so that whoever sends them can notice; then stops accepting and answers what was
/// accepted, within the limit. A second word to stop ends it at once.
async fn finish(state: &Data<State>, handle: ServerHandle, controls: &mut Receiver<Control>) -> bool {
    state.set_phase(Phase::Stopping);
    let limit = state.config.stop_timeout;
    tokio::select! {
        () = tokio::time::sleep(state.config.drain) => {}
        Some(()) = again(controls) => {}
    }
    tracing::info!("stopping; accepted requests have {} to finish", dtkc_human::duration(limit));
    let deadline = Instant::now() + limit;
    tokio::select! {
        _ = handle.stop(true) => {}
        Some(()) = again(controls) => handle.stop(false).await,
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
        state.guesses.forget_quiet_clients();
    }
}

fn describe(state: &State, address: SocketAddr, grpc: Option<SocketAddr>) -> Ready {
    let scheme = if state.config.tls_cert.is_some() { "https" } else { "http" };
    let bound = Bound::new(&state.config, &state.models);
    state.metrics.memory_bound(bound.total());
    Ready {
        address,
        grpc: grpc.map(reachable),
        memory: bound.total(),
        memory_text: bound.to_string(),
        url: format!("{scheme}://{}", reachable(address)),
        models: state.models.iter().map(|slot| slot.served().model.clone()).collect(),
        needs_key: state.keys.required(),
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;
    use dtkc_testing::{files, model};

    use super::*;

    /// Status, error code and waiting time of an answer.
    type Told = (u16, String, String);

    async fn ask(url: &str, path: &str, image: Option<Vec<u8>>) -> Told {
        let url = format!("{url}{path}");
        let asking = web::block(move || {
            let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
            let mut answer = match image {
                Some(image) => agent.post(url).header("content-type", "image/png").send(&image[..]).unwrap(),
                None => agent.get(url).call().unwrap(),
            };
            let text = answer.body_mut().read_to_string().unwrap();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            let wait = answer.headers().get("retry-after").map_or("", |wait| wait.to_str().unwrap());
            (answer.status().as_u16(), json["code"].as_str().unwrap_or_default().to_owned(), wait.to_owned())
        });
        asking.await.unwrap()
    }

    #[actix_web::test]
    async fn it_listens_at_once_and_is_ready_only_after_a_warm_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.onnx");
        std::fs::write(&path, model::model(1)).unwrap();
        let flags = ["dtkc-serve", "--port", "0", "--workers", "1", "--model", path.to_str().unwrap()];
        let config = ServeConfig::parse_from(flags);
        let metrics = Metrics::new().unwrap();
        let models = models::open_all(&config.model, None, &metrics).unwrap();
        let sockets = Sockets::open(&config).unwrap();
        let url = format!("http://{}", sockets.http_address().unwrap());
        let runtime = Runtime::find(None).unwrap();
        let state = Data::new(State::new(config, models, metrics, Keys::default(), runtime));
        let server = http::start(&state, sockets).unwrap();
        let handle = server.handle();
        let serving = actix_web::rt::spawn(server);

        let image = || Some(files::gray_png(model::SIDE as u32, model::SIDE as u32, 7));
        let starting: Told = (503, "starting".into(), "1".into());
        assert_eq!(ask(&url, "/readyz", None).await, starting);
        assert_eq!(ask(&url, "/v1/assign", image()).await, starting);
        assert_eq!(ask(&url, "/healthz", None).await.0, 200);
        start_models(&state).unwrap();
        state.set_phase(Phase::Ready);
        assert_eq!(ask(&url, "/readyz", None).await.0, 200);
        assert_eq!(ask(&url, "/v1/assign", image()).await.0, 200);
        handle.stop(false).await;
        serving.await.unwrap().unwrap();
    }
}
