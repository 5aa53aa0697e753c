//! Images as the network sees them: who is near whom, once something was learnt.
//!
//! Three kinds of neighbours make a graph. By embeddings alone a class that varies much falls apart where no image lies
//! between its forms. A random view of an image lands among images of its own class that look different, and so ties them
//! together; hardly ever does it land in another class. Outlines (of sequences: their resampled values) know nothing of what
//! was learnt, and do not share its mistakes. What all of them leave apart are mostly classes; each alone fails on some set (REPRODUCING.md).

use dtkc_core::OutputLayer;

use super::grains::{Grains, Grouping, groupings};
use super::joinings::Joinings;
use super::regroup::{Evidence, Square, coarsen, joinings};
use super::strays::bring_home;
use crate::LearnError;
use crate::coder::has_empty_cluster;
use crate::kmeans::Points;
use crate::learner::Passes;
use crate::nearest::Neighbours;
use crate::spectral::{Graph, to_length_one};

/// Images that are looked at: enough to see how classes are tied, and all pairs of them take some seconds.
pub(super) const MOST: usize = 10_000;

/// Nearest others of an image, and of a view of it.
const NEAR: usize = 10;
const NEAR_A_VIEW: usize = 5;

/// How often outlines count in the graphs that clusters are made of: twice is as much as embeddings and views together. Where outlines join two classes others are right, and where views do not join one it is the other way round.
const OUTLINES_FOR_CLUSTERS: [usize; 3] = [2, 1, 0];
/// For the number of clusters they count once, because classes of one outline would be missed.
const OUTLINES_FOR_THE_NUMBER: usize = 1;

/// Groups of which clusters are made, for every two of them: as many as there are clusters, and more, which are joined. Groups
/// of a graph are cut where it is thin, and thin places within a large class are found before a small class is.
const FOR_TWO: [usize; 3] = [2, 3, 4];

/// Part of the entropy of sizes that does not count as told. With all of it counted a class that has 40 % of the images is split
/// and others share a cluster, because halves tell something of each other wherever a class varies; between this and a third the
/// same is taken on every network that was looked at (REPRODUCING.md).
const UNEVEN: f64 = 0.2;

/// How much more, as a part, other clusters must tell about what is near than those that the network has: a class in two clusters
/// while two others share one costs ten of them 2.6 to 3.7 %, clusterings of which one is right about a percent more of the images
/// differ by 1.2 % at most (REPRODUCING.md), and a new layer costs what it has to learn again.
const CLEARLY: f64 = 0.01;

/// Why no number of clusters can be told.
const NO_GROUPS: &str = "the images fall into so many parts that are near nothing else that their number says nothing: give \
                         --clusters K";

/// How well eigenvectors must fit. The smallest distances of eigenvalues from 1 that matter are some hundred times that.
const RESIDUAL: f64 = 1e-6;

/// Random views of each image: with one, classes of few images are not tied together enough.
const FEWEST_VIEWS: usize = 2;
/// Few images tell little about what is near; more views of each make up for some of it.
const MOST_VIEWS: usize = 16;

/// How often random views of so many images are looked at.
pub(super) fn rounds(images: usize) -> usize {
    (FEWEST_VIEWS * MOST / images.max(1)).clamp(FEWEST_VIEWS, MOST_VIEWS)
}

/// Which output layer is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) clusters: usize,
    /// Also where the present clusters are as good.
    pub(super) in_any_case: bool,
    /// Whether groups that strayed into another cluster are brought home.
    pub(super) strays: bool,
    pub(super) seed: u64,
}

/// Who is near whom: by embeddings, from where views of an image are seen, and by outlines where there are any.
struct Near {
    seen: Neighbours,
    views: Vec<Neighbours>,
    outlines: Option<Neighbours>,
}

impl Near {
    /// Those that clusters are made of; where there are no outlines there is one.
    fn graphs(&self) -> Vec<Graph> {
        let times = if self.outlines.is_some() { &OUTLINES_FOR_CLUSTERS[..] } else { &[0] };
        times.iter().map(|&times| self.graph(times)).collect()
    }

