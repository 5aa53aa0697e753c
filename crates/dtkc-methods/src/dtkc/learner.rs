//! DTKC and DDC as a learner: items in, loss, gradients, new weights.

use std::collections::BTreeSet;

use burn::module::Module as _;
use burn::tensor::Device;
use dtkc_core::augment::BatchKey;
use dtkc_core::{
    Input, LossTerms, Model, Moment, NamedArray, Objective, Output, OutputLayer, StatisticsPass, ValidModel, Values,
    Views,
};
use dtkc_item::{Batch, ItemKind, Items};
use dtkc_onnx::Network;

use super::Settings;
use super::balance::Balance;
use super::flops::{feature_flops, sequence_flops, step_flops};
use super::joinings::Joinings;
use super::regroup::Evidence;
use super::seen::{self, Seen, Wanted};
use super::sight::Sight;
use super::start::{Join, StartKind};
use super::surroundings::{Search, Surroundings};
use crate::inside::{BackboneGradients, Features, Inside, gradients};
use crate::learner::{
    Answers, CLUSTERING, EpochEnd, EpochPlace, Extent, Learner, Passes, Stage, StepClock, StepPlace, StepResult, joined,
};
use crate::nearest::compared_rows;
use crate::optimizer::Optimizer;
use crate::places::{self, Pass, Purpose};
use crate::sequences::learn_scaling;
use crate::{LearnError, SettingError, Task, arrays, features};

/// Images after which batch-norm statistics no longer change in a digit that matters.
const STATISTICS_IMAGES: usize = 20_000;

/// Images whose fine clusters are looked at when they are joined: enough to see how every pair of them is tied.
const FINE_IMAGES: usize = 60_000;

/// The name of that flag among the weights: it belongs to them, those of an earlier epoch may have none.
const HAS_CLUSTERS: &str = "has_clusters";

/// DTKC or DDC on its way.
pub struct DtkcLearner {
    settings: Settings,
    epochs: usize,
    batch: usize,
    objective: Objective,
    sight: Sight,
    device: Device,
    model: Model,
    optimizer: Optimizer,
    surroundings: Surroundings,
    /// Whether the output layer has clusters: it has none while the fine ones are learnt that they are made of.
    has_clusters: bool,
    /// The companions' weights follow their share of the gradient.
    balance: Balance,
    restart: usize,
    seed: u64,
}

impl DtkcLearner {
    /// New weights from `seed`.
    pub fn new(settings: &Settings, task: &Task, seed: u64) -> Result<Self, LearnError> {
        let valid = settings.model(task.input, task.clusters)?;
        let model = valid.init(&task.device.clone().autodiff(), seed);
        Ok(Self {
            settings: settings.clone(),
            epochs: task.plan.epochs,
            batch: task.plan.batch,
            objective: Objective::new(&settings.loss).map_err(SettingError::from)?,
            sight: Sight::new(settings, &model)?,
            device: task.device.clone(),
            model,
            optimizer: Optimizer::new(&settings.optim),
            surroundings: Surroundings::new(task.common.clone()),
            has_clusters: false,
            balance: Balance::new(settings.loss.companions.share),
            restart: task.restart,
            seed,
        })
    }

    fn valid(&self) -> &ValidModel {
        self.model.valid_config()
    }

    /// Items as the network sees them in evaluation.
    fn clean(&self, items: &Items) -> Input {
        self.sight.clean(&self.model, items, &self.device)
    }

    /// A batch as it is trained on: second views may be those of near neighbours.
    fn training_views(&self, batch: &Batch, key: BatchKey, device: &Device) -> (Input, Views) {
        let partners = self.surroundings.partners(batch, key);
        self.sight.views(&self.model, (&batch.items, partners.as_ref()), key, device)
    }

    fn look_around(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        let (shape, clusters) = (self.valid().config().input, self.clusters());
        let for_start = self.start(self.epochs).1 == StartKind::Graph;
        let scaled = |steps: &[f32]| self.model.scaled(steps);
        let (settings, seed) = (&self.settings, self.seed);
        let search = Search { settings, shape, scaled: &scaled, clusters, for_start, seed };
        self.surroundings.look(&search, data)
    }

    /// What the network says about a batch in training mode, without training on it.
    fn output(&self, items: &Items, key: BatchKey) -> (Output, Views) {
        let (x, views) = self.sight.views(&self.model, (items, None), key, &self.device);
        (self.with_taps(self.model.valid().forward_train(x), items, views), views)
    }

