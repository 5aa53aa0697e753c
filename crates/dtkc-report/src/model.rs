//! The facts of a report, as plain data.

use serde::Serialize;

use crate::pictures::{Picture, Tiles};

/// Everything that a report says. Parts that do not apply are empty or absent, and then no form of it mentions them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// What was clustered and how.
    pub about: About,
    /// What a reader must know before anything else: training is not finished, other data.
    pub notes: Vec<String>,
    /// Signs that the clusters are not what was hoped for.
    pub doubts: Vec<Doubt>,
    /// Every restart.
    pub restarts: Vec<Restart>,
    /// How training went.
    pub charts: Vec<Chart>,
    /// How far restarts agree, where there are several.
    pub agreement: Option<Agreement>,
    /// Every cluster, largest first.
    pub clusters: Vec<Cluster>,
    /// Pairs of clusters that may be one, the likeliest first.
    pub alike: Vec<Alike>,
    /// Clusters that may be two, the likeliest first.
    pub mixed: Vec<Mixed>,
    /// Agreement with labels, where there are any.
    pub scores: Option<Scores>,
    /// Every item as a point, or an even sample.
    #[serde(skip)]
    pub map: Option<Map>,
}

/// What was clustered and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct About {
    /// Name of the dataset.
    pub dataset: String,
    /// `images` or `sequences`.
    pub kind: String,
    /// One of them: `image` or `sequence`.
    pub one: String,
    /// Number of items.
    pub items: usize,
    /// What they look like, such as `28x28x1`.
    pub shape: String,
    /// Method.
    pub method: String,
    /// Preset that the settings started from.
    pub preset: String,
    /// Number of clusters.
    pub clusters: usize,
    /// How that number was found, where it was not given.
    pub number: Option<String>,
    /// Clusters that have an item.
    pub used: usize,
    /// Mean of the largest membership.
    pub confidence: f64,
    /// Seed of the run.
    pub seed: u64,
    /// The restart that is shown.
    pub restart: usize,
    /// Why that one, in a sentence.
    pub why: String,
    /// Version of the program.
    pub version: String,
}

/// A sign that something is not as hoped for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// What was seen.
    pub sign: String,
    /// What to try next.
    pub remedy: String,
}

/// One restart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Restart {
    /// Its number, from 0.
    pub restart: usize,
    /// Whether it is the one that is shown.
    pub chosen: bool,
    /// Epochs of clustering.
    pub epochs: usize,
    /// The epoch whose weights were kept.
    pub kept: Option<usize>,
    /// Loss on the batches that all restarts share.
    pub loss: Option<f64>,
    /// Clusters that have an item.
    pub used: Option<usize>,
    /// Why it ended.
    pub ended: Ending,
    /// Accuracy, where there are labels; not used to choose.
    pub acc: Option<f64>,
    /// Normalised mutual information with labels; not used to choose.
    pub nmi: Option<f64>,
}

/// Why a restart ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// In words.
    pub text: String,
    /// Whether it was dropped because others were ahead.
    pub pruned: bool,
}

/// One measure over the epochs of all restarts.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Chart {
    /// The measure, such as `loss` or `separation`.
    pub name: String,
    /// The stage, where it is another than clustering.
    pub stage: Option<String>,
    /// Whether labels are needed for it, which training never sees.
    pub needs_labels: bool,
    /// One line for each restart.
    pub lines: Vec<Line>,
}

/// A measure of one restart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Line {
    /// The restart.
    pub restart: usize,
    /// Whether it is the one that is shown.
    pub chosen: bool,
    /// Epoch and value.
    pub points: Vec<(usize, f64)>,
    /// What happened on the way.
    pub marks: Vec<Mark>,
}

/// Something that happened after an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The epoch.
    pub epoch: usize,
    /// `clusters made anew` or `pruned`.
    pub what: String,
}

/// How far restarts agree: the sign of a result to be trusted that needs no labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// The restarts, as rows and columns.
    pub restarts: Vec<usize>,
    /// Which of them were pruned: they had no chance to find the same.
    pub pruned: Vec<usize>,
    /// Normalised mutual information of every pair, 1 on the diagonal.
    pub nmi: Vec<Vec<f64>>,
    /// Items that were compared.
    pub items: usize,
    /// Items of the training set.
    pub of: usize,
    /// The mean over pairs of restarts that came to their end.
    pub mean: Option<f64>,
    /// Who agrees about single items.
    pub consensus: Option<Consensus>,
}

/// How many restarts put an item where the chosen one does, once their clusters are matched.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Consensus {
    /// Restarts beside the chosen one that came to their end.
    pub others: usize,
    /// Mean part of them that agrees.
    pub mean: f64,
    /// Items by how many of the others agree, from none to all.
    pub counts: Vec<u64>,
    /// Mean part that agrees in each cluster; absent for those without a compared item.
    pub by_cluster: Vec<Option<f64>>,
}

