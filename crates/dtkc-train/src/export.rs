//! The model file: written, run with ONNX Runtime, compared, and only then given its name.

use dtkc_dataset::Dataset;
use dtkc_item::{Batch, ImageSpec, Items, Resize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_onnx::{Cluster, InputSpec, Metadata, Parity, Provenance};
use serde::Serialize;

use crate::error::TrainError;
use crate::saved::Saved;

/// Images of the training set on which both are compared.
const COMPARED: usize = 500;
/// Largest difference of a probability.
const TOLERANCE: f64 = 1e-5;
/// Where the two largest probabilities are closer than this, either may win.
const NEAR_TIE: f64 = 1e-4;

/// What to export and how.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The file to write.
    pub out: PathBuf,
    /// The dataset for the comparison; `None` takes the one that the run was trained on.
    pub data: Option<PathBuf>,
    /// The ONNX Runtime library; `None` looks in the usual places.
    pub onnxruntime: Option<PathBuf>,
    /// How new images become the size of the network; `None` takes the rule by which those of the dataset did.
    pub resize: Option<Resize>,
}

/// What was written.
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// The restart that it holds.
    pub restart: usize,
    /// How closely ONNX Runtime agreed.
    pub parity: Parity,
}

/// Writes the model file of a finished restart, after ONNX Runtime has given the same answers as burn.
pub fn export(saved: &Saved, options: &ExportOptions) -> Result<Exported, TrainError> {
    let runtime = Runtime::find(options.onnxruntime.as_deref())?;
    let mut network = saved.learner.freeze();
    network.reorder_clusters(&saved.order)?;
    let mut metadata = describe(saved, options.resize)?;
    let data = options.data.as_deref().unwrap_or(&saved.config.data.path);
    let images = sample(data, saved)?;
    let draft = dtkc_onnx::write(&network, &metadata)?;
    let parity = compare(saved, &runtime, draft, &images)?;
    metadata.parity = Some(parity);
    let bytes = dtkc_onnx::write(&network, &metadata)?;
    dtkc_files::write(&options.out, &bytes)?;
    Ok(Exported { path: options.out.clone(), bytes: bytes.len(), restart: saved.restart, parity })
}

fn describe(saved: &Saved, resize: Option<Resize>) -> Result<Metadata, TrainError> {
    let config = &saved.config;
    let input = config.data.input;
    let Some((shape, color)) = input.image().and_then(|shape| Some((shape, shape.color()?))) else {
        return Err(TrainError::Mismatch(format!("{input} have no place in a model file yet")));
    };
    let mut metrics = BTreeMap::new();
    if let Some(figures) = &saved.figures {
        for (name, value) in [("loss", figures.loss), ("acc", figures.acc), ("nmi", figures.nmi), ("ari", figures.ari)]
        {
            metrics.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    let resize = resize.or(config.data.resize).unwrap_or(Resize::Fit);
    let image = ImageSpec { height: shape.height, width: shape.width, color, resize };
    let input = InputSpec { image, filter: dtkc_image::FILTER.into() };
    let clusters = saved.order.iter().map(|&old| Cluster { name: None, size: saved.sizes[old] }).collect();
    Ok(Metadata {
        provenance: Provenance {
            method: config.method.to_string(),
            preset: config.preset.clone(),
            config_hash: config.hash()?,
            seed: config.run.seed,
            dataset: config.data.name.clone(),
            dataset_fingerprint: config.data.fingerprint.clone(),
            tool_version: env!("CARGO_PKG_VERSION").into(),
        },
        metrics,
        ..Metadata::new(input, clusters)
    })
}

/// Items spread evenly over the dataset.
fn sample(path: &Path, saved: &Saved) -> Result<Batch, TrainError> {
    let dataset = Dataset::open(path)?;
    let shape = dataset.require_images()?;
    if dataset.shape() != saved.config.data.input {
        let text = format!("{} does not hold images of the size that the run was trained on", path.display());
        return Err(TrainError::Mismatch(text));
    }
    let count = dataset.len().min(COMPARED);
    let indices: Vec<usize> = (0..count).map(|i| i * dataset.len() / count).collect();
    Ok(Batch { items: Items::Images { shape, pixels: dataset.read(&indices)? }, indices })
}

fn compare(saved: &Saved, runtime: &Runtime, model: Vec<u8>, images: &Batch) -> Result<Parity, TrainError> {
    let count = images.len();
    let file = ModelFile::from_bytes("the exported model", model)?;
    let pixels = images.items.pixels().unwrap_or_default();
    let found = Session::new(runtime, &file, &SessionOptions::default())?.run(pixels, count)?;
    let expected = saved.learner.answers(&images.items).membership;
    let mut parity = Parity { images: count, max_difference: 0.0, differing_clusters: 0 };
    for (i, (row, found_row)) in expected.chunks_exact(saved.order.len()).zip(found.probabilities.rows()).enumerate() {
        let row: Vec<f64> = saved.order.iter().map(|&old| f64::from(row[old])).collect();
        let image = images.indices[i];
        for (cluster, (&a, &b)) in row.iter().zip(found_row).enumerate() {
            let difference = (a - f64::from(b)).abs();
            if difference.is_nan() || difference > TOLERANCE {
                return Err(TrainError::Parity(format!(
                    "the exported model differs from the trained one by {difference:.1e} (image {image}, cluster \
                     {cluster}: {b} instead of {a}); nothing was written, please report this with the run's config.toml"
                )));
            }
            parity.max_difference = parity.max_difference.max(difference);
        }
        let (best, second) = top_two(&row);
        if found.clusters[i] != best as i64 {
            if row[best] - row[second] > NEAR_TIE {
                return Err(TrainError::Parity(format!(
                    "the exported model puts image {image} into cluster {} instead of {best}; nothing was written, \
                     please report this with the run's config.toml",
                    found.clusters[i]
                )));
            }
            parity.differing_clusters += 1;
        }
    }
    Ok(parity)
}

fn top_two(row: &[f64]) -> (usize, usize) {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    (order[0], order[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_largest_are_found() {
        assert_eq!(top_two(&[0.1, 0.5, 0.4]), (1, 2));
        assert_eq!(top_two(&[0.5, 0.5]), (0, 1));
    }
}