    /// All of them as a graph; outlines count so many times, views as often as the fewest of them, however many there are.
    fn graph(&self, outlines: usize) -> Graph {
        let of_view = FEWEST_VIEWS as f64 / self.views.len().max(1) as f64;
        let views = self.views.iter().map(|table| (table, of_view));
        let outlines = self.outlines.iter().map(|table| (table, outlines as f64));
        let has_weight = |&(_, weight): &(&Neighbours, f64)| weight > 0.0;
        let tables: Vec<_> = [(&self.seen, 1.0)].into_iter().chain(views).chain(outlines).filter(has_weight).collect();
        Graph::weighted(&tables)
    }

    /// How often two of so many clusters are near each other: by views, and by outlines where there are any. By embeddings it is
    /// not asked: they repeat what the network got wrong.
    fn joints(&self, clusters: &[u32], k: usize) -> Vec<Square> {
        let joint = |tables: &[Neighbours]| {
            let pairs = tables.iter().flat_map(Neighbours::pairs);
            Square::of_pairs(k, pairs.map(|(one, other)| (clusters[one], clusters[other])))
        };
        [self.views.as_slice(), self.outlines.as_slice()]
            .into_iter()
            .filter(|tables| !tables.is_empty())
            .map(joint)
            .collect()
    }

    /// How often two groups are near each other, each way to be near counting as much; `None` where there is none.
    fn joint(&self, grouping: &Grouping) -> Option<Square> {
        Square::mean(&self.joints(&grouping.of, grouping.groups))
    }

    /// What the cluster of an image tells about the clusters of those near it, in nats: the mutual information less a part of the
    /// entropy of sizes, summed over the ways to be near. It is large where what is near shares a cluster and no cluster is split
    /// while others are joined.
    fn told(&self, clusters: &[u32], k: usize) -> f64 {
        self.joints(clusters, k).iter().map(|joint| joint.information() - UNEVEN * joint.entropy()).sum()
    }

    /// Groups as clusters: where there are more, those are joined one after the other that lose the least of what is told.
    fn joined(&self, grouping: &Grouping, k: usize) -> Option<Candidate> {
        let joined = coarsen(&self.joint(grouping)?, k, UNEVEN);
        let clusters: Vec<u32> = grouping.of.iter().map(|&group| joined[group as usize] as u32).collect();
        Some(Candidate { told: self.told(&clusters, k), clusters })
    }
}

/// What a network makes of some images and of random views of each, and their outlines.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Seen {
    /// Values of an embedding.
    width: usize,
    images: Vec<f32>,
    /// For every round of views.
    views: Vec<Vec<f32>>,
    outlines: Vec<f32>,
    clusters: Vec<u32>,
}

impl Seen {
    /// Adds items with their outlines, their present clusters, and embeddings of them and of their views, `width` values each: `[2 n, width]` for every
    /// round of views, the items first.
    pub(super) fn add(&mut self, outlines: Vec<f32>, clusters: Vec<u32>, width: usize, rounds: &[Vec<f32>]) {
        self.views.resize(rounds.len(), Vec::new());
        self.clusters.extend(clusters);
        self.width = width;
        for (views, rows) in self.views.iter_mut().zip(rounds) {
            views.extend_from_slice(&rows[rows.len() / 2..]);
        }
        if let Some(rows) = rounds.first() {
            self.images.extend_from_slice(&rows[..rows.len() / 2]);
        }
        self.outlines.extend(outlines);
    }

    /// Number of images.
    pub(super) fn len(&self) -> usize {
        self.images.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether no image is in one of so many clusters now.
    pub(super) fn has_empty_cluster(&self, clusters: usize) -> bool {
        has_empty_cluster(&self.clusters, clusters)
    }

    /// The embeddings of the images, without those of their views.
    fn images(&self) -> Points<'_> {
        Points { values: &self.images, width: self.width }
    }

