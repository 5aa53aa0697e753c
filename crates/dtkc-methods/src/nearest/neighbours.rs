//! The nearest neighbours of every item, exact: every pair is looked at, by products of blocks.

use std::ops::Range;

use dtkc_ops::{Panel, block_rows, for_each};

use crate::LearnError;
use crate::kmeans::Points;

/// Items whose products with all others are taken together.
const BLOCK: usize = 1024;
/// Neighbours beyond those asked for that are measured exactly: products in single precision may swap near ones.
const SPARE: usize = 8;

/// Where rows of numbers come from; they need not be held as such.
pub trait Rows: Sync {
    /// Number of rows.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of a row.
    fn width(&self) -> usize;

    /// Writes some rows.
    fn read(&self, range: Range<usize>, to: &mut [f32]);
}

impl Rows for Points<'_> {
    fn len(&self) -> usize {
        Points::len(self)
    }

    fn width(&self) -> usize {
        self.width
    }

    fn read(&self, range: Range<usize>, to: &mut [f32]) {
        to.copy_from_slice(&self.values[range.start * self.width..range.end * self.width]);
    }
}

/// The nearest others of every item, nearest first; of equally near ones the lower number.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    /// How many each item has.
    pub count: usize,
    /// `[n, count]`.
    pub items: Vec<u32>,
    /// Squared distances to them, `[n, count]`.
    pub squares: Vec<f32>,
}

impl Neighbours {
    /// The `count` nearest others of every row, fewer where there are no more. `stop` is asked again and again.
    pub fn find(rows: &dyn Rows, count: usize, stop: &dyn Fn() -> bool) -> Result<Self, LearnError> {
        Self::find_from(rows, rows, count, stop)
    }

    /// The rows that are nearest to where each of them is seen from: a place for every row, which need not be its own. No row
    /// is its own neighbour.
    ///
    /// # Panics
    /// Panics where `places` and `rows` are not of the same number and width.
    pub fn find_from(
        places: &dyn Rows,
        rows: &dyn Rows,
        count: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, LearnError> {
        let (n, width) = (rows.len(), rows.width());
        assert_eq!((places.len(), places.width()), (n, width), "one place for every row");
        let count = count.min(n.saturating_sub(1));
        let kept = (count + SPARE).min(n.saturating_sub(1));
        if count == 0 || width == 0 {
            return Ok(Self { count: 0, items: Vec::new(), squares: Vec::new() });
        }
        let mut best = Best { kept, scores: vec![f32::NEG_INFINITY; n * kept], items: vec![u32::MAX; n * kept] };
        for start in (0..n).step_by(BLOCK) {
            if stop() {
                return Err(LearnError::Stopped);
            }
            best.look_at(places, rows, start..(start + BLOCK).min(n));
        }
        Ok(best.measured(places, rows, count))
    }

    /// The neighbours of one item.
    pub fn of(&self, item: usize) -> &[u32] {
        &self.items[item * self.count..][..self.count]
    }

    /// Every item with each of its neighbours.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let lists = self.items.chunks_exact(self.count.max(1)).enumerate();
        lists.flat_map(|(item, near)| near.iter().map(move |&other| (item, other as usize)))
    }

    /// The median over all items of the distance to their `rank`-th neighbour, the first being 1.
    pub fn median_distance(&self, rank: usize) -> f64 {
        let column = rank.clamp(1, self.count.max(1)) - 1;
        let mut squares: Vec<f32> = self.squares.iter().skip(column).step_by(self.count.max(1)).copied().collect();
        squares.sort_by(f32::total_cmp);
        squares.get(squares.len() / 2).map_or(0.0, |&square| f64::from(square).sqrt())
    }
}

/// The best candidates of every item so far, best first.
struct Best {
    kept: usize,
    /// Product less half the squared length of the candidate: the larger, the nearer.
    scores: Vec<f32>,
    items: Vec<u32>,
}

impl Best {
    fn look_at(&mut self, places: &dyn Rows, rows: &dyn Rows, candidates: Range<usize>) {
        let (width, kept, first) = (rows.width(), self.kept, candidates.start);
        let mut values = vec![0.0; candidates.len() * width];
        rows.read(candidates, &mut values);
        let half = |row: &[f32]| (row.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / 2.0) as f32;
        let halves: Vec<f32> = values.chunks_exact(width).map(half).collect();
        let panel = Panel::new(&values, width);
        let part = block_rows(width);
        let work = self.scores.chunks_mut(part * kept).zip(self.items.chunks_mut(part * kept)).enumerate();
        for_each(work, |(block, (scores, items))| {
            let from = block * part;
            let count = items.len() / kept;
            let mut queries = vec![0.0; count * width];
            places.read(from..from + count, &mut queries);
            let mut products = vec![0.0; count * panel.columns()];
            panel.products(&queries, &mut products);
            let lists = scores.chunks_exact_mut(kept).zip(items.chunks_exact_mut(kept));
            for (query, (products, list)) in products.chunks_exact(panel.columns()).zip(lists).enumerate() {
                take(list, products, &halves, first, from + query);
            }
        });
    }

