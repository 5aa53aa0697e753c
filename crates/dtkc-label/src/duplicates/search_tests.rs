//! The search against a plain one that compares all pairs.
#![allow(clippy::unwrap_used)]

use dtkc_image::{Fingerprint, Hash, VIEWS};
use proptest::prelude::*;

use super::*;
use crate::duplicates::print::Print;

/// An image by the seed of its hashes, bits that are flipped in its whole, its mean and its size.
#[derive(Debug, Clone)]
struct Sketch {
    seed: u64,
    flips: Vec<u8>,
    /// Which view of the original the whole is.
    cut: usize,
    mean: u8,
    flat: bool,
    side: u32,
    embedding: i8,
}

fn noise(seed: u64) -> u64 {
    // SplitMix64.
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn print(sketch: &Sketch) -> Print {
    let mut views: [Hash; VIEWS] =
        std::array::from_fn(|view| std::array::from_fn(|word| noise(sketch.seed * 100 + (view * 4 + word) as u64)));
    views[0] = views[sketch.cut];
    for flip in &sketch.flips {
        views[0][usize::from(*flip) / 64] ^= 1 << (flip % 64);
    }
    if sketch.flat {
        views = [[0; 4]; VIEWS];
    }
    let look = Fingerprint { width: sketch.side, height: 10, bytes: 0, mean: sketch.mean, flat: sketch.flat, views };
    Print { look, embedding: vec![100, sketch.embedding] }
}

fn store(sketches: &[Sketch]) -> Store {
    let mut store = Store::default();
    for (index, sketch) in sketches.iter().enumerate() {
        store.push(index as u64 * 3, &print(sketch)).unwrap();
    }
    store
}

/// The nearest of the ways in which two images are alike, by comparing all views.
fn alike(store: &Store, a: u32, b: u32, most: u32) -> Option<u32> {
    let way = |a: u32, b: u32| {
        let near = |view: &&Hash| (view[0] ^ store.look(b).views[0][0]).count_ones() <= most.min(9);
        let views = &store.look(a).views;
        views.iter().filter(near).filter_map(|view| store.compare(a, view, b, most)).map(|like| like.distance).min()
    };
    if store.look(a).flat || store.look(b).flat {
        let both = store.look(a).flat && store.look(b).flat && store.bright_alike(a, b);
        return both.then_some(0);
    }
    way(a, b).into_iter().chain(way(b, a)).min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn groups_are_what_comparing_all_pairs_gives(
        sketches in prop::collection::vec(
            (0..4u64, prop::collection::vec(any::<u8>(), 0..14), 0..VIEWS, 0..200u8, 0..6u8, 1..4u32, any::<i8>()).prop_map(
                |(seed, flips, cut, mean, flat, side, embedding)| Sketch {
                    seed, flips, cut, mean, flat: flat == 0, side, embedding,
                },
            ),
            0..40,
        ),
        most in prop::sample::select(vec![0, 5, 20, 64]),
    ) {
        let store = store(&sketches);
        let groups = find(&store, most, &mut || true).unwrap();
        let mut kept: Vec<bool> = vec![true; store.len()];
        for group in &groups {
            prop_assert!(!group.copies.is_empty());
            for (copy, likeness) in &group.copies {
                prop_assert!(kept[*copy as usize], "in two groups");
                kept[*copy as usize] = false;
                // A copy of the one that is kept, which is not worse than it.
                let distance = alike(&store, group.keep, *copy, most);
                prop_assert!(distance.is_some_and(|least| likeness.distance >= least), "{} {}", group.keep, copy);
            }
        }
        // None that is kept is a copy of another that is kept.
        let all: Vec<u32> = (0..store.len() as u32).filter(|&place| kept[place as usize]).collect();
        for (at, &a) in all.iter().enumerate() {
            for &b in &all[at + 1..] {
                prop_assert_eq!(alike(&store, a, b, most), None, "{} and {} are both kept", a, b);
            }
        }
        for group in &groups {
            prop_assert!(kept[group.keep as usize]);
        }
    }
}

fn plain(seed: u64) -> Sketch {
    Sketch { seed, flips: Vec::new(), cut: 0, mean: 100, flat: false, side: 10, embedding: 0 }
}

#[test]
fn the_largest_is_kept_and_chains_are_not_followed() {
    // Each differs from the one before in nine bits of the key; the first and the third in eighteen.
    let chain = |range: std::ops::Range<u8>| Sketch { flips: range.collect(), ..plain(1) };
    let store = store(&[chain(0..0), chain(0..9), chain(0..18), Sketch { side: 20, ..plain(2) }, plain(2)]);
    let groups = find(&store, 64, &mut || true).unwrap();
    let members: Vec<(u32, Vec<u32>)> =
        groups.iter().map(|group| (group.keep, group.copies.iter().map(|(copy, _)| *copy).collect())).collect();
    assert_eq!(members, [(0, vec![1]), (3, vec![4])]);
    assert_eq!(groups[0].copies[0].1.distance, 9);
}

#[test]
fn a_part_joins_its_original_whichever_is_larger() {
    for (side, keep) in [(5, 0), (20, 1)] {
        let store = store(&[plain(1), Sketch { cut: 2, side, ..plain(1) }]);
        let groups = find(&store, 64, &mut || true).unwrap();
        assert_eq!((groups.len(), groups[0].keep, groups[0].copies[0].1.distance), (1, keep, 0));
    }
}

#[test]
fn the_model_and_the_brightness_have_a_say() {
    let one = || Sketch { embedding: 127, ..plain(1) };
    for other in [Sketch { embedding: -128, ..plain(1) }, Sketch { mean: 165, ..one() }] {
        assert_eq!(find(&store(&[one(), other]), 64, &mut || true).unwrap(), []);
    }
    assert_eq!(find(&store(&[plain(1), Sketch { mean: 164, ..plain(1) }]), 64, &mut || true).unwrap().len(), 1);
}

/// Many images with one hash must not be compared with each other.
#[test]
fn equal_images_cost_one_look_and_a_stop_is_heard() {
    let flat = Sketch { flat: true, ..plain(1) };
    for sketch in [plain(1), flat] {
        let store = store(&vec![sketch; 20_000]);
        let groups = find(&store, 64, &mut || true).unwrap();
        assert_eq!((groups.len(), groups[0].keep, groups[0].copies.len()), (1, 0, 19_999));
        let mut left = 10;
        let stopped = find(&store, 64, &mut || {
            left -= 1;
            left > 0
        });
        assert_eq!((stopped, left), (None, 0));
    }
}

/// Time and memory at a million images: `cargo test --release -p dtkc-label -- --ignored million --nocapture`.
#[test]
#[ignore = "takes a minute and half a GiB"]
fn a_million() {
    let count = 1_000_000;
    let mut store = Store::default();
    for number in 0..count {
        // Every tenth is a copy of the one before it, cut and with some bits flipped.
        let copy = number % 10 == 9;
        let sketch = Sketch {
            flips: if copy { (0..8).map(|i| noise(number + i) as u8).collect() } else { Vec::new() },
            cut: if copy { noise(number) as usize % VIEWS } else { 0 },
            ..plain(if copy { number - 1 } else { number })
        };
        let mut print = print(&sketch);
        print.embedding = vec![100; 128];
        store.push(number, &print).unwrap();
    }
    let started = std::time::Instant::now();
    let groups = find(&store, 64, &mut || true).unwrap();
    let copies: usize = groups.iter().map(|group| group.copies.len()).sum();
    let peak = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("{count} images, {} groups, {copies} copies, {:?}, {peak}", groups.len(), started.elapsed());
    assert_eq!((groups.len(), copies), (count as usize / 10, count as usize / 10));
}
