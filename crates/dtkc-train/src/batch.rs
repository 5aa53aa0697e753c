//! How many rows a step has where nobody said it: many clusters need more than the preset's.

use dtkc_human as human;

use crate::config::RunConfig;
use crate::forecast;
use crate::resources;

/// Enlarges the batch of a new run where too few images of a cluster would be in a step. Says so where it does.
pub fn suit(config: &mut RunConfig) -> Option<String> {
    suit_within(config, resources::available_memory().unwrap_or(u64::MAX))
}

/// Within the items there are, and half of the `free` memory: other programs want some, too.
fn suit_within(config: &mut RunConfig, free: u64) -> Option<String> {
    let (clusters, before) = (config.largest_k(), config.plan.batch);
    let views = before.div_ceil(config.items_per_step().max(1));
    let mut wanted = config.settings.least_rows(clusters).min(config.data.items.saturating_mul(views));
    let mut larger = config.clone();
    while wanted > before {
        larger.plan.batch = wanted;
        if forecast::memory(&larger, clusters).is_none_or(|bytes| bytes <= free / 2) {
            break;
        }
        // Rows stay a multiple of the views.
        wanted = wanted * 3 / 4 / views * views;
    }
    if wanted <= before {
        return None;
    }
    let small = config.items_per_step();
    config.plan.batch = wanted;
    Some(format!(
        "{} items a step ({} rows) instead of {small}, because {clusters} clusters need more than that; --batch {before} \
         keeps steps small",
        human::count(config.items_per_step() as u64),
        human::count(wanted as u64),
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use dtkc_item::{ImageShape, ItemShape};

    /// No clusters from a graph, however many there are.
    const FINE: &str = "dtkc.start.from = 'fine'";

    fn config(text: &str, clusters: usize, items: usize) -> RunConfig {
        let text = format!("run.clusters = {clusters}\n{text}");
        let mut config = RunConfig::resolve(&[text.parse().unwrap()]).unwrap();
        config.data.input = ItemShape::Image(ImageShape { height: 32, width: 32, channels: 3 });
        config.data.items = items;
        config
    }

    fn rows(text: &str, clusters: usize, items: usize, free: u64) -> usize {
        let mut config = config(text, clusters, items);
        let before = config.plan.batch;
        let said = suit_within(&mut config, free);
        assert_eq!(said.is_some(), config.plan.batch > before);
        config.plan.batch
    }

    #[test]
    fn many_clusters_get_six_images_each() {
        let free = 64 << 30;
        assert_eq!(
            [10, 20, 25, 30].map(|k| rows("", k, 7200, free)),
            [240, 240, 300, 240],
            "those of a graph need none"
        );
        assert_eq!([30, 100].map(|k| rows(FINE, k, 7200, free)), [360, 1200]);
        assert_eq!(rows(FINE, 100, 400, free), 800, "no more than there are");
        assert_eq!(rows("preset = 'authors'", 100, 7200, free), 120, "as it was published");
        assert_eq!(rows("method = 'kmeans'", 100, 7200, free), config("method = 'kmeans'", 100, 7200).plan.batch);
    }

    #[test]
    fn memory_bounds_it() {
        let bounded = rows(FINE, 100, 7200, 2 << 30);
        assert!(bounded > 240 && bounded < 1200 && bounded.is_multiple_of(2), "{bounded}");
        assert_eq!(rows(FINE, 100, 7200, 1 << 20), 240);
    }

    #[test]
    fn the_sentence_says_why_and_how_to_undo_it() {
        let text = suit_within(&mut config(FINE, 100, 7200), 64 << 30).unwrap();
        assert_eq!(
            text,
            "600 items a step (1,200 rows) instead of 120, because 100 clusters need more than that; --batch 240 keeps steps small"
        );
    }
}
