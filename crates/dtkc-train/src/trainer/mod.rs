//! All restarts of a run: trained, compared, pruned, resumed. It knows a method only as a learner.

mod budget;
mod epoch;
mod finish;
mod inside;
mod journal;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use dtkc_human as human;
use dtkc_methods::learner::{Learner, Passes as _, Stage};
use dtkc_methods::{LearnError, Task, places};
use dtkc_observe::Observer;

use crate::config::RunConfig;
use crate::console::Console;
use crate::data::RunData;
use crate::error::TrainError;
use crate::forecast::Forecast;
use crate::log;
use crate::pretrained::with_pretraining;
use crate::prune::{self, Round};
use crate::restart::{Ended, Restart};
use crate::run_dir::RunDir;

use budget::Budget;
use journal::Journal;

/// Makes a learner with new weights from a seed.
type MakeLearner = Box<dyn Fn(&Task, u64) -> Result<Box<dyn Learner>, LearnError>>;

fn learners_of(config: &RunConfig) -> MakeLearner {
    let settings = config.settings.clone();
    Box::new(move |task, seed| settings.learner(task, seed))
}

/// Trains the restarts of one run.
pub struct Trainer<'a> {
    run: &'a RunDir,
    config: RunConfig,
    task: Task,
    learners: MakeLearner,
    stages: Vec<Stage>,
    /// A learner that is only asked how it goes about things.
    model: Box<dyn Learner>,
    data: RunData<'a>,
    labels: Option<Vec<i64>>,
    /// The epochs after which restarts are compared and go on.
    compared: Vec<usize>,
    /// The only restart that is trained here, where others are trained elsewhere.
    only: Option<usize>,
    journal: Journal<'a>,
    console: Console<'a>,
    budget: Budget,
}

impl<'a> Trainer<'a> {
    /// Opens data and log, and goes on where the checkpoints are.
    pub fn open(run: &'a RunDir, config: RunConfig, observer: &'a dyn Observer) -> Result<Self, TrainError> {
        let learners = learners_of(&config);
        Self::with(run, config, None, learners, observer)
    }

    /// The same for one restart alone.
    pub fn open_one(
        run: &'a RunDir,
        config: RunConfig,
        index: usize,
        observer: &'a dyn Observer,
    ) -> Result<Self, TrainError> {
        let learners = learners_of(&config);
        Self::with(run, config, Some(index), learners, observer)
    }

    fn with(
        run: &'a RunDir,
        config: RunConfig,
        only: Option<usize>,
        learners: MakeLearner,
        observer: &'a dyn Observer,
    ) -> Result<Self, TrainError> {
        let task = config.task(config.clusters()?)?;
        let model = learners(&with_pretraining(&task, run.root(), &config, 0)?, 0)?;
        let stages = model.stages();
        let data = RunData::open(&config, observer)?;
        let labels = data.dataset().labels()?;
        let journal = Journal::open(run, &config)?;
        let spent = log::read(&run.log())?.iter().map(|record| record.seconds).sum();
        let budget = Budget::open(run, &config, spent)?;
        let console = Console::new(observer, config.method, config.plan.restarts, config.plan.epochs);
        let compared = Vec::new();
        let trainer =
            Self { run, config, task, learners, stages, model, data, labels, compared, only, journal, console, budget };
        let restarts = only.map_or(trainer.restarts(), |_| 1);
        let (unit, work) = (trainer.config.data.input.kind().noun(), trainer.work(restarts, trainer.epochs()));
        let done = (trainer.journal.epochs() * trainer.data.len()) as u64;
        trainer.console.say(format!("{}{}", trainer.plan(), trainer.forecast(work.saturating_sub(done))?));
        trainer.console.begin(unit, work);
        trainer.console.skip(done);
        Ok(trainer)
    }

    /// Trains what is left to train; gives back every restart, at its best epoch, with what it is worth.
    pub fn train(&mut self) -> Result<Vec<Restart>, TrainError> {
        self.train_all().map_err(|error| self.explain(error))
    }

    /// Trains one restart to its end, in a run that compares none of them on the way.
    pub fn train_one(&mut self, index: usize) -> Result<(), TrainError> {
        let round = Round { epoch: self.epochs(), keep: 1 };
        self.advance(index, 0, round, true).map_err(|error| self.explain(error))?;
        self.console.end();
        Ok(())
    }

    fn train_all(&mut self) -> Result<Vec<Restart>, TrainError> {
        self.plan_for_budget()?;
        let rounds = self.rounds(self.restarts(), self.epochs());
        self.compared = rounds.iter().rev().skip(1).map(|round| round.epoch).collect();
        let mut alive: Vec<usize> = (0..self.restarts()).collect();
        for (number, &round) in rounds.iter().enumerate() {
            let is_last = number + 1 == rounds.len();
            let mut losses = Vec::with_capacity(alive.len());
            for &index in &alive {
                // A restart that was not begun when the time is up never will be.
                if !self.budget.exhausted() || index == 0 || self.run.last(index).exists() {
                    losses.push((index, self.advance(index, number, round, is_last)?));
                }
            }
            let kept = prune::survivors(&losses, round.keep);
            for &(index, _) in losses.iter().filter(|(index, _)| !kept.contains(index)) {
                self.drop_restart(index)?;
            }
            alive = kept;
        }
        self.console.end();
        self.collect()
    }

