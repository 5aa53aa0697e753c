//! One served model: the file that is running now, its names, and how another file takes its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use dtkc_files::Lock;
use dtkc_infer::{InferError, ModelFile, Runtime};

use super::edits::Change;
use super::names::SideFile;
use crate::engine::{Answered, Engine, EngineOptions, Order, Refused};
use crate::error::ApiError;
use crate::metrics::{Metrics, ModelMetrics};

/// A model under its name. The file behind it can change; the name cannot.
#[derive(Debug)]
pub struct Slot {
    name: String,
    /// What `--model` said: a bundled name or a path. Never from a request.
    source: String,
    state_dir: Option<PathBuf>,
    current: RwLock<Arc<Served>>,
    /// Held while a reload runs.
    reloading: Mutex<()>,
    /// Held while a name is written.
    renaming: Mutex<()>,
}

/// One model file in service.
#[derive(Debug)]
pub struct Served {
    /// The file.
    pub model: ModelFile,
    /// SHA-256 of the file.
    pub fingerprint: String,
    /// What is counted for it.
    pub metrics: Arc<ModelMetrics>,
    side_file: SideFile,
    cluster_names: RwLock<Arc<[String]>>,
    /// Empty while the service starts.
    engine: OnceLock<Engine>,
    /// Set where the model was unloaded: it has no engine until it is loaded again.
    unloaded: bool,
}

/// What a reload did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reloaded {
    /// The file has the same content as before.
    Unchanged,
    /// The new file is serving.
    Swapped,
}

impl Slot {
    /// Opens the model file and its names; nothing runs yet.
    pub fn open(name: String, source: String, state_dir: Option<&Path>, metrics: &Metrics) -> Result<Self, String> {
        let model = ModelFile::open(&source).map_err(|error| error.to_string())?;
        let served = Served::new(&name, model, state_dir, metrics)?;
        Ok(Self {
            name,
            source,
            state_dir: state_dir.map(Path::to_owned),
            current: RwLock::new(Arc::new(served)),
            reloading: Mutex::new(()),
            renaming: Mutex::new(()),
        })
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that is serving now.
    pub fn served(&self) -> Arc<Served> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts the workers and returns after their warm-up.
    pub fn start(&self, runtime: &Runtime, options: &EngineOptions) -> Result<(), String> {
        let served = self.served();
        let engine = Engine::start(runtime, &served.model, options, &served.metrics)?;
        served.engine.set(engine).map_err(|_| "the model was started twice".to_owned())
    }

    /// Queues an order and waits for its end. A file swapped in between means asking the new one.
    pub async fn run(&self, mut order: Order, timeout: Duration) -> Result<(Arc<Served>, Answered), ApiError> {
        let (served, mut ticket) = loop {
            let served = self.served();
            match served.engine()?.submit(order) {
                Ok(ticket) => break (served, ticket),
                Err((Refused::Full { queued, wait }, refused)) => {
                    return Err(queue_full(queued, refused.uploads.len(), wait));
                }
                Err((Refused::Closed, _)) if Arc::ptr_eq(&served, &self.served()) => return Err(ApiError::Stopping),
                Err((Refused::Closed, refused)) => order = refused,
            }
        };
        let deadline = ticket.deadline().into();
        let waited = tokio::time::timeout_at(deadline, ticket.wait()).await;
        let answered = waited.map_err(|_| ApiError::Deadline(timeout))?.map_err(ApiError::Inference)?;
        served.metrics.queued(answered.queued);
        Ok((served, answered))
    }

    /// Loads the file again and swaps it in once it has run a warm-up. Requests already queued are answered by the
    /// old one; on any failure the old one stays. Blocks while the new one loads.
    pub fn reload(&self, runtime: &Runtime, options: &EngineOptions, metrics: &Metrics) -> Result<Reloaded, ApiError> {
        let Ok(_guard) = self.reloading.try_lock() else { return Err(ApiError::ReloadRunning) };
        let result = self.try_reload(runtime, options, metrics);
        let label = match &result {
            Ok(Reloaded::Swapped) => "swapped",
            Ok(Reloaded::Unchanged) => "unchanged",
            Err(_) => "failed",
        };
        metrics.reload(&self.name, label);
        result
    }

    fn try_reload(&self, runtime: &Runtime, options: &EngineOptions, metrics: &Metrics) -> Result<Reloaded, ApiError> {
        let model = ModelFile::open(&self.source).map_err(|error| self.bad_file(&error))?;
        let served =
            Served::new(&self.name, model, self.state_dir.as_deref(), metrics).map_err(|e| self.bad_start(&e))?;
        let current = self.served();
        if served.fingerprint == current.fingerprint && !current.unloaded {
            // The names may have been changed by another server, or by hand.
            let _guard = self.renaming.lock().unwrap_or_else(PoisonError::into_inner);
            current.set_names(&current.side_file.read().map_err(|e| self.bad_start(&e.to_string()))?);
            return Ok(Reloaded::Unchanged);
        }
        let engine = Engine::start(runtime, &served.model, options, &served.metrics).map_err(|e| self.bad_start(&e))?;
        served.engine.set(engine).map_err(|_| ApiError::Internal)?;
        self.replace(served);
        Ok(Reloaded::Swapped)
    }

    /// Whether the file is the user's own, and not one that came with the programs.
    pub fn is_own_file(&self) -> bool {
        self.served().model.path() == Some(Path::new(&self.source))
    }

    /// Changes the clusters in the model's own file, which serves from then on, as after a reload. `meant` is the file that the
    /// client knows. On any failure the file and what serves stay as they are. Blocks.
    pub fn edit(
        &self,
        meant: &Served,
        change: &Change,
        runtime: &Runtime,
        options: &EngineOptions,
        metrics: &Metrics,
    ) -> Result<(), ApiError> {
        let Ok(_guard) = self.reloading.try_lock() else { return Err(ApiError::ReloadRunning) };
        if !self.is_own_file() {
            return Err(ApiError::Bundled(self.name.clone()));
        }
        let not_saved = |error: &dyn std::fmt::Display| {
            tracing::error!(model = self.name, "the clusters were not changed: {error}");
            ApiError::EditNotSaved
        };
        let path = Path::new(&self.source);
        // Another server may serve the same file: one at a time.
        let _lock = Lock::wait(&path.with_extension("onnx.lock")).map_err(|error| not_saved(&error))?;
        let model = ModelFile::open(path).map_err(|error| self.bad_file(&error))?;
        let served = self.served();
        served.engine()?;
        if [&meant.fingerprint, &model.fingerprint()].iter().any(|other| **other != served.fingerprint) {
            return Err(ApiError::ModelChanged);
        }
        let given = served.side_file.read().map_err(|error| self.bad_start(&error.to_string()))?;
        let bytes = change.apply(model.bytes(), model.metadata(), &given)?;
        let model = model.with_bytes(bytes).map_err(|error| self.bad_file(&error))?;
        let next =
            Served::new(&self.name, model, self.state_dir.as_deref(), metrics).map_err(|e| self.bad_start(&e))?;
        let engine = Engine::start(runtime, &next.model, options, &next.metrics).map_err(|e| self.bad_start(&e))?;
        next.engine.set(engine).map_err(|_| ApiError::Internal)?;
        if let Err(error) = dtkc_files::write(path, next.model.bytes()) {
            next.close();
            return Err(not_saved(&error));
        }
        self.replace(next);
        Ok(())
    }

    /// Takes the model out of service: what was accepted is still answered.
    pub fn unload(&self, metrics: &Metrics) -> Result<(), ApiError> {
        let Ok(_guard) = self.reloading.try_lock() else { return Err(ApiError::ReloadRunning) };
        let model = self.served().model.clone();
        let mut served =
            Served::new(&self.name, model, self.state_dir.as_deref(), metrics).map_err(|e| self.bad_start(&e))?;
        served.unloaded = true;
        self.replace(served);
        Ok(())
    }

    fn replace(&self, served: Served) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, Arc::new(served));
        drop(current);
        old.close();
    }

    /// What is wrong with the file, for the log with its path and for the client without.
    fn bad_file(&self, error: &InferError) -> ApiError {
        tracing::error!(model = self.name, "the model was not reloaded and the old one keeps serving: {error}");
        ApiError::BadModelFile(match error {
            InferError::Model { error, .. } => error.to_string(),
            _ => "its file cannot be read; the log says why".into(),
        })
    }

    fn bad_start(&self, reason: &str) -> ApiError {
        tracing::error!(model = self.name, "the model was not reloaded and the old one keeps serving: {reason}");
        ApiError::BadModelFile("it cannot be started; the log says why".into())
    }

    /// Gives a cluster a name, or takes it away; on the disk first. Blocks.
    pub fn rename(&self, served: &Served, id: usize, name: Option<&str>) -> std::io::Result<()> {
        let _guard = self.renaming.lock().unwrap_or_else(PoisonError::into_inner);
        served.set_names(&served.side_file.set(id, name)?);
        Ok(())
    }

    /// Accepts nothing more.
    pub fn close(&self) {
        self.served().close();
    }

    /// Waits for the workers of a closed model; false where they did not end in time.
    pub fn join(&self, deadline: Instant) -> bool {
        self.served().engine.get().is_none_or(|engine| engine.join(deadline))
    }
}

