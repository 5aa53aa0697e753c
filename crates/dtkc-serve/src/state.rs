//! What every request handler can reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use dtkc_infer::{Runtime, SessionOptions};

use crate::config::ServeConfig;
use crate::connection::Places;
use crate::engine::{EngineOptions, QueueLimits, Room};
use crate::error::ApiError;
use crate::hosts::Hosts;
use crate::intake::Budget;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models::Slot;
use crate::rate::{Guesses, Limiter};

/// Shared by all connections and threads.
pub struct State {
    /// The settings.
    pub config: ServeConfig,
    /// The models, the default one first.
    pub models: Vec<Slot>,
    /// What Prometheus can read.
    pub metrics: Metrics,
    /// Memory for request bodies.
    pub budget: Arc<Budget>,
    /// Memory for decoding.
    room: Arc<Room>,
    /// Keys that clients must send.
    pub keys: Keys,
    /// How often one client may ask.
    pub limiter: Option<Limiter>,
    /// How many wrong keys one address may send.
    pub guesses: Guesses,
    /// The names under which this service is known.
    pub hosts: Hosts,
    /// Connections that are open.
    pub places: Arc<Places>,
    /// ONNX Runtime.
    pub runtime: Runtime,
    phase: AtomicU8,
}

/// Where the service is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Models are being loaded.
    Starting = 0,
    /// Every model has run a warm-up inference.
    Ready = 1,
    /// It ends: no longer ready, but still taking requests until nobody sends any, then no more.
    Stopping = 2,
}

impl State {
    /// Puts the parts together; the phase is [`Phase::Starting`].
    pub fn new(config: ServeConfig, models: Vec<Slot>, metrics: Metrics, keys: Keys, runtime: Runtime) -> Self {
        let budget = Budget::new(config.max_buffered);
        let room = Room::new(config.image_limits().memory());
        let limiter = config.rate_limit.map(Limiter::new);
        let guesses = Guesses::new(config.wrong_key_limit);
        let hosts = Hosts::new(&config);
        let places = Places::new(config.max_client_connections, config.max_connections, &config.trusted_proxy);
        let phase = AtomicU8::new(0);
        Self { config, models, metrics, budget, room, keys, limiter, guesses, hosts, places, runtime, phase }
    }

    /// Where the service is in its life.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Stopping,
        }
    }

    /// Moves on to another phase.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// The model that requests without a name use.
    pub fn default_model(&self) -> Result<&Slot, ApiError> {
        self.models.first().ok_or(ApiError::NotFound)
    }

    /// The model of that name.
    pub fn model(&self, name: &str) -> Result<&Slot, ApiError> {
        let found = self.models.iter().find(|slot| slot.name() == name);
        // A long made-up name would only fill the log.
        found.ok_or_else(|| ApiError::UnknownModel(name.chars().take(100).collect()))
    }

    /// How models are run.
    pub fn engine_options(&self) -> EngineOptions {
        let config = &self.config;
        EngineOptions {
            queue: QueueLimits {
                capacity: config.max_queue,
                max_batch: config.max_batch,
                max_wait: Duration::from_millis(config.max_wait_ms),
                workers: config.worker_threads(),
            },
            images: config.image_limits(),
            request_work: config.request_pixels(),
            room: self.room.clone(),
            session: SessionOptions { device: config.device, intra_threads: 1, max_steps: config.max_steps as usize },
        }
    }
}
