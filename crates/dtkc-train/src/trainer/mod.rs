//! All restarts of a run, one after another, in stages when they are pruned.
//!
//! The state of a run is what its checkpoints say. A run that is resumed goes through the same stages again; what is
//! done already is read from the checkpoints and skipped, so there is no second record of progress that could
//! disagree with them.

mod budget;
mod epoch;
mod finish;
mod journal;


use dtkc_dataset::{Batches, LoadOptions};
use crate::config::RunConfig;
use crate::console::Console;
use crate::error::TrainError;
use crate::log;
use crate::prune::{self, Stage};
use crate::recipe::Recipe;
use crate::restart::{Ended, Restart};
use crate::run_dir::RunDir;
use crate::seeds::{self, Purpose};

use budget::Budget;
use journal::Journal;

/// Trains the restarts of one run.
pub struct Trainer<'a> {
    run: &'a RunDir,
    config: RunConfig,
    recipe: Recipe,
    batches: Batches,
    labels: Option<Vec<i64>>,
    journal: Journal<'a>,
    console: Console,
    budget: Budget,
}

impl<'a> Trainer<'a> {
    /// Opens data and log, and goes on where the checkpoints are.
    pub fn open(run: &'a RunDir, config: RunConfig, quiet: bool) -> Result<Self, TrainError> {
        let recipe = Recipe::new(&config.settings, config.model()?, config.run.device.open()?)?;
        let batches = open_batches(&config)?;
        let labels = batches.dataset().labels()?;
        let journal = Journal::open(run, &config)?;
        let spent = log::read(&run.log())?.iter().map(|record| record.seconds).sum();
        let budget = Budget::open(run, &config, spent)?;
        let console = new_console(&config, batches.len(), journal.epochs(), quiet);
        Ok(Self { run, config, recipe, batches, labels, journal, console, budget })
    }

    /// Trains what is left to train; gives back every restart, at its best epoch, with what it is worth.
    pub fn train(&mut self) -> Result<Vec<Restart>, TrainError> {
        self.plan_for_budget()?;
        let stages = prune::stages(self.config.pruning(), self.runs(), self.epochs());
        let mut alive: Vec<usize> = (0..self.runs()).collect();
        for (number, &stage) in stages.iter().enumerate() {
            let is_last = number + 1 == stages.len();
            let mut losses = Vec::with_capacity(alive.len());
            for &index in &alive {
                // A restart that was not begun when the time is up never will be.
                if !self.budget.exhausted() || index == 0 || self.run.last(index).exists() {
                    losses.push((index, self.advance(index, number, stage, is_last)?));
                }
            }
            let kept = prune::survivors(&losses, stage.keep);
            for &(index, _) in losses.iter().filter(|(index, _)| !kept.contains(index)) {
                self.drop_restart(index)?;
            }
            alive = kept;
        }
        self.console.finish();
        self.collect()
    }

    /// Seed of a restart's initial weights.
    pub fn seed_of(&self, restart: usize) -> u64 {
        seeds::derive(self.config.run.seed, Purpose::Weights, &[restart as u64])
    }

    fn runs(&self) -> usize {
        self.budget.planned().map_or(self.config.settings.plan.runs, |plan| plan.runs)
    }

    fn epochs(&self) -> usize {
        self.budget.planned().map_or(self.config.settings.plan.epochs, |plan| plan.epochs)
    }

    /// With a limit on the time, one epoch is trained first, because it tells how many fit.
    fn plan_for_budget(&mut self) -> Result<(), TrainError> {
        if !self.budget.needs_plan() {
            return Ok(());
        }
        let mut first = self.load_or_new(0)?;
        if first.ended.is_none() && first.epoch == 0 {
            self.train_epochs(&mut first, 1)?;
            self.journal.save(&first)?;
        }
        let seconds = log::read(&self.run.log())?.first().map_or(0.0, |record| record.seconds);
        let plan = self.budget.make_plan(&self.config, seconds)?;
        self.console.say(format!("the time is enough for {} restarts of {} epochs", plan.runs, plan.epochs));
        let stages = prune::stages(self.config.pruning(), plan.runs, plan.epochs);
        self.console.set_total((prune::total_epochs(&stages, plan.runs) * self.batches.len()) as u64);
        Ok(())
    }

    /// Brings one restart to the end of a stage and returns the loss that it is compared by.
    fn advance(&mut self, index: usize, number: usize, stage: Stage, is_last: bool) -> Result<f64, TrainError> {
        let mut restart = self.load_or_new(index)?;
        if let Some(&loss) = restart.stage_losses.get(number) {
            return Ok(loss);
        }
        if restart.ended.is_none() {
            self.train_epochs(&mut restart, stage.epoch)?;
        }
        if restart.ended.is_none() && is_last {
            self.finish_restart(&mut restart, Ended::Epochs)?;
        }
        if let Some(outcome) = &restart.outcome {
            return Ok(outcome.loss);
        }
        let loss = self.comparison_loss(&restart)?;
        restart.stage_losses.push(loss);
        self.journal.save(&restart)?;
        Ok(loss)
    }

    fn drop_restart(&mut self, index: usize) -> Result<(), TrainError> {
        let mut restart = self.load_or_new(index)?;
        if restart.ended.is_none() { self.finish_restart(&mut restart, Ended::Pruned) } else { Ok(()) }
    }

    fn collect(&mut self) -> Result<Vec<Restart>, TrainError> {
        let mut restarts = Vec::new();
        for index in 0..self.runs() {
            if self.run.last(index).exists() {
                restarts.push(self.load_or_new(index)?);
            }
        }
        restarts.retain(|restart| restart.ended.is_some());
        Ok(restarts)
    }

    fn load_or_new(&self, index: usize) -> Result<Restart, TrainError> {
        let model = self.recipe.init(self.seed_of(index));
        let path = self.run.last(index);
        if path.exists() {
            return Restart::load(&path, &self.journal.identity(index), model, self.recipe.adam_config());
        }
        Ok(Restart::new(index, model, self.recipe.adam(), self.recipe.clusters()))
    }
}

/// The loader of a run. Its order depends on the seed of the run and the number of the epoch alone.
pub fn open_batches(config: &RunConfig) -> Result<Batches, TrainError> {
    let options = LoadOptions {
        batch: config.settings.images_per_step(),
        seed: seeds::derive(config.run.seed, Purpose::Order, &[]),
        memory_budget: config.run.memory_budget,
        ..LoadOptions::default()
    };
    Ok(Batches::new(&config.data.path, options)?)
}

fn new_console(config: &RunConfig, images: usize, epochs_done: usize, quiet: bool) -> Console {
    let plan = &config.settings.plan;
    let epochs = prune::total_epochs(&prune::stages(config.pruning(), plan.runs, plan.epochs), plan.runs);
    let console = Console::new(quiet, plan.runs, plan.epochs, (epochs * images) as u64);
    console.skip((epochs_done * images) as u64);
    console
}
