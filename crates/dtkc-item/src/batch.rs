//! Some items, and where they are in their set.

use crate::{FeatureShape, ImageShape, ItemShape};

/// Some items, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub enum Items {
    /// Images of one shape.
    Images {
        /// Their shape.
        shape: ImageShape,
        /// n * height * width * channels bytes.
        pixels: Vec<u8>,
    },
    /// Sequences of one dimension.
    Sequences {
        /// Values per time step.
        dim: usize,
        /// All time steps of all sequences, `dim` values each.
        values: Vec<f32>,
        /// Where each sequence begins, in time steps, and the end: one more than there are sequences.
        offsets: Vec<usize>,
    },
    /// Vectors of images and of their views.
    Features {
        /// How many, of how many values.
        shape: FeatureShape,
        /// n * (rows * dim + taps) values: the vector of an item, those of its views, what lies inside the network, then the
        /// next item.
        values: Vec<f32>,
    },
}

impl Items {
    /// No items yet, of that shape.
    pub fn empty(shape: ItemShape) -> Self {
        match shape {
            ItemShape::Image(shape) => Self::Images { shape, pixels: Vec::new() },
            ItemShape::Sequence { dim } => Self::Sequences { dim, values: Vec::new(), offsets: vec![0] },
            ItemShape::Features(shape) => Self::Features { shape, values: Vec::new() },
        }
    }

    /// What the items look like.
    pub fn shape(&self) -> ItemShape {
        match self {
            Self::Images { shape, .. } => ItemShape::Image(*shape),
            Self::Sequences { dim, .. } => ItemShape::Sequence { dim: *dim },
            Self::Features { shape, .. } => ItemShape::Features(*shape),
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Images { shape, pixels } => pixels.len().checked_div(shape.len()).unwrap_or(0),
            Self::Sequences { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Features { shape, values } => values.len().checked_div(shape.len()).unwrap_or(0),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pixels of images; `None` for others.
    pub fn pixels(&self) -> Option<&[u8]> {
        match self {
            Self::Images { pixels, .. } => Some(pixels),
            Self::Sequences { .. } | Self::Features { .. } => None,
        }
    }

    /// The items, one by one.
    pub fn iter(&self) -> impl Iterator<Item = ItemRef<'_>> {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// One of the items.
    pub fn get(&self, place: usize) -> Option<ItemRef<'_>> {
        match self {
            Self::Images { shape, pixels } => pixels.chunks_exact(shape.len().max(1)).nth(place).map(ItemRef::Pixels),
            Self::Sequences { dim, values, offsets } => {
                let (start, end) = (offsets.get(place)?, offsets.get(place + 1)?);
                values.get(start * dim..end * dim).map(ItemRef::Steps)
            }
            Self::Features { shape, values } => {
                values.chunks_exact(shape.len().max(1)).nth(place).map(ItemRef::Features)
            }
        }
    }

    /// Takes all items out and keeps the memory.
    pub fn clear(&mut self) {
        match self {
            Self::Images { pixels, .. } => pixels.clear(),
            Self::Sequences { values, offsets, .. } => {
                values.clear();
                offsets.truncate(1);
            }
            Self::Features { values, .. } => values.clear(),
        }
    }

    /// Puts one item of `other` behind these. An item of another shape does not belong here and is left out.
    ///
    /// # Panics
    /// Panics when `other` has no item of that number.
    pub fn push_from(&mut self, other: &Self, index: usize) {
        match (self, other) {
            (Self::Images { shape, pixels }, Self::Images { shape: like, pixels: from }) if shape == like => {
                pixels.extend_from_slice(&from[index * shape.len()..(index + 1) * shape.len()]);
            }
            (
                Self::Sequences { dim, values, offsets },
                Self::Sequences { dim: like, values: from, offsets: places },
            ) if dim == like => {
                let steps = places[index]..places[index + 1];
                values.extend_from_slice(&from[steps.start * *dim..steps.end * *dim]);
                offsets.push(offsets.last().copied().unwrap_or(0) + steps.len());
            }
            (Self::Features { shape, values }, Self::Features { shape: like, values: from }) if shape == like => {
                values.extend_from_slice(&from[index * shape.len()..(index + 1) * shape.len()]);
            }
            _ => debug_assert!(false, "items of two shapes"),
        }
    }

    /// The steps of sequences, and how long each is; `None` for others.
    pub fn steps(&self) -> Option<(&[f32], Vec<usize>)> {
        match self {
            Self::Images { .. } | Self::Features { .. } => None,
            Self::Sequences { values, offsets, .. } => {
                Some((values, offsets.windows(2).map(|pair| pair[1] - pair[0]).collect()))
            }
        }
    }

    /// Puts the items of `other` behind these. Items of another shape do not belong here and are left out.
    pub fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Images { shape, pixels }, Self::Images { shape: like, pixels: more }) if shape == like => {
                pixels.extend_from_slice(more);
            }
            (
                Self::Sequences { dim, values, offsets },
                Self::Sequences { dim: like, values: more, offsets: places },
            ) if dim == like => {
                let end = offsets.last().copied().unwrap_or(0);
                values.extend_from_slice(more);
                offsets.extend(places.iter().skip(1).map(|place| end + place));
            }
            (Self::Features { shape, values }, Self::Features { shape: like, values: more }) if shape == like => {
                values.extend_from_slice(more);
            }
            _ => debug_assert!(false, "items of two shapes"),
        }
    }
}