    /// Companion objectives look into the network that described the items, where they are features.
    fn with_taps(&self, output: Output, items: &Items, views: Views) -> Output {
        match items {
            Items::Features { shape, .. } if !shape.taps.is_empty() && self.settings.loss.has_companions() => {
                let blocks = features::taps(items, views, &output.membership.device());
                Output { blocks, ..output }
            }
            _ => output,
        }
    }

    /// Epochs before clusters are learnt, and what is learnt in them.
    fn start(&self, epochs: usize) -> (usize, StartKind) {
        let can = match self.settings.start.kind(self.clusters(), self.restart) {
            StartKind::Fine if self.has_fine_clusters() => StartKind::Fine,
            // Where the images have no graph, or one that gives no clusters, which is known when they were seen.
            StartKind::Graph if self.surroundings.have_no_clusters() && self.has_fine_clusters() => StartKind::Fine,
            StartKind::Graph if self.settings.paired() && self.settings.neighbours.is_on() => StartKind::Graph,
            _ => return (0, StartKind::Random),
        };
        (self.settings.start.epochs(self.clusters(), epochs), can)
    }

    /// The loss of a step.
    fn terms(&self, output: &Output, batch: &Batch, views: Views, place: &StepPlace) -> LossTerms {
        let (until, kind) = self.start(place.epochs);
        let moment = Moment { epoch: place.epoch, companions: self.balance.factor() };
        let everything = || self.objective.evaluate(output, views, moment);
        match (kind, place.epoch < until as f64) {
            (StartKind::Fine, true) => self.objective.evaluate_fine(output),
            (StartKind::Graph, true) => match self.surroundings.given(batch) {
                Some(given) => self.objective.evaluate_given(output, &given, views),
                None => everything(),
            },
            _ => everything(),
        }
    }

    /// The same for a batch, from its views on.
    fn training_terms(&self, batch: &Batch, place: &StepPlace) -> LossTerms {
        let (x, views) = self.training_views(batch, place.views, &self.device.clone().autodiff());
        self.terms(&self.with_taps(self.model.forward_train(x), &batch.items, views), batch, views, place)
    }

    /// Whether there are fine clusters that training improves and that clusters can be made from.
    fn has_fine_clusters(&self) -> bool {
        self.settings.paired() && self.settings.loss.overclustering > 0.0 && self.valid().fine_clusters() > 0
    }

    /// New clusters, when it is time for them: at the end of the start, later where one is empty, and where better ones can be
    /// made.
    fn new_output(&self, place: &EpochPlace, data: &mut dyn Passes) -> Result<Option<OutputLayer>, LearnError> {
        if !self.upheavals(place.epochs).contains(&place.done) {
            return Ok(None);
        }
        let is_first = self.start(place.epochs) == (place.done, StartKind::Fine);
        self.clusters_now(is_first, data)
    }

    /// An output layer of clusters by who is near whom as the network sees it; by groups of fine clusters where that gives none.
    /// Clusters that are all in use are only replaced (`whatever` apart) by better ones.
    fn clusters_now(&self, whatever: bool, data: &mut dyn Passes) -> Result<Option<OutputLayer>, LearnError> {
        if self.settings.start.join == Join::Near {
            let seen = self.seen(data)?;
            let must = whatever || seen.has_empty_cluster(self.clusters());
            let (clusters, strays, seed) = (self.clusters(), self.settings.start.strays, self.seed);
            let found = seen.output(&Wanted { clusters, in_any_case: must, strays, seed }, data)?;
            if found.is_some() || !must {
                return Ok(found);
            }
        }
        let evidence = self.evidence(data)?;
        if whatever || evidence.has_empty_cluster() { self.groups(evidence, data) } else { Ok(None) }
    }

    /// What the network makes of some images and of views of each.
    fn seen(&self, data: &mut dyn Passes) -> Result<Seen, LearnError> {
        let (valid, mut seen) = (self.model.valid(), Seen::default());
        let rounds = seen::rounds(data.len());
        let seed = places::derive(self.seed, Purpose::Sample, &[]);
        for (i, batch) in joined(data.batches(Pass::Sample), self.batch).enumerate() {
            let items = batch?.items;
            let mut clusters = Vec::new();
            let rows: Vec<Vec<f32>> = (0..rounds)
                .map(|round| {
                    let key = BatchKey { seed, epoch: round as u64, batch: i as u64 };
                    let output =
                        valid.forward_train(self.sight.views(&self.model, (&items, None), key, &self.device).0);
                    if round == 0 {
                        let likeliest = Views::Paired.first(output.membership).argmax(1).into_data();
                        clusters = likeliest.iter::<i64>().map(|cluster| cluster as u32).collect();
                    }
                    output.embedding.into_data().iter::<f32>().collect()
                })
                .collect();
            let unlearnt = compared_rows(&items, &|steps| self.model.scaled(steps));
            seen.add(unlearnt, clusters, self.settings.network.hidden, &rows);
            if seen.len() >= seen::MOST {
                break;
            }
        }
        Ok(seen)
    }

