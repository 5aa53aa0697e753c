//! Images and views of them through a network, into a dataset file.

use std::path::Path;

use dtkc_dataset::{Dataset, Origin, Writer, WriterOptions};
use dtkc_infer::FeatureSession;
use dtkc_item::ItemShape;
use dtkc_observe::Observer;
use dtkc_views::{BatchKey, ViewMaker};

use super::inspect::Plan;
use super::rows::Rows;
use crate::error::TrainError;

/// Bytes that the largest value inside the network may take at once, about.
const INSIDE: usize = 64 << 20;
/// Images at once, at most.
const MOST: usize = 64;
/// Names that are read together.
const READ: usize = 4096;
/// The views of an image have nothing to do with the seed of a run, so that all runs share them.
const SEED: u64 = 0;

/// Makes the features of a set. When it is stopped, the same call goes on where it was.
pub fn make(plan: &Plan, out: &Path, observer: &dyn Observer) -> Result<(), TrainError> {
    let dataset = Dataset::open(&plan.recipe.images)?;
    let mut rows = Rows::open(out, &plan.key(), plan.shape.len())?;
    observer.begin("features", "images", Some(dataset.len() as u64));
    observer.skip(rows.done.min(dataset.len()) as u64);
    let mut describer = Describer::new(plan)?;
    while rows.done < dataset.len() {
        if observer.stop() {
            return Err(TrainError::Interrupted(format!(
                "stopped after {} of {} images; the same command goes on there",
                rows.done,
                dataset.len()
            )));
        }
        let end = (rows.done + describer.at_once).min(dataset.len());
        let count = end - rows.done;
        let pixels = dataset.read_range(rows.done..end)?;
        rows.push(&describer.describe(&pixels, rows.done)?)?;
        observer.advance(count as u64);
    }
    observer.end();
    write(plan, &dataset, &mut rows, out)?;
    rows.remove()
}

/// What makes images into vectors.
struct Describer<'a> {
    plan: &'a Plan,
    session: FeatureSession,
    /// What gives the images' own vectors with what lies inside the network, where that is kept.
    tapped: Option<FeatureSession>,
    views: ViewMaker,
    /// Images that go through the network together.
    at_once: usize,
}

impl<'a> Describer<'a> {
    fn new(plan: &'a Plan) -> Result<Self, TrainError> {
        let views = ViewMaker::new(&plan.recipe.augment, plan.recipe.image)
            .map_err(|error| TrainError::Setting(error.to_string()))?;
        let largest = dtkc_onnx::largest_values(&plan.graph)?.item;
        let at_once = (INSIDE / size_of::<f32>() / largest.max(1)).clamp(1, MOST);
        Ok(Self { plan, session: plan.session()?, tapped: plan.tapped_session()?, views, at_once })
    }

    /// What is kept of images: their vectors, those of their views, what lies inside the network. The first has the number
    /// `first` in its set.
    fn describe(&mut self, pixels: &[u8], first: usize) -> Result<Vec<f32>, TrainError> {
        let shape = self.plan.shape;
        let (dim, width) = (shape.dim, shape.len());
        let count = pixels.len() / self.plan.recipe.image.len().max(1);
        let mut all = vec![0.0; count * width];
        let clean: Vec<f32> = pixels.iter().map(|&pixel| f32::from(pixel) / 255.0).collect();
        for row in 0..shape.rows() {
            // Batches may have any size: a view depends on its image's place alone.
            let (found, inside) = match (row, &mut self.tapped) {
                (0, Some(tapped)) => (tapped.run(pixels)?, shape.taps.len()),
                (0, None) => (self.session.run(pixels)?, 0),
                _ => {
                    let view = self.view(&clean, first, row);
                    (self.session.run(&view)?, 0)
                }
            };
            if found.dims != [count, dim + inside] || !found.values.iter().all(|value| value.is_finite()) {
                return Err(TrainError::Mismatch(format!(
                    "the backbone gave no numbers for one of the images {first} to {}; name another value with --backbone-layer",
                    first + count
                )));
            }
            for (item, values) in found.values.chunks_exact(dim + inside).enumerate() {
                let (vector, inside) = values.split_at(dim);
                let item = &mut all[item * width..][..width];
                item[row * dim..][..dim].copy_from_slice(vector);
                let behind = item.len() - inside.len();
                item[behind..].copy_from_slice(inside);
            }
        }
        Ok(all)
    }

    /// One view of each image, in bytes.
    fn view(&self, clean: &[f32], first: usize, row: usize) -> Vec<u8> {
        let len = self.plan.recipe.image.len().max(1);
        let one = |(item, image): (usize, &[f32])| {
            let key = BatchKey { seed: SEED, epoch: row as u64, batch: (first + item) as u64 };
            self.views.second_views(image, key)
        };
        let views = clean.chunks_exact(len).enumerate().flat_map(one);
        views.map(|value| (value * 255.0).round().clamp(0.0, 255.0) as u8).collect()
    }
}

/// The rows with the labels and names of the images.
fn write(plan: &Plan, images: &Dataset, rows: &mut Rows, out: &Path) -> Result<(), TrainError> {
    let source = format!("{} of {}", plan.recipe.network, images.source());
    let options = WriterOptions {
        paths: images.has_paths(),
        label_names: images.label_names()?,
        origin: Some(Origin { about: plan.recipe.write()?, network: plan.graph.clone() }),
        ..WriterOptions::new(ItemShape::Features(plan.shape), images.name(), source)
    };
    let mut writer = Writer::create(out, options)?;
    let labels = images.labels()?;
    let mut paths = None;
    rows.each(|number, vectors| {
        if number % READ == 0 {
            paths = images.paths(number..(number + READ).min(images.len()))?;
        }
        let path = paths.as_ref().map(|paths| paths[number % READ].as_str());
        let label = labels.as_ref().map(|labels| labels[number]);
        Ok(writer.push_features(vectors, label, path)?)
    })?;
    writer.finish()?;
    Ok(())
}
