//! The loop with a method of several stages: online k-means that first looks at the items' mean, then picks its
//! centres, then moves them. Small enough to be sure of what must come out.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dtkc_core::augment::BatchKey;
use dtkc_core::{LossValues, NamedArray, Values};
use dtkc_item::{Batch, Items};
use dtkc_methods::learner::{Answers, CLUSTERING, Passes, StepClock, StepPlace, StepResult};
use dtkc_methods::places::Pass;
use dtkc_observe::Silent;
use dtkc_onnx::Network;
use dtkc_testing::Set;

use super::*;
use crate::restart::Outcome;
use crate::run_dir::Existing;

const SIDE: usize = 4;
const PIXELS: usize = SIDE * SIDE;
const CLUSTERS: usize = 3;
const PRETRAINING: usize = 2;

struct Centres {
    mean: Vec<f32>,
    centres: Vec<f32>,
    /// How often each stage was entered, over all interruptions.
    entered: Vec<u64>,
    seed: u64,
    fault: Fault,
}

/// What goes wrong with a restart.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Its second stage cannot begin.
    Refused,
    /// It has a low loss, and a weight that is infinite.
    Infinite,
}

impl Centres {
    fn new(seed: u64) -> Self {
        Self {
            mean: vec![0.0; PIXELS],
            centres: vec![0.0; CLUSTERS * PIXELS],
            entered: vec![0; 3],
            seed,
            fault: Fault::None,
        }
    }

    fn nearest(&self, item: &[f32]) -> (usize, f32) {
        let distance = |centre: &[f32]| centre.iter().zip(item).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        let distances = self.centres.chunks(PIXELS).map(distance).enumerate();
        distances.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    }
}

fn rows(items: &Items) -> Vec<Vec<f32>> {
    let Items::Images { pixels, .. } = items else { panic!("images") };
    pixels.chunks(PIXELS).map(|image| image.iter().map(|&p| f32::from(p) / 255.0).collect()).collect()
}

fn move_towards(from: &mut [f32], to: &[f32], share: f32) {
    from.iter_mut().zip(to).for_each(|(a, b)| *a += share * (b - *a));
}

fn floats(arrays: &[NamedArray], name: &str) -> Vec<f32> {
    match &NamedArray::find(arrays, name).unwrap().values {
        Values::F32(values) => values.clone(),
        _ => panic!("{name}"),
    }
}

impl Learner for Centres {
    fn stages(&self) -> Vec<Stage> {
        let stage = |name, epochs| Stage { name, epochs };
        vec![stage("pretraining", PRETRAINING), stage("initialisation", 0), stage(CLUSTERING, 3)]
    }

    fn enter(&mut self, stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        self.entered[stage] += 1;
        if stage == 1 && self.fault == Fault::Refused {
            return Err(LearnError::Diverged("the mean is not finite".into()));
        }
        if stage == 1 {
            let mut items = Vec::new();
            for batch in data.batches(Pass::Everything) {
                items.extend(rows(&batch?.items));
            }
            for (place, centre) in self.centres.chunks_mut(PIXELS).enumerate() {
                let pick = (self.seed as usize).wrapping_add(place * 17) % items.len();
                centre.copy_from_slice(&items[pick]);
            }
        }
        Ok(())
    }

    fn step(&mut self, batch: &Batch, place: &StepPlace, _: &mut StepClock) -> StepResult {
        if self.fault == Fault::Infinite {
            self.mean[0] = f32::INFINITY;
        }
        let (mut loss, mut membership) = (0.0, Vec::new());
        for item in rows(&batch.items) {
            if place.stage == 0 {
                move_towards(&mut self.mean, &item, 0.05);
                continue;
            }
            let (nearest, distance) = self.nearest(&item);
            loss += f64::from(distance);
            membership.extend((0..CLUSTERS).map(|c| f32::from(u8::from(c == nearest))));
            let share = self.learning_rate(place.stage, place.epoch, place.epochs) as f32;
            move_towards(&mut self.centres[nearest * PIXELS..][..PIXELS], &item, share);
        }
        StepResult { loss: LossValues { total: loss, terms: vec![] }, membership, applied: true }
    }

    fn learning_rate(&self, _: usize, epoch: f64, epochs: usize) -> f64 {
        0.1 * (1.0 - epoch / (epochs + 1) as f64)
    }

    fn loss(&self, batch: &Batch, _: BatchKey) -> f64 {
        rows(&batch.items).iter().map(|item| f64::from(self.nearest(item).1)).sum()
    }

    fn answers(&self, items: &Items) -> Answers {
        let rows = rows(items);
        let one_hot = |item: &Vec<f32>| {
            let nearest = self.nearest(item).0;
            (0..CLUSTERS).map(move |c| f32::from(u8::from(c == nearest)))
        };
        let membership = rows.iter().flat_map(one_hot).collect();
        Answers { clusters: CLUSTERS, membership, width: PIXELS, embedding: rows.concat() }
    }

    fn clusters(&self) -> usize {
        CLUSTERS
    }

    fn weights(&self) -> Vec<NamedArray> {
        let list = |name, values: &Vec<f32>| NamedArray::list(name, Values::F32(values.clone()));
        vec![list("mean", &self.mean), list("centres", &self.centres)]
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        (self.mean, self.centres) = (floats(weights, "mean"), floats(weights, "centres"));
        Ok(())
    }

    fn progress(&self) -> Vec<NamedArray> {
        vec![NamedArray::list("entered", Values::U64(self.entered.clone()))]
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        let Values::U64(entered) = &progress[0].values else { panic!("{progress:?}") };
        self.entered.clone_from(entered);
        Ok(())
    }