    /// An output layer of groups of fine clusters, with what near neighbours say about them.
    fn groups(&self, mut evidence: Evidence, data: &mut dyn Passes) -> Result<Option<OutputLayer>, LearnError> {
        if let Some(nearest) = self.surroundings.nearest() {
            evidence.add_neighbours(&self.fine_clusters(data)?, |item| nearest.of(item));
        }
        Ok(evidence.groups())
    }

    /// The fine cluster of every image, of the first [`FINE_IMAGES`] where there are more.
    fn fine_clusters(&self, data: &mut dyn Passes) -> Result<Vec<Option<u32>>, LearnError> {
        let mut found = vec![None; data.len()];
        let (valid, mut seen) = (self.model.valid(), 0);
        for batch in joined(data.batches(Pass::Everything), self.batch) {
            let batch = batch?;
            let Some(fine) = valid.forward_train(self.clean(&batch.items)).fine else { break };
            let cells: Vec<i64> = fine.argmax(1).into_data().iter::<i64>().collect();
            for (&item, cell) in batch.indices.iter().zip(cells) {
                found[item] = u32::try_from(cell).ok();
            }
            seen += batch.len();
            if seen >= FINE_IMAGES {
                break;
            }
        }
        Ok(found)
    }

    /// What the batches on which restarts are compared say about fine clusters.
    fn evidence(&self, data: &mut dyn Passes) -> Result<Evidence, LearnError> {
        let mut evidence = Evidence::default();
        for batch in data.comparison() {
            let (batch, key) = batch?;
            let (x, _) = self.training_views(&batch, key, &self.device);
            evidence.add(&self.model.valid().forward_train(x));
        }
        Ok(evidence)
    }
}

impl Inside for DtkcLearner {
    fn features(&self, items: &Items) -> Features {
        Features::read(self.model.valid().features(self.clean(items)))
    }

    fn gradients(&self, batch: &Batch, place: &StepPlace) -> BackboneGradients {
        gradients(|| Some(self.training_terms(batch, place)), |gradients| self.model.backbone_gradient(gradients))
    }
}

impl Learner for DtkcLearner {
    fn stages(&self) -> Vec<Stage> {
        vec![Stage { name: CLUSTERING, epochs: self.epochs }]
    }

    /// The scaling of sequences and features is learnt before anything else.
    fn enter(&mut self, _stage: usize, data: &mut dyn Passes) -> Result<(), LearnError> {
        learn_scaling(&mut self.model, data)
    }

    fn step(&mut self, batch: &Batch, place: &StepPlace, clock: &mut StepClock) -> StepResult {
        if self.balance.is_due(place.views) {
            let terms = || Some(self.training_terms(batch, place));
            self.balance = self.balance.next(terms, |gradients| self.model.backbone_gradient(gradients));
        }
        let (x, views) = self.training_views(batch, place.views, &self.device.clone().autodiff());
        clock.lap(|c| &mut c.data);
        let output = self.with_taps(self.model.forward_train(x), &batch.items, views);
        clock.lap(|c| &mut c.forward);
        let terms = self.terms(&output, batch, views, place);
        let loss = terms.read();
        let membership = views.first(output.membership.clone().detach()).into_data();
        let membership = membership.iter::<f32>().collect();
        clock.lap(|c| &mut c.loss);
        if !loss.is_finite() {
            return StepResult { loss, membership, applied: false };
        }
        let mut gradients = terms.total.backward();
        clock.lap(|c| &mut c.backward);
        let lr = self.learning_rate(place.stage, place.epoch, place.epochs);
        let (mut stepped, applied) = self.optimizer.step(self.model.clone(), &mut gradients, lr);
        if applied {
            stepped.update_running(&output, self.settings.network.batch_norm_momentum);
            self.model = stepped;
        }
        clock.lap(|c| &mut c.update);
        StepResult { loss, membership, applied }
    }

    fn is_refresh_due(&self, _stage: usize) -> bool {
        self.surroundings.is_missing(&self.settings)
    }

    fn refresh(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        self.look_around(data)
    }

    fn is_settled(&self, place: &EpochPlace) -> bool {
        let loss = &self.settings.loss;
        let start = if loss.self_label > 0.0 { loss.self_label_start } else { 0.0 };
        let (until, kind) = self.start(place.epochs);
        // Clusters that stay as they are given are one measure from the first epoch to the last.
        let is_same = kind == StartKind::Graph && until == place.epochs;
        place.done as f64 > loss.ramp.max(start) && (place.done > until || is_same)
    }

