//! Finding, decoding, labelling and writing side by side.
//!
//! One thread finds items and reads datasets ahead; the workers of a [`Pool`] decode and label; the calling thread
//! takes the results in order. What is under way is bounded, so memory does not grow with the input, and the slowest
//! of the three decides the pace.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use dtkc_infer::{Answers, Finished, ModelFile, Pool};
use dtkc_item::{ItemRef, ItemShape, Items};
use dtkc_source::{Body, Found};

use crate::duplicates::Print;
use crate::error::{LabelError, Result};
use crate::feed::{self, Fed, FeedOptions, Item, Past};
use crate::row::{Label, Row};
use crate::sort::{Content, Sorter};
use crate::source::{Inputs, Origin};

/// Everything that a run needs.
pub struct Plan<'a> {
    /// Where items come from.
    pub inputs: &'a Inputs,
    /// The model.
    pub model: &'a ModelFile,
    /// How the input is cut.
    pub feed: FeedOptions<'a>,
    /// Whether rows hold all probabilities.
    pub probabilities: bool,
    /// Whether rows hold the embedding.
    pub embedding: bool,
    /// Folders per cluster.
    pub sorter: Option<&'a Sorter>,
}

/// Takes the rows of a portion, and the items of the labelled ones where the pool keeps them.
pub type RowSink<'a> = dyn FnMut(Vec<Row>, &Items) -> Result<()> + 'a;

/// Runs a plan to its end, or until `stop` says so; what is under way then is still finished. `sink` gets the rows of
/// each portion, in order.
pub fn run(
    plan: &Plan<'_>,
    pool: Pool<Vec<Item>>,
    past: Option<Past>,
    stop: &(dyn Fn() -> bool + Sync),
    sink: &mut RowSink<'_>,
) -> Result<Fed> {
    // The threads are waited for at the end of this function, whatever happens in it.
    let (feeder, results, _threads) = pool.split();
    let failed = AtomicBool::new(false);
    let stop = || stop() || failed.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let feeding = scope.spawn(|| {
            // Moved in, so that the workers end when all is fed.
            let feeder = feeder;
            feed::feed(plan.inputs, plan.feed, past, &stop, &mut |task| match feeder.send(task) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        });
        let mut portions = 0;
        let none = Items::empty(plan.model.shape());
        let collect = || -> Result<()> {
            for Finished { tag, outcome } in results {
                let answers = outcome?;
                let rows = to_rows(plan, tag, &answers)?;
                sink(rows, answers.items.as_ref().unwrap_or(&none))?;
                portions += 1;
            }
            Ok(())
        };
        let collected = collect();
        failed.store(collected.is_err(), Ordering::Relaxed);
        let fed = feeding.join().map_err(|_| LabelError::Internal("the reading thread broke down"))?;
        collected?;
        let fed = fed?;
        match portions == fed.portions {
            true => Ok(fed),
            false => Err(LabelError::Internal("a worker broke down")),
        }
    })
}

fn to_rows(plan: &Plan<'_>, items: Vec<Item>, answers: &Answers) -> Result<Vec<Row>> {
    let mut rows = Vec::with_capacity(items.len());
    for (item, place) in items.into_iter().zip(&answers.rows) {
        let outcome = match place {
            Ok(at) => {
                let label = label(plan, answers, *at)?;
                if let Some(sorter) = plan.sorter {
                    sorter.place(&item, &label, content(plan, &item, answers, *at)?)?;
                }
                Ok(label)
            }
            Err(error) => Err(error.clone()),
        };
        rows.push(Row { index: item.index, path: item.origin.into_path(), truth: item.truth, outcome });
    }
    Ok(rows)
}

fn label(plan: &Plan<'_>, answers: &Answers, at: usize) -> Result<Label> {
    let assigned = &answers.assignments;
    let best = assigned.get(at).ok_or(LabelError::Internal("the model gave too few answers"))?;
    Ok(Label {
        cluster: best.cluster as u32,
        confidence: best.confidence,
        second: best.second as u32,
        second_confidence: best.second_confidence,
        margin: best.margin,
        outlier: best.outlier,
        probabilities: if plan.probabilities { assigned.probabilities.row(at).to_vec() } else { Vec::new() },
        embedding: if plan.embedding { assigned.embedding.row(at).to_vec() } else { Vec::new() },
        size: answers
            .sizes
            .get(at)
            .and_then(|&(width, height)| Some((width.try_into().ok()?, height.try_into().ok()?))),
        // There are none unless the pool takes them.
        print: answers
            .fingerprints
            .get(at)
            .map(|look| Box::new(Print::new(look.clone(), assigned.embedding.row(at).iter().copied()))),
    })
}

/// What goes into a cluster's folder: the file, the archive's bytes, or what the model saw.
fn content<'a>(plan: &Plan<'_>, item: &'a Item, answers: &'a Answers, at: usize) -> Result<Content<'a>> {
    match &item.origin {
        Origin::Encoded(Found { body: Body::File(path), .. }) => Ok(Content::File(path)),
        Origin::Encoded(Found { body: Body::Bytes(bytes), .. }) => Ok(Content::Bytes(bytes)),
        _ => {
            let seen = answers.items.as_ref().and_then(|items| items.get(at));
            match (seen, plan.model.shape()) {
                (Some(ItemRef::Pixels(pixels)), ItemShape::Image(shape)) => Ok(Content::Pixels(shape, pixels)),
                (Some(ItemRef::Steps(steps)), ItemShape::Sequence { dim }) => Ok(Content::Steps(dim, steps)),
                _ => Err(LabelError::Internal("an item to sort is missing")),
            }
        }
    }
}
