//! What the program adds to the service: the log, signals, and a word on standard output.

mod logging;

use std::cell::Cell;
use std::rc::Rc;

use dtkc_cli::exit::Interrupted;
use dtkc_serve::config::LogFormat;
use dtkc_serve::{Control, Ready, ServeConfig};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Sender, channel};

/// Runs the service until a signal ends it.
pub fn run(config: ServeConfig) -> anyhow::Result<()> {
    config.check()?;
    logging::start(&config)?;
    actix_web::rt::System::new().block_on(async {
        let (controls, received) = channel(8);
        let ended_by = Rc::new(Cell::new(None));
        actix_web::rt::spawn(Signals::new()?.forward(controls, ended_by.clone()));
        let format = config.log_format;
        dtkc_serve::serve(config, received, |ready| announce(ready, format)).await?;
        match ended_by.get() {
            Some(Stop::Interrupted) => Err(Interrupted("by Ctrl-C".into()).into()),
            _ => Ok(()),
        }
    })
}

/// The signals that mean something to the service.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// Which signal ended the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Terminated,
    Interrupted,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Turns signals into words for the service and notes which one was the first to stop the service.
    async fn forward(mut self, controls: Sender<Control>, ended_by: Rc<Cell<Option<Stop>>>) {
        loop {
            let stop = tokio::select! {
                _ = self.terminate.recv() => Some(Stop::Terminated),
                _ = self.interrupt.recv() => Some(Stop::Interrupted),
                _ = self.hangup.recv() => None,
            };
            let control = if stop.is_some() { Control::Stop } else { Control::Reload };
            ended_by.set(ended_by.get().or(stop));
            if controls.send(control).await.is_err() {
                return;
            }
        }
    }
}

/// Tells people where to look, and programs through the log.
fn announce(ready: &Ready, format: LogFormat) {
    let Ready { address, grpc, url, models, needs_key, memory, memory_text } = ready;
    match format {
        LogFormat::Json => {
            let models: Vec<&str> = models.iter().map(|model| model.name()).collect();
            let grpc = grpc.map(|address| address.to_string());
            tracing::info!(url, grpc, models = models.join(","), memory_bound = memory, "ready");
        }
        LogFormat::Text => {
            println!("dtkc-serve {} is ready", env!("CARGO_PKG_VERSION"));
            for model in models {
                let (name, k) = (model.name(), model.clusters());
                match model.image() {
                    Some(spec) => {
                        println!("  model  {name}: {}x{} {}, {k} clusters", spec.width, spec.height, spec.color)
                    }
                    None => println!("  model  {name}: {}, {k} clusters", model.shape()),
                }
            }
            println!("  page   {url}/");
            println!("  docs   {url}/docs");
            if let Some(grpc) = grpc {
                println!("  gRPC   {grpc}");
            }
            println!("  memory {memory_text}");
            match models.first().is_some_and(|model| model.image().is_none()) {
                true => println!("  try    curl -F file=@sequences.csv {url}/v1/assign"),
                false => println!("  try    curl -F image=@digit.png {url}/v1/assign"),
            }
        }
    }
    if !address.ip().is_loopback() && !needs_key {
        tracing::warn!("anybody who can reach {address} can use this service; set DTKC_API_KEY to ask for a key");
    }
}