    /// The plan in one line, before anything is trained.
    fn plan(&self) -> String {
        let RunConfig { method, preset, plan, run, .. } = &self.config;
        let restarts = match self.only {
            Some(index) => format!("restart {} (the others are elsewhere)", index + 1),
            None => human::many(self.restarts(), "restart"),
        };
        let epochs = human::many(self.epochs(), "epoch");
        let rows = human::many(plan.batch, "row");
        let pruned = if plan.prune && self.restarts() > self.config.prune.finalists {
            ", those behind dropped early"
        } else {
            ""
        };
        let budget = match run.budget_seconds {
            0.0 => String::new(),
            seconds => format!(", as much of it as fits {}", human::duration(Duration::from_secs_f64(seconds))),
        };
        format!("{method} ({preset}): {restarts} of {epochs}, {rows} a step{pruned}{budget}")
    }

    /// How long `items` items take and how much memory, where the method counts that: the end of the plan.
    fn forecast(&self, items: u64) -> Result<String, TrainError> {
        match Forecast::of(&self.config, self.model.as_ref()) {
            Some(forecast) if items > 0 => Ok(format!("; {}", forecast.text(items, &self.config)?)),
            _ => Ok(String::new()),
        }
    }

    /// The process has worked for the run since `begin`, when it was not yet opened for training.
    pub fn set_begin(&mut self, begin: Instant) {
        self.journal.set_begin(begin);
    }

    /// The time since the last epoch that the log has.
    pub fn unlogged(&self) -> Duration {
        self.journal.unlogged()
    }

    /// Seed of a restart's initial weights.
    pub fn seed_of(&self, restart: usize) -> u64 {
        places::weights(self.config.run.seed, restart)
    }

    fn restarts(&self) -> usize {
        self.budget.planned().map_or(self.config.plan.restarts, |plan| plan.restarts)
    }

    /// Epochs of the last stage.
    fn epochs(&self) -> usize {
        self.budget.planned().map_or(self.config.plan.epochs, |plan| plan.epochs)
    }

    /// Epochs of a stage.
    fn epochs_of(&self, stage: usize) -> usize {
        if stage + 1 == self.stages.len() { self.epochs() } else { self.stages[stage].epochs }
    }

    fn rounds(&self, restarts: usize, epochs: usize) -> Vec<Round> {
        prune::rounds(self.config.pruning(), restarts, epochs, &self.model.upheavals(epochs))
    }

    /// Items that all restarts together are trained on.
    fn work(&self, restarts: usize, epochs: usize) -> u64 {
        let before: usize = self.stages.iter().rev().skip(1).map(|stage| stage.epochs).sum();
        let last = prune::total_epochs(&self.rounds(restarts, epochs), restarts);
        ((restarts * before + last) * self.data.len()) as u64
    }

    /// With a limit on the time, one epoch is trained first, because it tells how many fit.
    fn plan_for_budget(&mut self) -> Result<(), TrainError> {
        if !self.budget.needs_plan() {
            return Ok(());
        }
        let mut first = self.load_or_new(0)?;
        let begun = Instant::now();
        if first.ended.is_none() && (first.stage + 1 < self.stages.len() || first.epoch == 0) {
            self.train_until(&mut first, 1)?;
            self.journal.save(&first)?;
        }
        let records = log::read(&self.run.log())?;
        let epoch = records.last().map_or(0.0, |record| record.seconds);
        let all = records.iter().map(|record| record.seconds).sum::<f64>().max(begun.elapsed().as_secs_f64());
        let plan = self.budget.make_plan(&self.config, self.model.as_ref(), epoch, all - epoch)?;
        let (restarts, epochs) = (human::many(plan.restarts, "restart"), human::many(plan.epochs, "epoch"));
        self.console.say(format!("the time is enough for {restarts} of {epochs}"));
        self.console.set_plan(plan.restarts, plan.epochs, self.work(plan.restarts, plan.epochs));
        Ok(())
    }

    /// Brings one restart to the end of a round and returns the loss that it is compared by.
    fn advance(&mut self, index: usize, number: usize, round: Round, is_last: bool) -> Result<f64, TrainError> {
        let mut restart = self.load_or_new(index)?;
        if let Some(&loss) = restart.round_losses.get(number) {
            return Ok(loss);
        }
        if restart.ended.is_none() {
            self.train_until(&mut restart, round.epoch)?;
        }
        if restart.ended.is_none() && is_last {
            self.finish_restart(&mut restart, Ended::Epochs)?;
        }
        if let Some(outcome) = &restart.outcome {
            return Ok(outcome.loss);
        }
        // Measured at the end of the epoch, before clusters were made anew; else now.
        if restart.round_losses.len() <= number {
            let loss = self.comparison_loss(&restart)?;
            restart.round_losses.push(loss);
        }
        self.journal.save(&restart)?;
        Ok(restart.round_losses[number])
    }

    fn drop_restart(&mut self, index: usize) -> Result<(), TrainError> {
        let mut restart = self.load_or_new(index)?;
        if restart.ended.is_none() { self.finish_restart(&mut restart, Ended::Pruned) } else { Ok(()) }
    }

    fn collect(&mut self) -> Result<Vec<Restart>, TrainError> {
        let mut restarts = Vec::new();
        for index in 0..self.restarts() {
            if self.run.last(index).exists() {
                restarts.push(self.load_or_new(index)?);
            }
        }
        restarts.retain(|restart| restart.ended.is_some());
        Ok(restarts)
    }

    fn load_or_new(&self, index: usize) -> Result<Restart, TrainError> {
        let task = with_pretraining(&self.task, self.run.root(), &self.config, index)?;
        let learner = (self.learners)(&task, self.seed_of(index))?;
        let path = self.run.last(index);
        match path.exists() {
            true => Restart::load(&path, &self.journal.identity(index), learner),
            false => Ok(Restart::new(index, learner)),
        }
    }
}
