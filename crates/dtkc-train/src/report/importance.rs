//! Which pixels speak for each cluster: maps of images that its members are mostly like.

use dtkc_dataset::Dataset;
use dtkc_item::ImageShape;
use dtkc_observe::Observer;
use dtkc_report::{Frame, Report};

use super::painter::Painter;
use crate::error::TrainError;
use crate::explain::{self, Output, picture};
use crate::saved::Saved;
use crate::spread::spread;

/// Images that are explained, all in all, and of one cluster.
const IMAGES: usize = 60;
const EACH: usize = 4;
/// Draws for each: maps are looked at, not measured.
const DRAWS: usize = 48;
/// The longest side of a map.
const SIDE: usize = 112;

/// Gives clusters of images their maps, the largest clusters first; of sequences there are none.
pub(super) fn add(
    report: &mut Report,
    saved: &Saved,
    dataset: &Dataset,
    painter: &mut Painter,
    observer: &dyn Observer,
) -> Result<(), TrainError> {
    let Some(shape) = dataset.image_shape() else { return Ok(()) };
    // Small clusters have no typical images, only certain ones. Clusters are ordered by size.
    let each = (IMAGES / report.clusters.len().max(1)).clamp(1, EACH);
    let chosen: Vec<(usize, usize)> = report
        .clusters
        .iter()
        .flat_map(|cluster| {
            let shots = if cluster.typical.is_empty() { &cluster.certain } else { &cluster.typical };
            shots.iter().take(each).map(|shot| (cluster.cluster, shot.index))
        })
        .take(IMAGES)
        .collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let pixels = |items: &[usize]| dataset.read(items);
    let background: Vec<usize> = spread(dataset.len(), DRAWS).collect();
    let images = pixels(&chosen.iter().map(|&(_, item)| item).collect::<Vec<_>>())?;
    // What the softmax begins with: where a network is sure, its probabilities hardly change, and maps of them are noise.
    let settings = explain::Settings { samples: DRAWS, output: Output::Score, ..explain::Settings::default() };
    let maps = explain::maps(&saved.learner.freeze(), &pixels(&background)?, &images, settings, observer)?;
    let frame = Frame { side: SIDE, quality: Some(85) };
    for ((&(cluster, _), image), explanation) in chosen.iter().zip(images.chunks_exact(shape.len())).zip(maps) {
        let picture::Picture { width, height, pixels } = picture::tint(image, &explanation.map, shape);
        let small = painter.resized(&pixels, ImageShape { height, width, channels: 3 }, SIDE)?;
        report.clusters[cluster].importance.push(frame.picture(&small)?);
    }
    Ok(())
}