    fn end_epoch(&mut self, place: &EpochPlace, data: &mut dyn Passes) -> Result<EpochEnd, LearnError> {
        self.look_around(data)?;
        let output = self.new_output(place, data)?;
        let regrouped = output.is_some();
        if let Some(layer) = output {
            self.model.replace_output(layer)?;
            self.optimizer.forget(&self.model, &self.model.output_parameters());
            self.has_clusters = true;
        }
        Ok(EpochEnd { regrouped, ..EpochEnd::default() })
    }

    /// When the start ends, and a few times after it to see whether a cluster was lost or better ones can be made.
    fn upheavals(&self, epochs: usize) -> Vec<usize> {
        match self.start(epochs) {
            (after @ 1.., StartKind::Fine | StartKind::Graph) if after < epochs => {
                let left = epochs - after;
                (0..4).map(|quarter| after + left * quarter / 4).collect::<BTreeSet<_>>().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn learning_rate(&self, _stage: usize, epoch: f64, epochs: usize) -> f64 {
        self.settings.optim.lr_at(epoch, epochs as f64)
    }

    fn loss(&self, batch: &Batch, views: BatchKey) -> f64 {
        let (output, views) = self.output(&batch.items, views);
        self.objective.evaluate(&output, views, Moment::LATE).read().total
    }

    /// Makes clusters where training ended before there were any, and replaces the running batch-norm statistics, which
    /// lag behind the weights, by those of clean images.
    fn settle(&mut self, data: &mut dyn Passes) -> Result<(), LearnError> {
        if matches!(self.start(self.epochs), (1.., StartKind::Fine)) && !self.has_clusters {
            self.look_around(data)?;
            if let Some(layer) = self.clusters_now(true, data)? {
                self.model.replace_output(layer)?;
                self.has_clusters = true;
            }
        }
        if !self.settings.refresh_statistics {
            return Ok(());
        }
        let valid = self.model.valid();
        let mut pass = StatisticsPass::new();
        for batch in joined(data.batches(Pass::Everything), self.batch) {
            pass.add(&valid.forward_train(self.clean(&batch?.items)));
            if pass.images() >= STATISTICS_IMAGES {
                break;
            }
        }
        pass.apply(&mut self.model);
        Ok(())
    }

    fn answers(&self, items: &Items) -> Answers {
        let output = self.model.valid().forward_eval(self.clean(items));
        Answers::read(output.membership, output.embedding)
    }

    fn clusters(&self) -> usize {
        self.valid().config().clusters
    }

    fn weights(&self) -> Vec<NamedArray> {
        let mut weights = self.model.state();
        weights.push(NamedArray::list(HAS_CLUSTERS, Values::U32(vec![u32::from(self.has_clusters)])));
        weights
    }

    fn set_weights(&mut self, weights: &[NamedArray]) -> Result<(), LearnError> {
        let has_clusters = arrays::u32s(weights, HAS_CLUSTERS, Some(1))? == [1];
        let weights: Vec<NamedArray> = weights.iter().filter(|array| array.name != HAS_CLUSTERS).cloned().collect();
        self.model.load_state(&weights)?;
        self.has_clusters = has_clusters;
        Ok(())
    }

    fn progress(&self) -> Vec<NamedArray> {
        let mut arrays = self.optimizer.save();
        arrays.extend(self.surroundings.save());
        arrays.extend(self.balance.save());
        arrays
    }

    fn set_progress(&mut self, progress: &[NamedArray]) -> Result<(), LearnError> {
        self.optimizer = Optimizer::restore(&self.settings.optim, progress, &self.model)?;
        self.surroundings = Surroundings::restore(self.surroundings.common(), progress)?;
        self.balance = self.balance.restore(progress)?;
        Ok(())
    }

    fn inside(&self) -> Option<&dyn Inside> {
        Some(self)
    }

    fn freeze(&self) -> Network {
        self.model.to_network()
    }

    fn joinings(&mut self, clusters: usize, data: &mut dyn Passes) -> Result<Option<Joinings>, LearnError> {
        if !self.has_fine_clusters() || data.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.seen(data)?.joinings(clusters, self.seed, data)?))
    }

    fn step_flops(&self, Extent { rows, steps }: Extent) -> Option<f64> {
        let compared = self.settings.compared(rows);
        Some(match self.valid().config().input.kind() {
            ItemKind::Images => step_flops(self.valid(), rows, compared),
            ItemKind::Sequences => sequence_flops(self.valid(), rows, steps as f64, compared),
            ItemKind::Features => feature_flops(self.valid(), rows, compared),
        })
    }
}
