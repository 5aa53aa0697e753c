//! Maps keep neighbours together, and threads change nothing.
#![allow(clippy::unwrap_used)]

use dtkc_map::{Graph, Plan, layout};
use dtkc_observe::Silent;

const HEAPS: usize = 5;
const EACH: usize = 80;

/// Heaps far apart in six dimensions.
fn points() -> Vec<[f32; 6]> {
    let mut state = 9u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 24) as f32
    };
    (0..HEAPS * EACH).map(|i| std::array::from_fn(|d| next() + if d == i % HEAPS { 10.0 } else { 0.0 })).collect()
}

/// The nearest others of every point, the slow way.
fn neighbours(points: &[[f32; 6]], count: usize) -> (Vec<u32>, Vec<f32>) {
    let (mut items, mut squares) = (Vec::new(), Vec::new());
    for (i, own) in points.iter().enumerate() {
        let square = |other: &[f32; 6]| own.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
        let mut all: Vec<(f32, usize)> =
            points.iter().enumerate().filter(|(j, _)| *j != i).map(|(j, other)| (square(other), j)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        items.extend(all[..count].iter().map(|(_, j)| *j as u32));
        squares.extend(all[..count].iter().map(|(square, _)| *square));
    }
    (items, squares)
}

fn made(threads: usize) -> Vec<[f32; 2]> {
    let points = points();
    let (items, squares) = neighbours(&points, 12);
    let graph = Graph::of(12, &items, &squares);
    // All at one place: the map has to find everything itself.
    let start: Vec<f32> = points.iter().flat_map(|point| [point[5], point[5]]).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| layout(&graph, &start, Plan { rounds: 300, seed: 4 }, &Silent)).unwrap()
}

#[test]
fn what_is_near_stays_near() {
    let places = made(1);
    let mut right = 0;
    for (i, own) in places.iter().enumerate() {
        let square = |j: usize| (own[0] - places[j][0]).powi(2) + (own[1] - places[j][1]).powi(2);
        let nearest = (0..places.len()).filter(|&j| j != i).min_by(|&a, &b| square(a).total_cmp(&square(b))).unwrap();
        right += usize::from(nearest % HEAPS == i % HEAPS);
    }
    assert!(right >= places.len() * 99 / 100, "{right} of {} have a neighbour of their own heap", places.len());
    assert!(places.iter().flatten().all(|x| x.is_finite() && x.abs() < 1000.0));
}

#[test]
fn threads_change_no_bit() {
    assert_eq!(made(1), made(3));
}

#[test]
fn work_that_should_stop_does() {
    struct Stop;
    impl dtkc_observe::Observer for Stop {
        fn stop(&self) -> bool {
            true
        }
    }
    let graph = Graph::of(1, &[1, 0], &[1.0, 1.0]);
    assert_eq!(layout(&graph, &[0.0; 4], Plan { rounds: 5, seed: 1 }, &Stop), None);
}