/// One item among others of its shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ItemRef<'a> {
    /// The pixels of an image.
    Pixels(&'a [u8]),
    /// The time steps of a sequence.
    Steps(&'a [f32]),
    /// The vectors of an image and of its views.
    Features(&'a [f32]),
}

impl ItemRef<'_> {
    /// The item alone. Its shape must be that of the items that it is one of.
    pub fn to_items(self, shape: ItemShape) -> Items {
        let mut items = Items::empty(shape);
        match (&mut items, self) {
            (Items::Images { pixels, .. }, Self::Pixels(own)) => pixels.extend_from_slice(own),
            (Items::Sequences { dim, values, offsets }, Self::Steps(own)) => {
                values.extend_from_slice(own);
                offsets.push(own.len() / (*dim).max(1));
            }
            (Items::Features { values, .. }, Self::Features(own)) => values.extend_from_slice(own),
            _ => debug_assert!(false, "an item of another kind"),
        }
        items
    }
}

/// Some items of a set and where they are in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The items' places in the set.
    pub indices: Vec<usize>,
    /// The items, in the order of `indices`.
    pub items: Items,
}

impl Batch {
    /// No items yet, of that shape.
    pub fn empty(shape: ItemShape) -> Self {
        Self { indices: Vec::new(), items: Items::empty(shape) }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Takes all items out and keeps the memory.
    pub fn clear(&mut self) {
        self.indices.clear();
        self.items.clear();
    }

    /// Puts the items of `other` behind these.
    pub fn append(&mut self, other: &Self) {
        self.indices.extend_from_slice(&other.indices);
        self.items.append(&other.items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_counted_by_their_shape() {
        let shape = ImageShape { height: 1, width: 2, channels: 1 };
        let mut batch = Batch { indices: vec![7], items: Items::Images { shape, pixels: vec![1, 2] } };
        let other = Batch { indices: vec![3, 4], items: Items::Images { shape, pixels: vec![3, 4, 5, 6] } };
        batch.append(&other);
        assert_eq!((batch.len(), batch.items.len()), (3, 3));
        assert_eq!(batch.items.pixels(), Some(&[1, 2, 3, 4, 5, 6][..]));
        batch.clear();
        assert!(batch.is_empty() && batch.items.is_empty());
        assert_eq!(batch.items.shape(), ItemShape::Image(shape));
    }

    #[test]
    fn features_are_counted_by_their_rows() {
        let shape = FeatureShape { dim: 2, views: 1, taps: crate::Taps::NONE };
        let mut items = Items::empty(ItemShape::Features(shape));
        let more = Items::Features { shape, values: (0..8).map(|v| v as f32).collect() };
        items.push_from(&more, 1);
        items.append(&more);
        assert_eq!((items.len(), items.shape()), (3, ItemShape::Features(shape)));
        assert_eq!((items.get(0), items.get(3)), (Some(ItemRef::Features(&[4., 5., 6., 7.])), None));
        let one = items.get(1).map(|item| item.to_items(items.shape()));
        assert_eq!(one, Some(Items::Features { shape, values: vec![0., 1., 2., 3.] }));
        assert!(items.pixels().is_none() && items.steps().is_none());
        items.clear();
        assert!(items.is_empty());
    }

    #[test]
    fn sequences_keep_their_ends() {
        let mut items = Items::empty(ItemShape::Sequence { dim: 2 });
        assert!(items.is_empty());
        let more = Items::Sequences { dim: 2, values: vec![0.0; 6], offsets: vec![0, 1, 3] };
        items.append(&more);
        items.append(&more);
        assert_eq!(items.len(), 4);
        let Items::Sequences { values, offsets, .. } = &items else { panic!("sequences") };
        assert_eq!((values.len(), offsets.as_slice()), (12, &[0, 1, 3, 4, 6][..]));
        assert_eq!(items.steps().map(|(values, lengths)| (values.len(), lengths)), Some((12, vec![1, 2, 1, 2])));
        let mut one = Items::empty(items.shape());
        one.push_from(
            &Items::Sequences { dim: 2, values: (0..6).map(|v| v as f32).collect(), offsets: vec![0, 1, 3] },
            1,
        );
        one.push_from(&more, 0);
        assert_eq!(one, Items::Sequences { dim: 2, values: vec![2., 3., 4., 5., 0., 0.], offsets: vec![0, 2, 3] });
        let ones: Vec<Items> = items.iter().map(|item| item.to_items(items.shape())).collect();
        assert_eq!(
            ones.iter().map(|one| one.get(0)).collect::<Vec<_>>(),
            (0..4).map(|i| items.get(i)).collect::<Vec<_>>()
        );
        assert_eq!((items.get(1), items.get(4)), (Some(ItemRef::Steps(&[0.0; 4])), None));
        items.clear();
        assert!(items.is_empty() && items.pixels().is_none());
    }
}
