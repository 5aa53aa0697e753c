//! k-means as a learner: an epoch is one of Lloyd's iterations.

use std::cell::OnceCell;
use std::collections::HashMap;

use dtkc_core::augment::BatchKey;
use dtkc_core::{LossValues, NamedArray, Values};
use dtkc_item::{Batch, Items};
use dtkc_onnx::Network;
use dtkc_ops::for_each;

use super::axes::Axes;
use super::farthest::{Far, Farthest};
use super::images::{Look, Survey};
use super::points::Points;
use super::seeding::first_centres;
use super::settings::Settings;
use super::sums::Sums;
use crate::learner::{
    Answers, CLUSTERING, EpochEnd, EpochPlace, Extent, INITIALISATION, Learner, Passes, Stage, StepClock, StepPlace,
    StepResult,
};
use crate::places::Pass;
use crate::random::Random;
use crate::vectors::Vectors;
use crate::{LearnError, Task, arrays};

/// k-means on its way. It looks at items batch by batch and needs memory for the centres, a number for every item and
/// the items that first centres are chosen from. It computes on the CPU, whatever the device.
pub struct KmeansLearner {
    settings: Settings,
    epochs: usize,
    vectors: Vectors,
    clusters: usize,
    seed: u64,
    /// `[k, width]`.
    centres: Vec<f32>,
    /// Mean squared distance to the nearest centre, over what was seen of the running epoch or all of the last one.
    spread: f64,
    /// Mean variance of a pixel.
    variance: f64,
    /// What the running epoch has seen.
    sums: Sums,
    changed: u64,
    farthest: Farthest,
    /// The cluster of every item when it was last seen.
    labels: Vec<u32>,
    axes: OnceCell<Axes>,
}

impl KmeansLearner {
    /// First centres are chosen when the first stage begins.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let (vectors, clusters) = (Vectors::new(task), task.clusters);
        Ok(Self {
            settings: settings.clone(),
            epochs: task.plan.epochs,
            clusters,
            seed,
            centres: vec![0.0; clusters * vectors.len()],
            spread: 1.0,
            variance: 0.0,
            sums: Sums::new(clusters, vectors.len()),
            vectors,
            changed: 0,
            farthest: Farthest::new(clusters),
            labels: Vec::new(),
            axes: OnceCell::new(),
        })
    }

    fn look(&self, items: &Items) -> Look {
        Look::at(items, &self.vectors, &self.centres)
    }

    fn axes(&self) -> &Axes {
        self.axes.get_or_init(|| Axes::new(&self.centres, self.vectors.len(), self.spread))
    }

    /// Gives every empty cluster one of the items that are farthest from their centres.
    fn fill_empty(&mut self, data: &mut dyn Passes) -> Result<bool, LearnError> {
        let empty = self.sums.empty();
        if empty.is_empty() {
            return Ok(false);
        }
        let mut rows: HashMap<u32, Vec<f32>> = HashMap::new();
        let wanted: Vec<u32> = self.farthest.items().iter().map(|far| far.item).collect();
        let width = self.vectors.len();
        for batch in data.batches(Pass::Everything) {
            let Batch { indices, items } = batch?;
            for (place, index) in indices.into_iter().enumerate().filter(|(_, i)| wanted.contains(&(*i as u32))) {
                let mut row = vec![0.0; width];
                self.vectors.write(&items, place..place + 1, &mut row);
                rows.insert(index as u32, row);
            }
        }
        let mut far = self.farthest.items().iter();
        let mut filled = false;
        for cluster in empty {
            filled |=
                far.any(|far| rows.get(&far.item).is_some_and(|row| self.sums.give(row, far.label as usize, cluster)));
        }
        Ok(filled)
    }

    fn move_centres(&mut self) -> f64 {
        self.axes.take();
        let moved = self.sums.move_centres(&mut self.centres);
        self.forget_epoch();
        moved
    }

    fn forget_epoch(&mut self) {
        self.sums = Sums::new(self.clusters, self.vectors.len());
        self.changed = 0;
        self.farthest.clear();
    }

    fn add(&mut self, sums: &Sums) {
        self.sums.add(sums);
        self.spread = self.sums.squares / self.sums.points().max(1) as f64;
        self.axes.take();
    }
}

impl Learner for KmeansLearner {
    fn stages(&self) -> Vec<Stage> {
        vec![Stage { name: INITIALISATION, epochs: 0 }, Stage { name: CLUSTERING, epochs: self.epochs }]
    }

    fn enter(&mut self, stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        if stage == 0 {
            self.vectors.learn(data)?;
            let survey = Survey::make(data, &self.vectors, self.clusters, self.settings.seeding_images, self.seed)?;
            let points = Points { values: &survey.sample, width: self.vectors.len() };
            let mut random = Random::new(self.seed, b"kmeans++", 0);
            let first = first_centres(points, self.clusters, &mut random, &|| data.stop())?;
            self.centres = first.iter().flat_map(|&index| points.row(index)).copied().collect();
            self.variance = survey.variance;
            self.labels = vec![u32::MAX; data.len()];
            self.axes.take();
        }
        Ok(())
    }