    /// Who is near whom in every way.
    fn near(&self, data: &dyn Passes) -> Result<Near, LearnError> {
        data.note("nearest neighbours as the network sees them");
        let images = self.of_length_one(&self.images);
        let places = Points { values: &images, width: self.width };
        let by_outlines = Points { values: &self.outlines, width: self.outlines.len() / self.len().max(1) };
        // Where most images have none, who is near by them is chance.
        let blank = (0..by_outlines.len()).filter(|&i| by_outlines.row(i).iter().all(|&value| value == 0.0)).count();
        let has_outlines = 2 * blank <= self.len();
        let stop = || data.stop();
        let views = self.views.iter().map(|views| {
            let views = self.of_length_one(views);
            Neighbours::find_from(&Points { values: &views, width: self.width }, &places, NEAR_A_VIEW, &stop)
        });
        Ok(Near {
            seen: Neighbours::find(&places, NEAR, &stop)?,
            views: views.collect::<Result<Vec<_>, _>>()?,
            outlines: has_outlines.then(|| Neighbours::find(&by_outlines, NEAR, &stop)).transpose()?,
        })
    }

    fn of_length_one(&self, rows: &[f32]) -> Vec<f32> {
        let mut rows = rows.to_vec();
        rows.chunks_exact_mut(self.width.max(1)).for_each(to_length_one);
        rows
    }

    /// What groups tell as they are joined, from twice so many on, where there are images enough.
    pub(super) fn joinings(&self, clusters: usize, seed: u64, data: &dyn Passes) -> Result<Joinings, LearnError> {
        let (near, clusters) = (self.near(data)?, clusters.min(self.len().div_ceil(2)));
        let grains = Grains { clusters, for_two: &FOR_TWO, residual: RESIDUAL, seed };
        let found = groupings(&near.graph(OUTLINES_FOR_THE_NUMBER), &grains, &|| data.stop())?;
        let joint =
            found.last().and_then(|most| near.joint(most)).ok_or_else(|| LearnError::Unsuitable(NO_GROUPS.into()))?;
        Ok(Joinings::new(joinings(&joint, Joinings::UNEVEN)))
    }

    /// An output layer for clusters by such graphs; `None` where they have none. Unless it is wanted in any case, only one that
    /// is clearly better than the present clusters: what was learnt since may tell more than what they were made of. Or the present
    /// clusters, where some images have strayed.
    pub(super) fn output(&self, wanted: &Wanted, data: &dyn Passes) -> Result<Option<OutputLayer>, LearnError> {
        if self.len() <= wanted.clusters.max(NEAR) {
            return Ok(None);
        }
        let (near, k) = (self.near(data)?, wanted.clusters);
        let (graphs, stop) = (near.graphs(), || data.stop());
        let grains = Grains { clusters: k, for_two: &FOR_TWO, residual: RESIDUAL, seed: wanted.seed };
        let mut candidates = Vec::new();
        for graph in &graphs {
            let groupings = groupings(graph, &grains, &stop)?;
            candidates.extend(groupings.iter().filter_map(|grouping| near.joined(grouping, k)));
        }
        let Some(best) = Candidate::best(candidates) else { return Ok(None) };
        let is_better = || {
            let present = near.told(&self.clusters, k);
            best.told - present > CLEARLY * present.abs()
        };
        let is_wanted = wanted.in_any_case || is_better();
        let mut clusters = if is_wanted { best.clusters } else { self.clusters.clone() };
        let moved = match (&near.outlines, wanted.strays) {
            (Some(outlines), true) => bring_home(&mut clusters, k, (&graphs[0], outlines), wanted.seed, &stop)?,
            _ => 0,
        };
        let is_new = is_wanted || moved > 0;
        Ok(if is_new { Evidence::layer_of(self.images(), &clusters, k) } else { None })
    }
}

/// Clusters that images may have.
struct Candidate {
    clusters: Vec<u32>,
    /// What they tell about what is near.
    told: f64,
}