impl Served {
    fn new(name: &str, mut model: ModelFile, state_dir: Option<&Path>, metrics: &Metrics) -> Result<Self, String> {
        let side_file = SideFile::of(name, &model, state_dir);
        let names = side_file.read().map_err(|error| error.to_string())?;
        // Clients and the log know it by the name that it is served under.
        model.set_name(name);
        let served = Self {
            fingerprint: model.fingerprint(),
            metrics: Arc::new(metrics.model(name, model.clusters())),
            model,
            side_file,
            cluster_names: RwLock::new(Arc::new([])),
            engine: OnceLock::new(),
            unloaded: false,
        };
        served.set_names(&names);
        Ok(served)
    }

    /// What each cluster is called now.
    pub fn cluster_names(&self) -> Arc<[String]> {
        self.cluster_names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The running engine, or the answer why there is none.
    pub fn engine(&self) -> Result<&Engine, ApiError> {
        if self.unloaded {
            return Err(ApiError::Unloaded(self.model.name().to_owned()));
        }
        self.engine.get().ok_or(ApiError::Starting)
    }

    fn set_names(&self, given: &BTreeMap<usize, String>) {
        let metadata = self.model.metadata();
        let name = |id: usize| given.get(&id).cloned().unwrap_or_else(|| metadata.cluster_name(id));
        let all = (0..metadata.k()).map(name).collect();
        *self.cluster_names.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    fn close(&self) {
        if let Some(engine) = self.engine.get() {
            engine.close();
        }
    }
}

/// The answer to a request that does not fit the queue.
pub fn queue_full(queued: usize, images: usize, wait: Duration) -> ApiError {
    ApiError::QueueFull { queued, images, retry_after: wait.as_secs_f64().ceil().clamp(1.0, 60.0) as u64 }
}
