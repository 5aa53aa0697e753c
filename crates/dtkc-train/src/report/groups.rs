//! Clusters: who is in them, who is next to them, which may be one and which may be two.

use dtkc_map::{Gap, halves};
use dtkc_report::{Alike, Cluster, Mixed, Near, Report, Shot};

use super::agree::Agreed;
use super::items::Seen;
use super::labels::Classes;
use super::shots::Shots;
use crate::spread::spread;

/// Items of a cluster that are looked at for gaps.
const LOOKED_AT: usize = 1500;
/// Clusters that are named as the nearest of one.
const NEAREST: usize = 3;
/// Pairs, and clusters, that are shown as doubtful.
const SHOWN: usize = 6;
/// Pictures of each side of a doubtful pair.
const PICTURES: usize = 6;
/// Below it two clusters may be one, and above it one may be two: between the gap of an even band that was cut and a clear one.
const CLEAR: f64 = 4.5;
/// A part of a cluster that is smaller than this is no second thing but some outliers.
const SMALLEST: f64 = 0.05;
/// Fewest items of a cluster in the sample that tell whether it is two.
const FEWEST: usize = 20;
/// Seed of two-means.
const SEED: u64 = 1;

/// Pictures of a kind for each of k clusters.
fn pictures(k: usize) -> usize {
    (240 / k.max(1)).clamp(5, 14)
}

/// Every cluster with its pictures, without its neighbours yet.
pub(super) fn clusters(seen: &Seen, agreed: &Agreed, classes: Option<&Classes>, shots: &Shots<'_>) -> Vec<Cluster> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); seen.k];
    for (item, &cluster) in (0u32..).zip(&seen.clusters) {
        members[usize::from(cluster)].push(item);
    }
    let mostly = classes.map_or_else(|| vec![None; seen.k], |classes| classes.mostly(seen));
    let consensus = agreed.agreement.as_ref().and_then(|agreement| agreement.consensus.as_ref());
    let count = pictures(seen.k);
    let mut clusters = Vec::with_capacity(seen.k);
    for ((cluster, mut members), mostly) in members.into_iter().enumerate().zip(mostly) {
        let confidence = |item: u32| f64::from(seen.confidence[item as usize]);
        let mean = members.iter().map(|&item| confidence(item)).sum::<f64>() / members.len().max(1) as f64;
        let typical = if members.len() > 2 * count { count } else { 0 };
        let typical: Vec<Shot> = spread(members.len(), typical).map(|at| shots.of(members[at])).collect();
        members.sort_by(|&a, &b| confidence(b).total_cmp(&confidence(a)).then(a.cmp(&b)));
        let (certain, rest) = members.split_at(count.min(members.len()));
        clusters.push(Cluster {
            cluster,
            size: members.len() as u64,
            share: members.len() as f64 / seen.len().max(1) as f64,
            confidence: (!members.is_empty()).then_some(mean),
            consensus: consensus.and_then(|consensus| consensus.by_cluster.get(cluster).copied().flatten()),
            mostly,
            certain: certain.iter().map(|&item| shots.of(item)).collect(),
            typical,
            uncertain: rest.iter().rev().take(count).map(|&item| shots.of(item)).collect(),
            ..Cluster::default()
        });
    }
    clusters
}

/// Gives clusters their neighbours, and finds what may be one and what may be two.
pub(super) fn relate(report: &mut Report, seen: &Seen, shots: &Shots<'_>) {
    let members: Vec<Vec<u32>> = seen
        .members()
        .into_iter()
        .map(|members| spread(members.len(), LOOKED_AT).map(|at| members[at]).collect())
        .collect();
    let gap = |a: usize, b: usize| Gap::between(&seen.embedding, seen.width, &members[a], &members[b]);
    let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
    for a in 0..seen.k {
        for b in a + 1..seen.k {
            pairs.extend(gap(a, b).map(|gap| (a, b, gap.width)));
        }
    }
    pairs.sort_by(|x, y| x.2.total_cmp(&y.2).then((x.0, x.1).cmp(&(y.0, y.1))));
    for &(a, b, width) in &pairs {
        for (own, other) in [(a, b), (b, a)] {
            let nearest = &mut report.clusters[own].nearest;
            if nearest.len() < NEAREST {
                nearest.push(Near { cluster: other, gap: width });
            }
        }
    }
    let doubtful = pairs.into_iter().filter(|(_, _, width)| *width < CLEAR).take(SHOWN);
    report.alike = doubtful.filter_map(|(a, b, _)| Some(alike([a, b], gap(a, b)?, seen, shots))).collect();
    let mut mixed: Vec<Mixed> =
        members.iter().enumerate().filter_map(|(cluster, members)| split(cluster, members, seen, shots)).collect();
    mixed.sort_by(|x, y| y.gap.total_cmp(&x.gap).then(x.cluster.cmp(&y.cluster)));
    mixed.truncate(SHOWN);
    report.mixed = mixed;
}

fn alike([a, b]: [usize; 2], gap: Gap, seen: &Seen, shots: &Shots<'_>) -> Alike {
    let between = |own: usize, other: usize| -> Vec<u32> {
        let items = (0u32..).zip(seen.clusters.iter().zip(&seen.seconds));
        items.filter(|(_, (c, s))| (usize::from(**c), usize::from(**s)) == (own, other)).map(|(item, _)| item).collect()
    };
    let odds = |item: u32| seen.runner_up[item as usize] / seen.confidence[item as usize].max(f32::MIN_POSITIVE);
    let mut towards = [between(a, b), between(b, a)];
    let torn = towards.iter().flatten().filter(|&&item| odds(item) > 0.5).count();
    let sizes = seen.sizes();
    towards.iter_mut().for_each(|items| items.sort_by(|&x, &y| odds(y).total_cmp(&odds(x)).then(x.cmp(&y))));
    Alike {
        clusters: [a, b],
        gap: gap.width,
        torn: torn as f64 / (sizes[a] + sizes[b]).max(1) as f64,
        bars: [gap.first, gap.second],
        shots: towards.map(|items| items.into_iter().take(PICTURES).map(|item| shots.of(item)).collect()),
    }
}

fn split(cluster: usize, members: &[u32], seen: &Seen, shots: &Shots<'_>) -> Option<Mixed> {
    if members.len() < FEWEST {
        return None;
    }
    let parts = halves(&seen.embedding, seen.width, members, SEED)?;
    let smaller = parts.second.len() as f64 / members.len() as f64;
    let gap = Gap::between(&seen.embedding, seen.width, &parts.first, &parts.second)?;
    if gap.width < CLEAR || smaller < SMALLEST {
        return None;
    }
    let some = |part: &[u32]| -> Vec<Shot> {
        spread(part.len(), PICTURES).map(|at| shots.of(seen.sample[part[at] as usize])).collect()
    };
    let shots = [some(&parts.first), some(&parts.second)];
    Some(Mixed { cluster, gap: gap.width, smaller, bars: [gap.first, gap.second], shots })
}