    fn freeze(&self) -> Network {
        unreachable!("the loop freezes nothing")
    }
}

/// Asks for a stop after so many questions.
struct Impatient {
    left: AtomicUsize,
}

impl Observer for Impatient {
    fn stop(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

/// What is left of a run: its restarts' weights and progress, what they are worth, and the stage and epoch of each log line.
type Traces = (Vec<(Vec<NamedArray>, Vec<NamedArray>)>, Vec<f64>, Vec<(usize, Option<String>, usize)>);

/// Two restarts on a small set in the folder.
fn config(folder: &Path) -> RunConfig {
    let data = folder.join("set.h5");
    if !data.exists() {
        let shape = dtkc_item::ImageShape { height: SIDE, width: SIDE, channels: 1 };
        Set::new(shape, 50).write(&data);
    }
    let text = "[run]\nclusters = 3\ncheckpoint_seconds = 1e9\ncomparison_batches = 2\n[plan]\nepochs = 3\nrestarts = 2\nbatch = 8\nprune = false\npatience = 0\n";
    let mut config = RunConfig::resolve(&[text.parse().unwrap()]).unwrap();
    config.data = crate::pipeline::describe_data(&data).unwrap();
    config
}

/// Trains a run to its end in sessions that are stopped after `questions`; says how many it took.
fn train(folder: &Path, questions: Option<usize>) -> (Traces, usize) {
    let config = config(folder);
    let root = folder.join(questions.map_or("whole".into(), |n| format!("cut-{n}")));
    let run = RunDir::create(&root, Existing::Refuse).unwrap();
    for session in 1..200 {
        let made = Rc::new(Cell::new(0));
        let count = made.clone();
        let learners: MakeLearner = Box::new(move |_, seed| {
            count.set(count.get() + 1);
            Ok(Box::new(Centres::new(seed)))
        });
        let impatient = questions.map(|left| Impatient { left: AtomicUsize::new(left) });
        let observer: &dyn Observer = impatient.as_ref().map_or(&Silent, |impatient| impatient);
        let mut trainer = Trainer::with(&run, config.clone(), None, learners, observer).unwrap();
        let trained = trainer.train();
        assert!(made.get() > 0, "the run's own learners are used");
        match trained {
            Err(TrainError::Interrupted(_)) => {}
            Err(error) => panic!("{error}"),
            Ok(restarts) => return (traces(&run, &restarts), session),
        }
    }
    panic!("no end with {questions:?} questions a session");
}

fn traces(run: &RunDir, restarts: &[Restart]) -> Traces {
    let states = restarts.iter().map(|r| (r.learner.weights(), r.learner.progress())).collect();
    let worth = restarts.iter().map(|r| r.outcome.as_ref().unwrap().loss).collect();
    let lines = log::read(&run.log()).unwrap().into_iter().map(|line| (line.restart, line.stage, line.epoch)).collect();
    (states, worth, lines)
}

#[test]
fn stages_follow_each_other_and_each_is_entered_once() {
    let folder = tempfile::tempdir().unwrap();
    let ((states, worth, lines), _) = train(folder.path(), None);
    let expected: Vec<(usize, Option<String>, usize)> = (0..2)
        .flat_map(|restart| {
            let before = (1..=PRETRAINING).map(move |epoch| (restart, Some("pretraining".to_owned()), epoch));
            before.chain((1..=3).map(move |epoch| (restart, None, epoch)))
        })
        .collect();
    assert_eq!(lines, expected);
    assert!(worth.iter().all(|loss| loss.is_finite() && *loss > 0.0));
    for (weights, progress) in &states {
        assert!(floats(weights, "mean").iter().any(|v| *v > 0.0), "pretraining did something");
        assert_eq!(progress[0].values, Values::U64(vec![1, 1, 1]));
    }
    assert_ne!(states[0], states[1], "restarts differ");
}

#[test]
fn a_run_of_several_stages_resumes_to_the_same_bits_wherever_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, _) = train(folder.path(), None);
    // Entering a stage and finishing a restart ask once per batch and are done again if they are cut: a session must last
    // longer than that to get on.
    for questions in [29, 30, 31, 33, 36, 41, 47, 58, 71] {
        let (cut, sessions) = train(folder.path(), Some(questions));
        assert!(sessions > 1, "{questions} questions do not interrupt");
        assert_eq!(cut, whole, "{questions} questions, {sessions} sessions");
    }
}

#[test]
fn a_restart_whose_numbers_grow_beyond_all_bounds_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let lost = places::weights(config.run.seed, 0);
    for (fault, stage) in [(Fault::Refused, 1), (Fault::Infinite, 2)] {
        let run = RunDir::create(&folder.path().join(format!("run-{stage}")), Existing::Refuse).unwrap();
        let learners = || -> MakeLearner {
            Box::new(move |_, seed| {
                let fault = if seed == lost { fault } else { Fault::None };
                Ok(Box::new(Centres { fault, ..Centres::new(seed) }))
            })
        };
        // The second time everything is done already, and read back.
        for _ in 0..2 {
            let restarts = Trainer::with(&run, config.clone(), None, learners(), &Silent).unwrap().train().unwrap();
            let [bad, good] = &restarts[..] else { panic!("two restarts") };
            assert_eq!((bad.ended, bad.stage, good.ended), (Some(Ended::Diverged), stage, Some(Ended::Epochs)));
            assert_eq!(bad.outcome, Some(Outcome::nothing(CLUSTERS)));
            assert!(good.outcome.as_ref().unwrap().loss.is_finite());
        }
    }
}