    fn step(&mut self, batch: &Batch, _place: &StepPlace, clock: &mut StepClock) -> StepResult {
        let look = self.look(&batch.items);
        clock.lap(|c| &mut c.forward);
        self.add(&look.sums);
        let mut membership = vec![0.0; look.labels.len() * self.clusters];
        let found = batch.indices.iter().zip(look.labels.iter().zip(&look.squares));
        for (row, (&item, (&label, &square))) in membership.chunks_exact_mut(self.clusters).zip(found) {
            row[label as usize] = 1.0;
            self.farthest.see(Far { square, item: item as u32, label });
            if let Some(before) = self.labels.get_mut(item) {
                self.changed += u64::from(*before != label);
                *before = label;
            }
        }
        clock.lap(|c| &mut c.update);
        let total = look.sums.squares / look.labels.len().max(1) as f64;
        StepResult { loss: LossValues { total, terms: Vec::new() }, membership, applied: true }
    }

    fn end_epoch(&mut self, _place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        let repaired = self.fill_empty(data)?;
        let unchanged = self.changed == 0 && !repaired;
        let moved = self.move_centres();
        let converged = unchanged || moved <= self.settings.tolerance * self.variance;
        Ok(EpochEnd { converged, ..EpochEnd::default() })
    }

    fn learning_rate(&self, _stage: usize, _epoch: f64, _epochs: usize) -> f64 {
        0.0
    }

    fn loss(&self, batch: &Batch, _views: BatchKey) -> f64 {
        self.look(&batch.items).sums.squares / batch.len().max(1) as f64
    }

    /// One more iteration: the loop remembers the centres that an epoch was measured with, not those that it led to.
    fn settle(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        self.forget_epoch();
        for batch in data.batches(Pass::Everything) {
            let look = self.look(&batch?.items);
            self.add(&look.sums);
        }
        self.move_centres();
        Ok(())
    }

    fn answers(&self, items: &Items) -> Answers {
        let (k, width, axes) = (self.clusters, self.vectors.len(), self.axes());
        let rows = self.vectors.values(items);
        let n = items.len();
        let (mut membership, mut embedding) = (vec![0.0; n * k], vec![0.0; n * axes.count]);
        let work = rows.chunks_exact(width).zip(membership.chunks_mut(k).zip(embedding.chunks_mut(axes.count)));
        for_each(work, |(row, (membership, embedding))| axes.answer(row, embedding, membership));
        Answers { clusters: k, membership, width: axes.count, embedding }
    }

    fn clusters(&self) -> usize {
        self.clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        let centres = Values::F32(self.centres.clone());
        let mut weights = vec![
            NamedArray { name: "centres".into(), shape: vec![self.clusters, self.vectors.len()], values: centres },
            NamedArray::list("spread", Values::F64(vec![self.spread])),
        ];
        weights.extend(self.vectors.save());
        weights
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        let centres = arrays::f32s(weights, "centres", Some(self.centres.len()))?;
        let spread = arrays::f64s(weights, "spread", Some(1))?[0];
        self.vectors.restore(weights)?;
        (self.spread, self.centres) = (spread, centres);
        self.axes.take();
        Ok(())
    }

    fn progress(&self) -> Vec<NamedArray> {
        let list = NamedArray::list;
        let mut arrays = vec![
            list("sums", Values::F64(self.sums.sums.clone())),
            list("counts", Values::U64(self.sums.counts.clone())),
            list("numbers", Values::F64(vec![self.sums.squares, self.variance, self.changed as f64])),
            list("labels", Values::U32(self.labels.clone())),
        ];
        arrays.extend(self.farthest.save());
        arrays
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        let numbers = arrays::f64s(progress, "numbers", Some(3))?;
        let sums = arrays::f64s(progress, "sums", Some(self.centres.len()))?;
        let counts = arrays::u64s(progress, "counts", Some(self.clusters))?;
        let farthest = Farthest::restore(self.clusters, progress)?;
        self.labels = arrays::u32s(progress, "labels", None)?;
        self.sums = Sums { width: self.vectors.len(), sums, counts, squares: numbers[0] };
        (self.variance, self.changed, self.farthest) = (numbers[1], numbers[2] as u64, farthest);
        Ok(())
    }

    fn freeze(&self) -> Network {
        self.axes().network(&self.vectors)
    }

    fn step_flops(&self, extent: Extent) -> Option<f64> {
        Some(2.0 * (extent.rows * self.centres.len()) as f64)
    }
}
