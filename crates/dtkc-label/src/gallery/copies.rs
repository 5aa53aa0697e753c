//! The largest groups of near-duplicates, for the page.

use std::cmp::Reverse;

use crate::duplicates::{Found, Group};

/// Groups on the page.
const GROUPS: usize = 24;

/// Images of a group on the page.
const IMAGES: usize = 8;

/// What the page shows of copies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CopyPicks {
    /// The largest groups.
    pub groups: Vec<CopyGroup>,
    /// Groups in all.
    pub total: usize,
    /// Images in all, but the one of each group that is kept.
    pub surplus: usize,
}

/// One group on the page.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyGroup {
    /// The one to keep, then copies.
    pub images: Vec<CopyPick>,
    /// Images that are not shown.
    pub more: usize,
}

/// One image of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyPick {
    /// Its position in the input.
    pub index: u64,
    /// Where it came from.
    pub path: String,
    /// Its cluster's name.
    pub cluster: String,
    /// Width and height.
    pub size: (u32, u32),
    /// Bits in which it differs from the one to keep, which has none.
    pub distance: Option<u32>,
}

impl CopyPicks {
    /// Picks; `None` where copies were not looked for.
    pub fn of(found: Option<&Found>) -> Option<Self> {
        let found = found?;
        let mut groups: Vec<&Group> = found.groups().iter().collect();
        groups.sort_by_key(|group| Reverse(group.copies.len()));
        let surplus = groups.iter().map(|group| group.copies.len()).sum();
        let total = groups.len();
        let groups = groups.into_iter().take(GROUPS).map(|group| pick(found, group)).collect();
        Some(Self { groups, total, surplus })
    }

    /// The positions of all images that are shown.
    pub fn indices(&self) -> impl Iterator<Item = u64> {
        self.groups.iter().flat_map(|group| &group.images).map(|image| image.index)
    }
}

fn pick(found: &Found, group: &Group) -> CopyGroup {
    let image = |place: u32, distance: Option<u32>| {
        let (index, said) = found.image(place);
        let look = found.store().look(place);
        let size = (look.width, look.height);
        CopyPick { index, path: said.path.clone(), cluster: said.name.clone(), size, distance }
    };
    let copies = group.copies.iter().map(|(place, likeness)| image(*place, Some(likeness.distance)));
    let images: Vec<CopyPick> = std::iter::once(image(group.keep, None)).chain(copies).take(IMAGES).collect();
    let more = group.copies.len() + 1 - images.len();
    CopyGroup { images, more }
}
