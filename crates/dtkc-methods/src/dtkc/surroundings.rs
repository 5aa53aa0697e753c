//! What a learner of single images knows about all of them: who is near whom, and first clusters from that.

use std::fmt;
use std::sync::{Arc, OnceLock};

use dtkc_core::augment::BatchKey;
use dtkc_core::{NamedArray, Values};
use dtkc_item::{Batch, ItemShape, Items};

use super::Settings;
use super::partners::{Partners, Table};
use super::start::graph_clusters;
use crate::learner::Passes;
use crate::nearest::Neighbours;
use crate::{LearnError, arrays};

/// What all restarts of a run have in common, because no seed is in it: the first that needs it finds it.
#[derive(Clone, Default)]
pub struct Common(Arc<OnceLock<Option<Arc<Partners>>>>);

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Common(found)" } else { "Common" })
    }
}

/// Who is near whom, once it was looked for.
#[derive(Default)]
pub(super) struct Surroundings {
    common: Common,
    is_known: bool,
    partners: Option<Arc<Partners>>,
    /// The table of neighbours of a checkpoint.
    table: Table,
    /// First clusters of all images, where the graph of neighbours gives them.
    given: Vec<u32>,
}

/// Scales the steps of sequences as the network wants them.
pub(super) type Scaled<'a> = &'a dyn Fn(&[f32]) -> Vec<f32>;

/// What they are looked for with.
pub(super) struct Search<'a> {
    pub(super) settings: &'a Settings,
    pub(super) shape: ItemShape,
    pub(super) scaled: Scaled<'a>,
    pub(super) clusters: usize,
    /// Whether first clusters are to come from the graph.
    pub(super) for_start: bool,
    pub(super) seed: u64,
}

impl Surroundings {
    /// Nothing is known yet but what other restarts have found.
    pub(super) fn new(common: Common) -> Self {
        Self { common, ..Self::default() }
    }

    /// What restarts have in common.
    pub(super) fn common(&self) -> Common {
        self.common.clone()
    }

    /// Whether the images have still to be looked at.
    pub(super) fn is_missing(&self, settings: &Settings) -> bool {
        !self.is_known && settings.paired() && settings.neighbours.is_on()
    }

    /// Looks at all images, once.
    pub(super) fn look(&mut self, search: &Search<'_>, data: &mut dyn Passes) -> Result<(), LearnError> {
        let Search { settings, clusters, for_start, seed, .. } = *search;
        if !self.is_missing(settings) {
            return Ok(());
        }
        let table = std::mem::take(&mut self.table);
        self.partners = match self.common.0.get() {
            Some(found) => found.clone(),
            None => {
                let found = Partners::find(search, data, table)?.map(Arc::new);
                self.common.0.get_or_init(|| found).clone()
            }
        };
        if let (Some(partners), true, true) = (&self.partners, for_start, self.given.is_empty()) {
            self.given = graph_clusters(partners, clusters, seed, data)?.unwrap_or_default();
        }
        self.is_known = true;
        Ok(())
    }

    /// What second views are made of, where that may be neighbours.
    pub(super) fn partners(&self, batch: &Batch, key: BatchKey) -> Option<Items> {
        self.partners.as_ref().map(|partners| partners.items(batch, key))
    }

    /// Who is near whom, where that is known.
    pub(super) fn nearest(&self) -> Option<&Neighbours> {
        self.partners.as_deref().map(Partners::nearest)
    }

    /// Whether the images were seen and gave no first clusters.
    pub(super) fn have_no_clusters(&self) -> bool {
        self.is_known && self.given.is_empty()
    }

    /// The first clusters of a batch, where there are any.
    pub(super) fn given(&self, batch: &Batch) -> Option<Vec<u32>> {
        let given = |&item: &usize| self.given.get(item).copied();
        if self.given.is_empty() { None } else { batch.indices.iter().map(given).collect() }
    }

    /// As parts of a checkpoint: looking for neighbours again would take longer than anything else on resuming.
    pub(super) fn save(&self) -> [NamedArray; 3] {
        let (items, squares) = match &self.partners {
            Some(partners) => (&partners.nearest().items, &partners.nearest().squares),
            None => (&self.table.items, &self.table.squares),
        };
        [
            NamedArray::list("neighbours", Values::U32(items.clone())),
            NamedArray::list("neighbours.squares", Values::F32(squares.clone())),
            NamedArray::list("given", Values::U32(self.given.clone())),
        ]
    }

    /// Takes [`save`](Self::save) back; images are read again when they are needed.
    pub(super) fn restore(common: Common, saved: &[NamedArray]) -> Result<Self, LearnError> {
        let items = arrays::u32s(saved, "neighbours", None)?;
        let squares = arrays::f32s(saved, "neighbours.squares", None)?;
        let given = arrays::u32s(saved, "given", None)?;
        Ok(Self { table: Table { items, squares }, given, ..Self::new(common) })
    }
}
