//! What a run writes down: the log and the checkpoints, in an order that survives a crash at any point.

use std::time::{Duration, Instant};

use crate::config::RunConfig;
use crate::error::TrainError;
use crate::log::{EpochRecord, Log};
use crate::pretrained;
use crate::resources;
use crate::restart::{self, BestMeta, Identity, Restart, StoredNetwork};
use crate::run_dir::RunDir;

/// The log and the checkpoints of a run.
pub(super) struct Journal<'a> {
    run: &'a RunDir,
    config_hash: String,
    data: String,
    /// Whether another run's pretraining was taken over.
    is_adopted: bool,
    log: Log,
    machine: String,
    interval: Duration,
    last_save: Instant,
    /// When the last line was written, or work began.
    since: Instant,
}

impl<'a> Journal<'a> {
    /// Opens the log and cuts off what the checkpoints do not know.
    pub(super) fn open(run: &'a RunDir, config: &RunConfig) -> Result<Self, TrainError> {
        let lines = restart::known_lines(run, config.plan.restarts)?;
        Ok(Self {
            run,
            config_hash: config.hash()?,
            data: config.data.fingerprint.clone(),
            is_adopted: !config.run.pretrained_hash.is_empty(),
            log: Log::open(&run.log(), lines)?,
            machine: resources::machine_kind(),
            interval: Duration::from_secs_f64(config.run.checkpoint_seconds),
            last_save: Instant::now(),
            since: Instant::now(),
        })
    }

    /// The run directory.
    pub(super) fn root(&self) -> &std::path::Path {
        self.run.root()
    }

    /// What a checkpoint of this restart must say that it belongs to.
    pub(super) fn identity(&self, restart: usize) -> Identity {
        Identity { config_hash: self.config_hash.clone(), data: self.data.clone(), restart }
    }

    /// Epochs that the log holds.
    pub(super) fn epochs(&self) -> usize {
        self.log.lines()
    }

    /// Adds an epoch to the log, with what it took of the machine until now.
    pub(super) fn append(&mut self, record: &EpochRecord) -> Result<(), TrainError> {
        let wall_seconds = Some(self.unlogged().as_secs_f64());
        let peak_memory_bytes = resources::peak_memory();
        let machine = Some(self.machine.clone());
        self.log.append(&EpochRecord { wall_seconds, peak_memory_bytes, machine, ..record.clone() })?;
        self.since = Instant::now();
        Ok(())
    }

    /// The time that no line of the log has yet.
    pub(super) fn unlogged(&self) -> Duration {
        self.since.elapsed()
    }

    /// Work began before the journal was opened.
    pub(super) fn set_begin(&mut self, begin: Instant) {
        self.since = begin;
    }

    /// Saves a restart. The log goes to the disk first: a checkpoint must never know more lines than the disk has.
    pub(super) fn save(&mut self, restart: &Restart) -> Result<(), TrainError> {
        self.log.sync()?;
        restart.save(&self.run.last(restart.index), &self.identity(restart.index), self.log.lines())?;
        self.last_save = Instant::now();
        Ok(())
    }

    /// Saves a restart when the last checkpoint is old enough.
    pub(super) fn save_if_due(&mut self, restart: &Restart) -> Result<(), TrainError> {
        if self.last_save.elapsed() >= self.interval { self.save(restart) } else { Ok(()) }
    }

    /// Writes what a restart's pretraining has made, once that stage is over.
    pub(super) fn save_pretrained(&self, restart: &Restart, stage: &str) -> Result<(), TrainError> {
        match stage == dtkc_methods::learner::PRETRAINING && !self.is_adopted {
            true => pretrained::write(self.run, &self.identity(restart.index), &restart.learner.pretrained()),
            false => Ok(()),
        }
    }

    /// Writes the network of the best epoch of a restart that has ended.
    pub(super) fn save_network(&self, restart: &Restart) -> Result<(), TrainError> {
        let identity = self.identity(restart.index);
        let epoch = restart.best.as_ref().map_or(0, |best| best.epoch);
        let sizes = restart.outcome.as_ref().map(|outcome| outcome.sizes.clone()).unwrap_or_default();
        let network = StoredNetwork { meta: BestMeta { identity, epoch }, weights: restart.learner.weights(), sizes };
        network.save(&self.run.best(restart.index))
    }
}
