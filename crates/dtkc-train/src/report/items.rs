//! One pass over the items.

use dtkc_dataset::Dataset;
use dtkc_methods::Answers;
use dtkc_observe::Observer;
use dtkc_report::{Fit, Tiles, TilesWriter};

use super::painter::Painter;
use crate::error::TrainError;
use crate::evaluate::in_order;
use crate::saved::Saved;
use crate::spread::spread;

/// Items that the map shows at most, which have their embedding in memory.
const SHOWN: usize = 60_000;
/// Values of all embeddings together, at most: 128 MiB.
const VALUES: usize = 32 << 20;
/// Bytes of text that the pictures of the map may take.
const TILES: usize = 8_000_000;
/// And one of them: pictures of a small set need not be as large as the budget of a large one allows.
const TILE: usize = 1000;
/// Items by which the size of these pictures is chosen.
const TRIED: usize = 256;
/// No second best cluster.
pub(super) const NONE: u16 = u16::MAX;

/// What the network says about all items, as the exported model numbers clusters.
pub(super) struct Seen {
    /// Number of clusters.
    pub(super) k: usize,
    /// The cluster of every item.
    pub(super) clusters: Vec<u16>,
    /// The second best.
    pub(super) seconds: Vec<u16>,
    /// The largest membership.
    pub(super) confidence: Vec<f32>,
    /// The second largest.
    pub(super) runner_up: Vec<f32>,
    /// Items whose embedding is kept, ascending.
    pub(super) sample: Vec<u32>,
    /// Width of the embedding.
    pub(super) width: usize,
    /// `[sample, width]`.
    pub(super) embedding: Vec<f32>,
    /// Pictures of the sample.
    pub(super) tiles: Option<Tiles>,
}

impl Seen {
    /// Number of items.
    pub(super) fn len(&self) -> usize {
        self.clusters.len()
    }

    /// Mean over all items; `None` where there are none.
    pub(super) fn mean_confidence(&self) -> Option<f64> {
        dtkc_metrics::mean(&self.confidence.iter().map(|&confidence| f64::from(confidence)).collect::<Vec<_>>())
    }

    /// Items in each cluster.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let mut sizes = vec![0; self.k];
        self.clusters.iter().for_each(|&cluster| sizes[usize::from(cluster)] += 1);
        sizes
    }

    /// Places in the sample of the items of each cluster.
    pub(super) fn members(&self) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); self.k];
        for (place, &item) in (0u32..).zip(&self.sample) {
            members[usize::from(self.clusters[item as usize])].push(place);
        }
        members
    }
}

/// Runs the network over all items, and draws those of the map where there is a painter.
pub(super) fn look(
    saved: &Saved,
    dataset: &Dataset,
    mut painter: Option<&mut Painter>,
    observer: &dyn Observer,
) -> Result<Seen, TrainError> {
    let (n, k) = (dataset.len(), saved.order.len());
    let mut place = vec![NONE; k];
    saved.order.iter().enumerate().for_each(|(new, &old)| place[old] = u16::try_from(new).unwrap_or(NONE));
    let mut seen = Seen {
        k,
        clusters: vec![0; n],
        seconds: vec![NONE; n],
        confidence: vec![0.0; n],
        runner_up: vec![0.0; n],
        sample: Vec::new(),
        width: 0,
        embedding: Vec::new(),
        tiles: None,
    };
    let mut writer: Option<TilesWriter> = None;
    let mut next = 0;
    observer.begin("look at items", "items", Some(n as u64));
    for batch in in_order(dataset) {
        let batch = batch?;
        if observer.stop() {
            observer.end();
            return Err(TrainError::Stopped);
        }
        let answers = saved.learner.answers(&batch.items);
        if seen.width == 0 {
            seen.width = answers.width.max(1);
            let most = SHOWN.min(VALUES / seen.width).max(1);
            seen.sample = spread(n, most).map(|item| item as u32).collect();
            writer = match painter.as_deref_mut() {
                Some(painter) => writer_for(dataset, painter, &seen.sample)?,
                None => None,
            };
        }
        for (row, &index) in batch.indices.iter().enumerate() {
            seen.take(index, row, &answers, &place);
            if seen.sample.get(next).is_none_or(|&sampled| sampled as usize != index) {
                continue;
            }
            next += 1;
            let embedding = answers.embedding.chunks_exact(seen.width).nth(row);
            seen.embedding.extend(embedding.unwrap_or(&[0.0]).iter().map(|&x| finite(x)));
            if let (Some(writer), Some(painter), Some(item)) =
                (writer.as_mut(), painter.as_deref_mut(), batch.items.get(row))
            {
                let side = painter.side;
                writer.push(&painter.paint(index, item, side)?)?;
            }
        }
        observer.advance(batch.len() as u64);
    }
    observer.end();
    seen.tiles = writer.map(TilesWriter::finish).transpose()?.flatten();
    Ok(seen)
}

impl Seen {
    fn take(&mut self, index: usize, row: usize, answers: &Answers, place: &[u16]) {
        let membership = &answers.membership[row * answers.clusters..][..answers.clusters];
        let best = crate::monitor::argmax(membership);
        let others = membership.iter().enumerate().filter(|(cluster, _)| *cluster != best);
        let second = others.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        self.clusters[index] = place[best];
        self.confidence[index] = finite(membership[best]);
        if let Some((second, &part)) = second {
            (self.seconds[index], self.runner_up[index]) = (place[second], finite(part));
        }
    }
}

fn finite(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

/// Sheets for so many pictures, of the size that fits; `None` where none does.
fn writer_for(dataset: &Dataset, painter: &mut Painter, sample: &[u32]) -> Result<Option<TilesWriter>, TrainError> {
    let tried: Vec<usize> = spread(sample.len(), TRIED).map(|place| sample[place] as usize).collect();
    let items = dataset.items(&tried)?;
    let source = painter.source();
    let fit = Fit::find(sample.len(), TILES.min(sample.len() * TILE), source, |side| {
        tried.iter().zip(items.iter()).filter_map(|(&index, item)| painter.paint(index, item, side).ok()).collect()
    })?;
    let (Some(fit), Some(first), Some(&index)) = (fit, items.get(0), tried.first()) else { return Ok(None) };
    painter.side = fit.side;
    let like = painter.paint(index, first, fit.side)?;
    Ok(Some(TilesWriter::new(fit, &like)))
}
