//! Groups of copies.
//!
//! Images are looked at in the order in which one would keep them. One that is a copy of none that is kept is kept, and
//! takes along all its copies that are not taken yet. So every image of a group is a copy of the one that is kept, and
//! none joins only because it is like a copy of a copy; and no image that is kept is a copy of another.
//!
//! A copy that was cut is a part of its original: either has a view that is the whole of the other. When an image's turn
//! comes its views are compared with the wholes of all others. Where the other way round matches, the later of the two
//! finds it at its own turn.

use super::index::Index;
use super::store::{Likeness, Store};

/// Images that are copies of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The one to keep.
    pub keep: u32,
    /// The others, in the order of the input, and how much they are like it.
    pub copies: Vec<(u32, Likeness)>,
}

/// What is known of an image during the search.
#[derive(Debug, Clone, Copy)]
struct Taken {
    by: u32,
    likeness: Likeness,
}

const NOBODY: u32 = u32::MAX;

/// The groups, in the order of the first image of each. `most` is the most bits of a hash in which copies differ. `going`
/// is told of every image that was looked at, and says whether to go on; `None` where it does not.
pub fn find(store: &Store, most: u32, going: &mut dyn FnMut() -> bool) -> Option<Vec<Group>> {
    let same = Likeness { distance: 0, similarity: 1.0 };
    let mut taken = vec![Taken { by: NOBODY, likeness: same }; store.len()];
    let seen = (0..store.len() as u32).filter(|&place| !store.look(place).flat);
    let index = Index::new(seen.map(|place| (store.look(place).views[0][0], place)));
    let mut kept_flat = Vec::new();
    let mut hits = Vec::new();
    for place in store.ranked() {
        if !going() {
            return None;
        }
        if taken[place as usize].by != NOBODY {
            continue;
        }
        if store.look(place).flat {
            taken[place as usize] = flat(store, place, &mut kept_flat);
            continue;
        }
        hits.clear();
        look(store, &index, place, most, &mut |other, likeness| {
            // Whoever is taken and not kept is out of question, however many there are.
            let by = taken[other as usize].by;
            if by == NOBODY || by == other {
                hits.push((other, likeness));
            }
        });
        let kept = hits.iter().filter(|(other, _)| taken[*other as usize].by == *other);
        let nearest = kept.min_by_key(|(other, likeness)| (likeness.distance, store.index(*other)));
        if let Some(&(by, likeness)) = nearest {
            taken[place as usize] = Taken { by, likeness };
            continue;
        }
        taken[place as usize].by = place;
        for &(other, likeness) in &hits {
            let other = &mut taken[other as usize];
            if other.by == NOBODY || likeness.distance < other.likeness.distance {
                *other = Taken { by: place, likeness };
            }
        }
    }
    Some(groups(store, &taken))
}

/// Shows the images that are like a view of this one; one more than once where several views are.
fn look(store: &Store, index: &Index, place: u32, most: u32, found: &mut dyn FnMut(u32, Likeness)) {
    for view in &store.look(place).views {
        index.near(view[0], most, |other| {
            if other != place
                && let Some(likeness) = store.compare(place, view, other, most)
            {
                found(other, likeness);
            }
        });
    }
}

/// Images without anything to be seen are copies where they are about as bright: there is nothing else to compare, and
/// what a model makes of their noise says nothing. Only a few can be kept, so many of them cost little.
fn flat(store: &Store, place: u32, kept: &mut Vec<u32>) -> Taken {
    let like = kept.iter().copied().find(|&other| store.bright_alike(place, other));
    let by = like.unwrap_or(place);
    if like.is_none() {
        kept.push(place);
    }
    Taken { by, likeness: Likeness { distance: 0, similarity: store.similarity(place, by) } }
}

fn groups(store: &Store, taken: &[Taken]) -> Vec<Group> {
    let mut copies: Vec<(u32, u32)> = (0..taken.len() as u32)
        .map(|place| (taken[place as usize].by, place))
        .filter(|(by, place)| by != place)
        .collect();
    copies.sort_unstable_by_key(|&(by, place)| (by, store.index(place)));
    let group = |run: &[(u32, u32)]| Group {
        keep: run[0].0,
        copies: run.iter().map(|&(_, place)| (place, taken[place as usize].likeness)).collect(),
    };
    let mut groups: Vec<Group> = copies.chunk_by(|a, b| a.0 == b.0).map(group).collect();
    let first = |group: &Group| store.index(group.keep).min(store.index(group.copies[0].0));
    groups.sort_unstable_by_key(first);
    groups
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
