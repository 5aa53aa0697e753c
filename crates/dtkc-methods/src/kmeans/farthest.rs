//! The items that are farthest from their centres, for clusters that have none.

use dtkc_core::{NamedArray, StateError, Values};

use crate::arrays;

/// An item and how far it is from its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Far {
    pub(super) square: f32,
    pub(super) item: u32,
    pub(super) label: u32,
}

/// The farthest items so far, farthest first; of equal ones the lower number, whatever order they came in.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Farthest {
    most: usize,
    items: Vec<Far>,
}

impl Farthest {
    /// Keeps at most so many.
    pub(super) fn new(most: usize) -> Self {
        Self { most, items: Vec::new() }
    }

    pub(super) fn items(&self) -> &[Far] {
        &self.items
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
    }

    pub(super) fn see(&mut self, far: Far) {
        let is_before = |a: &Far, b: &Far| a.square > b.square || (a.square == b.square && a.item < b.item);
        let full = self.items.len() >= self.most;
        if far.square <= 0.0 || (full && self.items.last().is_none_or(|last| !is_before(&far, last))) {
            return;
        }
        let place = self.items.partition_point(|other| is_before(other, &far));
        self.items.insert(place, far);
        self.items.truncate(self.most);
    }

    pub(super) fn save(&self) -> [NamedArray; 2] {
        let squares = self.items.iter().map(|far| far.square).collect();
        let places = self.items.iter().flat_map(|far| [far.item, far.label]).collect();
        [
            NamedArray::list("farthest.squares", Values::F32(squares)),
            NamedArray::list("farthest.places", Values::U32(places)),
        ]
    }

    pub(super) fn restore(most: usize, state: &[NamedArray]) -> Result<Self, StateError> {
        let squares = arrays::f32s(state, "farthest.squares", None)?;
        let places = arrays::u32s(state, "farthest.places", Some(2 * squares.len()))?;
        let places = places.as_chunks::<2>().0.iter();
        let items = squares.iter().zip(places).map(|(&square, &[item, label])| Far { square, item, label }).collect();
        Ok(Self { most, items })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_stay_in_order_however_they_come() {
        let squares = [3.0, 9.0, 0.0, 9.0, 1.0, 7.0];
        let far = |item: usize| Far { square: squares[item], item: item as u32, label: item as u32 % 2 };
        for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 4, 2]] {
            let mut farthest = Farthest::new(3);
            order.into_iter().for_each(|item| farthest.see(far(item)));
            assert_eq!(farthest.items(), [far(1), far(3), far(5)]);
            assert_eq!(Farthest::restore(3, &farthest.save()).unwrap(), farthest);
        }
        let mut none = Farthest::new(0);
        none.see(far(1));
        assert!(none.items().is_empty());
    }
}
