//! The methods of `inference.GRPCInferenceService`.

use std::time::{Duration, Instant};

use actix_web::web::{Bytes, Data};

use super::message::Outgoing;
use super::messages;
use super::tensors;
use super::wire::Message;
use crate::error::ApiError;
use crate::extent::Extent;
use crate::intake::{Held, blocking, heavy, parse_maybe_heavy};
use crate::models::queue_full;
use crate::routes::models::reload_model;
use crate::routes::v2::check_version;
use crate::routes::v2::infer::Asked;
use crate::routes::v2::metadata::{ModelMetadata, ServerMetadata};
use crate::routes::v2::repository::{RepositoryModel, take_out};
use crate::state::{Phase, State};

/// A method of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    ServerLive,
    ServerReady,
    ModelReady,
    ServerMetadata,
    ModelMetadata,
    ModelInfer,
    RepositoryIndex,
    RepositoryModelLoad,
    RepositoryModelUnload,
}

const METHODS: [(Method, &str); 9] = [
    (Method::ServerLive, "/inference.GRPCInferenceService/ServerLive"),
    (Method::ServerReady, "/inference.GRPCInferenceService/ServerReady"),
    (Method::ModelReady, "/inference.GRPCInferenceService/ModelReady"),
    (Method::ServerMetadata, "/inference.GRPCInferenceService/ServerMetadata"),
    (Method::ModelMetadata, "/inference.GRPCInferenceService/ModelMetadata"),
    (Method::ModelInfer, "/inference.GRPCInferenceService/ModelInfer"),
    (Method::RepositoryIndex, "/inference.GRPCInferenceService/RepositoryIndex"),
    (Method::RepositoryModelLoad, "/inference.GRPCInferenceService/RepositoryModelLoad"),
    (Method::RepositoryModelUnload, "/inference.GRPCInferenceService/RepositoryModelUnload"),
];

impl Method {
    /// The method at that path, in no other spelling, with the path for the metrics.
    pub fn at(path: &str) -> Option<(Self, &'static str)> {
        METHODS.into_iter().find(|(_, own)| *own == path)
    }

    /// Whether it is a health check, which nobody is refused.
    pub fn is_open(self) -> bool {
        matches!(self, Self::ServerLive | Self::ServerReady)
    }
}

/// A call whose message has come.
pub struct Order {
    pub method: Method,
    pub message: Bytes,
    /// The memory that the message holds.
    pub held: Held,
    pub client: u64,
    /// When the client stops waiting, and how long it would have waited.
    pub deadline: Instant,
    pub timeout: Duration,
}

impl Order {
    /// Does what the method is for.
    pub async fn run(self, state: &Data<State>) -> Result<Outgoing, ApiError> {
        let message = match self.method {
            Method::ServerLive => front().flag(1, true),
            Method::ServerReady => front().flag(1, state.phase() == Phase::Ready),
            Method::ModelReady => front().flag(1, is_ready(state, self.message)?),
            Method::ServerMetadata => behind_front(&messages::server(&ServerMetadata::new(vec!["model_repository"]))),
            Method::ModelMetadata => {
                let about = messages::about(self.message)?;
                check_version(about.version())?;
                behind_front(&messages::model(&ModelMetadata::of(state.model(&about.model)?)))
            }
            Method::RepositoryIndex => {
                let models: Vec<RepositoryModel> = state.models.iter().map(RepositoryModel::of).collect();
                behind_front(&messages::index(models.iter()))
            }
            Method::RepositoryModelLoad => {
                let model = state.model(&messages::in_repository(self.message)?)?.name().to_owned();
                let (loading, name) = (state.clone(), model.clone());
                blocking(move || reload_model(&loading, &name)).await??;
                front().text(1, &model).flag(2, true)
            }
            Method::RepositoryModelUnload => {
                let model = messages::in_repository(self.message)?;
                take_out(state, &model)?;
                front().text(1, &model).flag(2, true)
            }
            Method::ModelInfer => return self.infer(state).await,
        };
        Outgoing::new(message.into_bytes(), self.held)
    }

    async fn infer(self, state: &Data<State>) -> Result<Outgoing, ApiError> {
        let Self { message, mut held, client, deadline, timeout, .. } = self;
        // The model decides what the rest of the message means.
        let about = parse_maybe_heavy(message.clone(), |message| messages::about(message.clone())).await?;
        check_version(about.version())?;
        let slot = state.model(&about.model)?;
        let served = slot.served();
        if let Some((queued, wait)) = served.engine()?.full(client) {
            return Err(queue_full(queued, 1, wait));
        }
        let (shape, limit) = (served.model.shape(), state.config.images_per_request());
        let spec = served.model.sequences(state.config.max_steps as usize);
        let read = move |message: &Bytes| {
            let size = message.len() as u64;
            if let Some(spec) = spec {
                held.grow(tensors::PER_BYTE * size)?;
                return Asked::sequences(tensors::sequences(message.clone(), limit)?, spec, limit, held);
            }
            // Pixels that are read out of a message are never larger than the message.
            held.grow(size)?;
            Asked::images(tensors::images(message.clone())?, shape, limit, held)
        };
        let (id, asked) = parse_maybe_heavy(message, read).await?;
        let told = asked.run(state, slot, client, deadline, timeout).await?;
        let (model, is_large) = (slot.name().to_owned(), Extent::is_large(told.size));
        let write = move || {
            let written = messages::infer(&Outgoing::SPACE, &model, id.as_deref(), &told)?;
            Outgoing::new(written.into_bytes(), told.held)
        };
        if is_large { heavy(write).await? } else { write() }
    }
}

/// Triton's answer for a model that is not there is that it is not ready.
fn is_ready(state: &State, message: Bytes) -> Result<bool, ApiError> {
    let about = messages::about(message)?;
    let slot = state.model(&about.model);
    Ok(check_version(about.version()).is_ok() && slot.is_ok_and(|slot| slot.served().engine().is_ok()))
}

fn front() -> Message {
    Message::behind(&Outgoing::SPACE, 0)
}

fn behind_front(message: &Message) -> Message {
    message.behind_space(&Outgoing::SPACE)
}
