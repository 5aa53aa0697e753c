//! The items of a run, as the training loop and a learner ask for them.

use dtkc_core::augment::BatchKey;
use dtkc_dataset::{Batches, Dataset, LoadOptions};
use dtkc_item::{Batch, ItemShape};
use dtkc_methods::LearnError;
use dtkc_methods::learner::Passes;
use dtkc_methods::places::{self, Pass, Purpose};
use dtkc_observe::Observer;

use crate::config::RunConfig;
use crate::error::TrainError;

/// The loader of a run. Every order depends on the seed of the run and its purpose alone.
pub struct RunData<'a> {
    batches: Batches,
    seed: u64,
    compared: usize,
    observer: &'a dyn Observer,
}

impl<'a> RunData<'a> {
    /// Opens the dataset of a run.
    pub fn open(config: &RunConfig, observer: &'a dyn Observer) -> Result<Self, TrainError> {
        let options = LoadOptions {
            batch: config.items_per_step(),
            seed: places::derive(config.run.seed, Purpose::Order, &[]),
            memory_budget: config.run.memory_budget,
            ..LoadOptions::default()
        };
        let batches = Batches::new(&config.data.path, options)?;
        Ok(Self { batches, seed: config.run.seed, compared: config.run.comparison_batches, observer })
    }

    /// The dataset underneath.
    pub fn dataset(&self) -> &Dataset {
        self.batches.dataset()
    }

    /// Steps of an epoch.
    pub fn steps(&self) -> usize {
        self.batches.batches_per_epoch()
    }

    /// The batches of one pass from batch number `first` on.
    pub fn from(&mut self, pass: Pass, first: usize) -> impl Iterator<Item = Result<Batch, TrainError>> + '_ {
        self.batches.epoch_from(pass.epoch(), first).map(|batch| Ok(batch?))
    }
}

impl Passes for RunData<'_> {
    fn len(&self) -> usize {
        self.batches.len()
    }

    fn shape(&self) -> ItemShape {
        self.dataset().shape()
    }

    fn batches(&mut self, pass: Pass) -> Box<dyn Iterator<Item = Result<Batch, LearnError>> + '_> {
        let observer = self.observer;
        Box::new(self.batches.epoch(pass.epoch()).map(move |batch| match observer.stop() {
            true => Err(LearnError::Stopped),
            false => batch.map_err(|error| LearnError::Items(Box::new(error))),
        }))
    }

    fn comparison(&mut self) -> Box<dyn Iterator<Item = Result<(Batch, BatchKey), LearnError>> + '_> {
        let (seed, count) = (self.seed, self.compared);
        let numbered = self.batches(Pass::Comparison).take(count).enumerate();
        Box::new(numbered.map(move |(i, batch)| Ok((batch?, places::comparison_views(seed, i)))))
    }

    fn stop(&self) -> bool {
        self.observer.stop()
    }

    fn note(&self, text: &str) {
        self.observer.note(format_args!("{text}"));
    }

    fn say(&self, text: &str) {
        self.observer.say(text);
    }
}