/// One cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cluster {
    /// Its number in the exported model.
    pub cluster: usize,
    /// Items in it.
    pub size: u64,
    /// Part of all items.
    pub share: f64,
    /// Mean of the largest membership.
    pub confidence: Option<f64>,
    /// Mean part of the other restarts that agree about its items.
    pub consensus: Option<f64>,
    /// The clusters with the smallest gap to it.
    pub nearest: Vec<Near>,
    /// The class that most of its items have.
    pub mostly: Option<Mostly>,
    /// Items that the network is surest of.
    pub certain: Vec<Shot>,
    /// Items drawn evenly from all of it.
    pub typical: Vec<Shot>,
    /// Items that nearly went elsewhere.
    pub uncertain: Vec<Shot>,
    /// Pictures of what decides, where they were made.
    #[serde(skip)]
    pub importance: Vec<Picture>,
}

/// A cluster and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Near {
    /// Its number.
    pub cluster: usize,
    /// The gap to it, in spreads.
    pub gap: f64,
}

/// The most frequent class of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mostly {
    /// The class.
    pub class: String,
    /// Part of the cluster's labelled items.
    pub share: f64,
}

/// One item that is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Shot {
    /// Its place in the dataset.
    pub index: usize,
    /// Its name, where the dataset has names.
    pub name: Option<String>,
    /// Its largest membership.
    pub confidence: f64,
    /// The second best cluster.
    pub second: Option<usize>,
    /// Its class, where it has a label.
    pub label: Option<String>,
    /// What it looks like.
    #[serde(skip)]
    pub picture: Option<Picture>,
}

/// Two clusters that may be one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Alike {
    /// The clusters, the larger first.
    pub clusters: [usize; 2],
    /// How far they are apart, in spreads.
    pub gap: f64,
    /// Part of their items whose second best cluster is the other, with less than twice the odds.
    pub torn: f64,
    /// Items along the line through their middles, for each.
    pub bars: [Vec<u32>; 2],
    /// Some items of each, those next to the other cluster.
    pub shots: [Vec<Shot>; 2],
}

/// A cluster that may be two.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mixed {
    /// The cluster.
    pub cluster: usize,
    /// How far its halves are apart, in spreads.
    pub gap: f64,
    /// Part of its items in the smaller half.
    pub smaller: f64,
    /// Items along the line through the middles of the halves, for each.
    pub bars: [Vec<u32>; 2],
    /// Some items of each half.
    pub shots: [Vec<Shot>; 2],
}

/// Agreement with labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Scores {
    /// Accuracy under the best matching.
    pub acc: f64,
    /// Normalised mutual information.
    pub nmi: f64,
    /// Adjusted Rand index.
    pub ari: f64,
    /// Items that have a label.
    pub labelled: usize,
    /// Every class.
    pub classes: Vec<ClassScore>,
    /// Classes against clusters.
    pub confusion: Confusion,
}

/// How well one class was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClassScore {
    /// The class.
    pub class: String,
    /// Its items.
    pub items: u64,
    /// The cluster it is matched with; classes may be more than clusters.
    pub cluster: Option<usize>,
    /// Part of its items in that cluster (recall).
    pub found: f64,
    /// Part of that cluster's items that are of the class (precision).
    pub pure: f64,
}

/// Counts of items by class and cluster; matched pairs stand on the diagonal.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Confusion {
    /// Names of the rows.
    pub classes: Vec<String>,
    /// Clusters of the columns.
    pub clusters: Vec<usize>,
    /// `[classes][clusters]`.
    pub counts: Vec<Vec<u64>>,
}

/// Items as points. All lists have one entry for each of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Map {
    /// Items of the dataset, of which this may be a sample.
    pub of: usize,
    /// Places in the dataset, ascending.
    pub items: Vec<u32>,
    /// Along the two axes of largest variance.
    pub axes: Vec<[f32; 2]>,
    /// Part of the variance that each of these has.
    pub shares: [f64; 2],
    /// On a map of neighbours; empty where there are too few items for one.
    pub near: Vec<[f32; 2]>,
    /// Clusters.
    pub clusters: Vec<u16>,
    /// Second best clusters.
    pub seconds: Vec<u16>,
    /// Largest memberships.
    pub confidence: Vec<f32>,
    /// Part of the other restarts that agree, where that is known; empty where it is known of none.
    pub consensus: Vec<Option<f32>>,
    /// Classes, as places in `label_names`; empty without labels.
    pub labels: Vec<Option<u16>>,
    /// Their names.
    pub label_names: Vec<String>,
    /// Names of the items; empty where they have none.
    pub names: Vec<String>,
    /// What they look like.
    pub tiles: Option<Tiles>,
}
