//! A map on which near points are near: the layout of UMAP, made to give the same bits for any number of threads.

use dtkc_observe::Observer;
use rayon::prelude::*;

use crate::graph::Graph;
use crate::random::Random;

/// Points that one job moves.
const PART: usize = 512;
/// Random others that push a point away for every tie that pulls it.
const PUSHES: usize = 5;
/// How fast the pull of a tie falls off with the distance: points end about this close.
const SHARPNESS: f32 = 1.6;
/// No single force moves a point further.
const MOST: f32 = 4.0;
/// Width of the map at the beginning.
const EXTENT: f32 = 20.0;

/// How long and with which random numbers a map is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Rounds.
    pub rounds: usize,
    /// Seed of the random others.
    pub seed: u64,
}

impl Plan {
    /// Enough rounds for so many points.
    pub fn for_points(n: usize, seed: u64) -> Self {
        Self { rounds: if n > 10_000 { 250 } else { 500 }, seed }
    }
}

/// Places `[n]` in the plane, from where points lie along two axes (`start`, `[n, 2]`; it decides what lies where as a whole).
/// `None` when the observer asks to stop; every round is one unit of its work.
///
/// Ties pull, random others push, and steps get shorter. All points of a round move at once from where they were, unlike in
/// UMAP, so that it does not matter who is first.
pub fn layout(graph: &Graph, start: &[f32], plan: Plan, observer: &dyn Observer) -> Option<Vec<[f32; 2]>> {
    let mut places = begin(start, graph.len(), plan.seed);
    let mut next = places.clone();
    let strongest = graph.weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    for round in 0..plan.rounds {
        if observer.stop() {
            return None;
        }
        let step = 1.0 - round as f32 / plan.rounds as f32;
        let now = &places;
        next.par_chunks_mut(PART).enumerate().for_each(|(part, to)| {
            for (at, to) in to.iter_mut().enumerate() {
                let point = part * PART + at;
                *to = moved(point, graph, now, &Round { round, step, strongest, seed: plan.seed });
            }
        });
        std::mem::swap(&mut places, &mut next);
        observer.advance(1);
    }
    Some(places)
}

struct Round {
    round: usize,
    step: f32,
    strongest: f32,
    seed: u64,
}

/// Where a point goes in a round.
fn moved(point: usize, graph: &Graph, places: &[[f32; 2]], round: &Round) -> [f32; 2] {
    let own = places[point];
    let mut random = Random::at(round.seed, round.round as u64 + 1, point as u64);
    let (mut forces, mut pulling) = ([0.0f32; 2], 0.0f32);
    for (other, weight) in graph.of_point(point) {
        // A tie acts as often as it is strong, and for both its ends in the same rounds.
        let rate = weight / round.strongest;
        if ((round.round + 1) as f32 * rate).floor() <= (round.round as f32 * rate).floor() {
            continue;
        }
        let (by, square) = between(own, places[other]);
        // Twice, because UMAP moves both ends of a tie when it comes from either side.
        let pull = 4.0 * SHARPNESS / (1.0 + SHARPNESS * square);
        pulling += pull;
        add(&mut forces, by, -pull);
        for _ in 0..PUSHES {
            let other = random.below(places.len());
            let (by, square) = between(own, places[other]);
            add(&mut forces, by, 2.0 / ((0.001 + square) * (1.0 + SHARPNESS * square)));
        }
    }
    // A step as if the pull were that of the place it leads to: however many pull, none is overshot.
    let step = round.step / (1.0 + round.step * pulling);
    [own[0] + step * forces[0], own[1] + step * forces[1]]
}

fn between(own: [f32; 2], other: [f32; 2]) -> ([f32; 2], f32) {
    let by = [own[0] - other[0], own[1] - other[1]];
    (by, by[0] * by[0] + by[1] * by[1])
}

fn add(sum: &mut [f32; 2], by: [f32; 2], force: f32) {
    sum[0] += (force * by[0]).clamp(-MOST, MOST);
    sum[1] += (force * by[1]).clamp(-MOST, MOST);
}

/// The first places: the given ones on the map's extent, with a little noise so that copies of one point can part.
fn begin(start: &[f32], n: usize, seed: u64) -> Vec<[f32; 2]> {
    let size = start.iter().fold(0.0f32, |most, x| most.max(x.abs())).max(f32::MIN_POSITIVE);
    let scale = EXTENT / 2.0 / size;
    (0..n)
        .map(|point| {
            let mut random = Random::at(seed, 0, point as u64);
            let mut place = [0.0; 2];
            for (axis, place) in place.iter_mut().enumerate() {
                let at = start.get(2 * point + axis).copied().unwrap_or(0.0);
                *place = at * scale + 0.01 * (random.unit() - 0.5);
            }
            place
        })
        .collect()
}