    /// The nearest `count` of them by their true distances.
    fn measured(self, places: &dyn Rows, rows: &dyn Rows, count: usize) -> Neighbours {
        let (n, width, kept) = (rows.len(), rows.width(), self.kept);
        let mut found = Neighbours { count, items: vec![0; n * count], squares: vec![0.0; n * count] };
        let part = block_rows(width);
        let out = found.items.chunks_mut(part * count).zip(found.squares.chunks_mut(part * count));
        for_each(self.items.chunks(part * kept).zip(out).enumerate(), |(block, (candidates, (items, squares)))| {
            let (mut own, mut other) = (vec![0.0; width], vec![0.0; width]);
            let out = items.chunks_exact_mut(count).zip(squares.chunks_exact_mut(count));
            for (row, (candidates, (items, squares))) in candidates.chunks_exact(kept).zip(out).enumerate() {
                let row = block * part + row;
                places.read(row..row + 1, &mut own);
                let mut measured: Vec<(f64, u32)> = candidates
                    .iter()
                    .map(|&item| {
                        rows.read(item as usize..item as usize + 1, &mut other);
                        (own.iter().zip(&other).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum(), item)
                    })
                    .collect();
                measured.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                for ((item, square), found) in items.iter_mut().zip(squares.iter_mut()).zip(measured) {
                    (*item, *square) = (found.1, found.0 as f32);
                }
            }
        });
        found
    }
}

/// Puts those of the candidates `first..` into the list of `query` that are nearer than what it holds.
fn take((scores, items): (&mut [f32], &mut [u32]), products: &[f32], halves: &[f32], first: usize, query: usize) {
    let last = scores.len() - 1;
    let mut worst = scores[last];
    for (at, (product, half)) in products.iter().zip(halves).enumerate() {
        let score = product - half;
        if score > worst && first + at != query {
            // Of equal ones the earlier stays in front.
            let place = scores.partition_point(|&other| other >= score);
            scores.copy_within(place..last, place + 1);
            items.copy_within(place..last, place + 1);
            (scores[place], items[place]) = (score, (first + at) as u32);
            worst = scores[last];
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn neighbours_are_those_of_the_definition() {
        for (n, width, count) in [(2, 1, 5), (40, 3, 4), (2100, 7, 6)] {
            let mut random = Random::new(n as u64, b"test....", 0);
            let values: Vec<f32> = (0..n * width).map(|_| random.unit() as f32 + 3.0).collect();
            let points = Points { values: &values, width };
            let found = Neighbours::find(&points, count, &|| false).unwrap();
            assert_eq!(found.count, count.min(n - 1));
            for item in (0..n).step_by(1 + n / 50) {
                let square = |j: usize| {
                    let pairs = points.row(item).iter().zip(points.row(j));
                    pairs.map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>()
                };
                let mut all: Vec<usize> = (0..n).filter(|&j| j != item).collect();
                all.sort_by(|&a, &b| square(a).total_cmp(&square(b)).then(a.cmp(&b)));
                let expected: Vec<u32> = all[..found.count].iter().map(|&j| j as u32).collect();
                assert_eq!(found.of(item), expected, "item {item} of {n}");
                assert_eq!(found.squares[item * found.count], square(all[0]) as f32);
            }
        }
    }

    #[test]
    fn neighbours_of_other_places_are_nearest_to_those_and_never_the_row_itself() {
        let rows = [0.0, 1.0, 2.0, 3.0, 4.0];
        let places = [3.1, 0.9, 2.2, 0.1, 4.0];
        let [rows, places] = [&rows, &places].map(|values| Points { values, width: 1 });
        let found = Neighbours::find_from(&places, &rows, 2, &|| false).unwrap();
        assert_eq!(found.items, [3, 4, 0, 2, 3, 1, 0, 1, 3, 2]);
        assert!((found.squares[0] - 0.01).abs() < 1e-6);
    }

    #[test]
    fn the_median_distance_is_that_of_a_rank() {
        let values = [0.0, 1.0, 3.0, 6.0, 10.0];
        let found = Neighbours::find(&Points { values: &values, width: 1 }, 2, &|| false).unwrap();
        // Nearest: 1 1 2 3 4; second: 3 2 3 4 7.
        assert_eq!((found.median_distance(1), found.median_distance(2), found.median_distance(9)), (2.0, 3.0, 3.0));
    }

    #[test]
    fn one_item_has_no_neighbours_and_a_stop_is_heard() {
        let one = Points { values: &[1.0], width: 1 };
        assert_eq!(Neighbours::find(&one, 3, &|| false).unwrap().count, 0);
        let two = Points { values: &[1.0, 2.0], width: 1 };
        assert!(matches!(Neighbours::find(&two, 1, &|| true), Err(LearnError::Stopped)));
    }
}