impl Candidate {
    /// The one that tells most, the first of equal ones.
    fn best(candidates: Vec<Self>) -> Option<Self> {
        candidates.into_iter().reduce(|best, next| if next.told > best.told { next } else { best })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::learner::Silent;
    use crate::random::Random;

    /// 60 images of three forms; a view of the first form is an image of the second, and the other way round.
    fn three_forms(with_views: bool) -> Seen {
        let mut random = Random::new(3, b"test....", 0);
        let mut place = |form: usize| {
            let middle = |at: usize| if at == form { 3.0 } else { 0.0 };
            [0, 1, 2, 3, 4, 5].map(|at| (middle(at) + random.unit()) as f32)
        };
        let images: Vec<[f32; 6]> = (0..60).map(|i| place(i % 3)).collect();
        let seen_as = |i: usize| match i % 3 {
            0 if with_views => i + 1,
            1 if with_views => i - 1,
            _ => i,
        };
        let views: Vec<f32> = (0..60).flat_map(|i| images[seen_as(i)]).collect();
        Seen {
            width: 6,
            images: images.concat(),
            views: vec![views.clone(), views],
            outlines: vec![0.0; 60 * 4],
            clusters: Vec::new(),
        }
    }

    fn wanted(clusters: usize, in_any_case: bool) -> Wanted {
        Wanted { clusters, in_any_case, strays: false, seed: 1 }
    }

    /// The cluster of every image by a new layer.
    fn answers(seen: &Seen, k: usize) -> Vec<usize> {
        let layer = seen.output(&wanted(k, true), &Silent).unwrap().unwrap();
        let logit = |row: &[f32], cluster: usize| {
            let weights = layer.weight.iter().skip(cluster).step_by(k);
            layer.bias[cluster] + row.iter().zip(weights).map(|(value, weight)| value * weight).sum::<f32>()
        };
        let likeliest = |row: &[f32]| (0..k).max_by(|&a, &b| logit(row, a).total_cmp(&logit(row, b))).unwrap();
        seen.images.chunks_exact(seen.width).map(likeliest).collect()
    }

    fn best(seen: &Seen) -> usize {
        let numbers = seen.joinings(3, 1, &Silent).unwrap().numbers(2, 6);
        numbers.iter().max_by(|a, b| a.score.total_cmp(&b.score)).unwrap().clusters
    }

    #[test]
    fn forms_that_views_join_are_one_class() {
        assert_eq!([best(&three_forms(false)), best(&three_forms(true))], [3, 2]);
        let seen = three_forms(true);
        let found = answers(&seen, 2);
        assert!((0..60).all(|i| found[i] == found[usize::from(i % 3 == 2) * 2]), "{found:?}");
        assert_ne!(found[0], found[2]);
    }

    #[test]
    fn few_images_tell_something_about_every_number() {
        let images = &three_forms(true).images[..8 * 6];
        let rows = [images, images].concat();
        let mut few = Seen::default();
        few.add(vec![0.0; 8 * 4], vec![0; 8], 6, &[rows]);
        let numbers = few.joinings(15, 1, &Silent).unwrap().numbers(2, 7);
        assert!(numbers.len() == 6 && numbers.iter().all(|number| number.score.is_finite()), "{numbers:?}");
    }

    #[test]
    fn clusters_are_replaced_only_by_better_ones() {
        let right: Vec<u32> = (0..60).map(|i| u32::from(i % 3 == 2)).collect();
        let wrong: Vec<u32> = (0..60).map(|i| u32::from(i % 3 == 1)).collect();
        let is_replaced = |now: &[u32]| {
            let seen = Seen { clusters: now.to_vec(), ..three_forms(true) };
            assert!(!seen.has_empty_cluster(2) && seen.has_empty_cluster(3));
            seen.output(&wanted(2, false), &Silent).unwrap().is_some()
        };
        assert!(is_replaced(&wrong) && !is_replaced(&right));
    }

    #[test]
    fn those_that_tell_most_about_what_is_near_are_taken() {
        let near = three_forms(true).near(&Silent).unwrap();
        let candidate = |joined: usize| {
            let clusters: Vec<u32> = (0..60).map(|i| u32::from(i % 3 == joined)).collect();
            Candidate { told: near.told(&clusters, 2), clusters }
        };
        // Views of the first two forms are images of each other, so only the third is told from its views.
        let taken = |order: [usize; 2]| Candidate::best(order.map(candidate).into()).unwrap().clusters;
        let right = candidate(2).clusters;
        assert_eq!([taken([1, 2]), taken([2, 1])], [right.clone(), right]);
        assert!(Candidate::best(Vec::new()).is_none());
    }

    #[test]
    fn few_images_are_looked_at_more_often_and_views_weigh_the_same() {
        assert_eq!([0, 200, 2_000, 6_000, 10_000, 60_000].map(rounds), [16, 16, 10, 3, 2, 2]);
        let two = three_forms(true).near(&Silent).unwrap();
        let many = Near {
            views: two.views.iter().cycle().take(8).cloned().collect(),
            ..three_forms(true).near(&Silent).unwrap()
        };
        let [two, many] = [two, many].map(|near| near.graph(1).degrees());
        assert!(two.iter().zip(&many).all(|(two, many)| (two - many).abs() < 1e-9));
    }

    #[test]
    fn groups_are_joined_that_are_near_each_other() {
        let near = three_forms(true).near(&Silent).unwrap();
        // Each form in two groups; the first two forms are one cluster by their views.
        let of: Vec<u32> = (0..60).map(|i| i % 3 * 2 + i / 30).collect();
        let found = near.joined(&Grouping { groups: 6, of }, 2).unwrap().clusters;
        assert!((0..60).all(|i| (found[i] == found[2]) == (i % 3 == 2)), "{found:?}");
        // As many groups as clusters are those clusters.
        let of: Vec<u32> = (0..60).map(|i| i % 2).collect();
        let found = near.joined(&Grouping { groups: 2, of: of.clone() }, 2).unwrap().clusters;
        assert!((0..60).all(|i| (found[i] == found[0]) == (of[i] == of[0])));
    }

    #[test]
    fn views_and_outlines_tell_alike() {
        let table = |items: [u32; 8]| Neighbours { count: 2, items: items.to_vec(), squares: vec![0.0; 8] };
        let near = |views: &[[u32; 8]], outlines| Near {
            seen: table([1, 1, 0, 0, 3, 3, 2, 2]),
            views: views.iter().copied().map(table).collect(),
            outlines,
        };
        // sklearn.metrics.mutual_info_score(None, None, contingency=[[3, 1], [1, 3]]) and log 2, for clusters of two each.
        let mixed = [1, 2, 0, 0, 3, 0, 2, 2];
        // Both have clusters of like size.
        let sizes = UNEVEN * 2f64.ln();
        let (by_views, by_outlines) = (0.130_812_035_941_136_9 - sizes, 2f64.ln() - sizes);
        let clusters = [0, 0, 1, 1];
        let told = |near: Near| near.told(&clusters, 2);
        assert!((told(near(&[mixed], None)) - by_views).abs() < 1e-12);
        assert!((told(near(&[mixed, mixed], None)) - by_views).abs() < 1e-12, "more views count no more");
        let both = near(&[mixed], Some(table([1, 1, 0, 0, 3, 3, 2, 2])));
        assert!((told(both) - by_views - by_outlines).abs() < 1e-12);
        assert_eq!(told(near(&[], None)), 0.0);
    }

    #[test]
    fn outlines_join_what_embeddings_keep_apart_unless_there_are_none() {
        // Forms 1 and 2 have the same outlines, form 0 has others.
        let mut seen = three_forms(false);
        let mut random = Random::new(4, b"test....", 0);
        let row = |i: usize| if i.is_multiple_of(3) { [1.0, 0.0, 0.1, 0.0] } else { [0.0, 1.0, 0.0, 0.1] };
        seen.outlines = (0..60).flat_map(|i| row(i).map(|v: f32| v + 0.01 * random.unit() as f32)).collect();
        assert_eq!(best(&seen), 2);
        let found = answers(&seen, 2);
        assert!(found[1] == found[2] && found[0] != found[1]);
    }

    #[test]
    fn too_few_images_have_no_clusters() {
        let mut few = three_forms(true);
        few.views.iter_mut().chain([&mut few.images]).for_each(|rows| rows.truncate(48));
        few.outlines.truncate(32);
        assert_eq!(few.output(&wanted(3, true), &Silent).unwrap(), None);
        assert_eq!(Seen::default().output(&wanted(3, true), &Silent).unwrap(), None);
    }
}
