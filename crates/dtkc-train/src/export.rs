//! The model file: written, run with ONNX Runtime, compared, and only then given its name.

use dtkc_dataset::Dataset;
use dtkc_item::{Batch, ImageShape, ImageSpec, ItemShape, Items, Resize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_observe::Observer;
use dtkc_onnx::{Cluster, ImageInput, InputSpec, Metadata, Network, Parity, Provenance};
use serde::Serialize;

use crate::backbone::{Recipe, graph_of};
use crate::error::TrainError;
use crate::outliers::{self, Seen};
use crate::parity::{self, Pair};
use crate::saved::Saved;
use crate::spread::spread;

/// Items of the training set on which both are compared.
const COMPARED: usize = 500;
/// What to export and how.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The file to write.
    pub out: PathBuf,
    /// The dataset for the comparison and for what tells outliers; `None` takes the one that the run was trained on.
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
    /// Where training is not finished, a sentence that says what this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// How closely ONNX Runtime agreed.
    pub parity: Parity,
}

/// Writes the model file of a finished restart, after ONNX Runtime has given the same answers as burn.
pub fn export(saved: &Saved, options: &ExportOptions, observer: &dyn Observer) -> Result<Exported, TrainError> {
    let runtime = Runtime::find(options.onnxruntime.as_deref())?;
    let mut network = saved.learner.freeze();
    network.reorder_clusters(&saved.order)?;
    let backbone = Joined::of(saved)?;
    let mut metadata = describe(saved, backbone.as_ref(), options.resize)?;
    let dataset = saved.dataset(options.data.as_deref().unwrap_or(&saved.config.data.path))?;
    let batch = sample(&dataset)?;
    let width = network.embedding_size()?;
    let outlier = outliers::measure(&Seen::of_learner(saved.learner.as_ref(), &dataset, width, observer)?)?;
    let write = |metadata: &Metadata| {
        let bytes = match &backbone {
            Some(backbone) => dtkc_onnx::join(&backbone.graph, &network, metadata),
            None => dtkc_onnx::write(&network, metadata),
        };
        dtkc_onnx::with_outlier(&bytes?, &outlier)
    };
    let images = backbone
        .as_ref()
        .map(|backbone| backbone.recipe.images(&dataset)?.items(&batch.indices).map_err(TrainError::from));
    let images = images.transpose()?;
    let seen = images.as_ref().unwrap_or(&batch.items);
    let draft = write(&metadata)?;
    let parity = compare(saved, &network, &runtime, draft.clone(), (&batch, seen))?.or_else(|difference| {
        let path = unverified(&options.out);
        dtkc_files::write(&path, &draft)?;
        let path = path.display();
        Err(TrainError::Parity(format!(
            "the exported model differs from the trained one {difference}; it was written to {path}, use it with care \
             and please report this with the run's config.toml"
        )))
    })?;
    metadata.parity = Some(parity);
    let bytes = write(&metadata)?;
    dtkc_files::write(&options.out, &bytes)?;
    Ok(Exported {
        path: options.out.clone(),
        bytes: bytes.len(),
        restart: saved.restart,
        unfinished: saved.unfinished.clone(),
        parity,
    })
}

fn describe(saved: &Saved, backbone: Option<&Joined>, resize: Option<Resize>) -> Result<Metadata, TrainError> {
    let config = &saved.config;
    let input = match config.data.input {
        ItemShape::Image(shape) => images(shape, resize.or(config.data.resize))?,
        ItemShape::Sequence { dim } => InputSpec::Sequence { dim },
        ItemShape::Features(_) => {
            let Some(Joined { recipe, .. }) = backbone else {
                return Err(TrainError::Mismatch("features without a network have no place in a model file".into()));
            };
            images(recipe.image, resize.or(recipe.resize))?
        }
    };
    let mut metrics = BTreeMap::new();
    if let Some(figures) = &saved.figures {
        for (name, value) in [("loss", figures.loss), ("acc", figures.acc), ("nmi", figures.nmi), ("ari", figures.ari)]
        {
            metrics.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
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

/// The input of a model for images of that shape.
fn images(shape: ImageShape, resize: Option<Resize>) -> Result<InputSpec, TrainError> {
    let Some(color) = shape.color() else {
        return Err(TrainError::Mismatch(format!("images of {shape} have no place in a model file")));
    };
    let resize = resize.unwrap_or(Resize::Fit);
    let image = ImageSpec { height: shape.height, width: shape.width, color, resize };
    Ok(ImageInput { image, filter: dtkc_image::FILTER.into() }.into())
}

/// What stands before a head that takes features.
struct Joined {
    recipe: Recipe,
    graph: Vec<u8>,
}

impl Joined {
    /// `None` for a run that was trained on items themselves.
    fn of(saved: &Saved) -> Result<Option<Self>, TrainError> {
        let ItemShape::Features(_) = saved.config.data.input else { return Ok(None) };
        let features = Dataset::open(&saved.config.data.path)?;
        Ok(Some(Self { recipe: Recipe::of(&features)?, graph: graph_of(&features)? }))
    }
}

/// Items spread evenly over the dataset.
fn sample(dataset: &Dataset) -> Result<Batch, TrainError> {
    let indices: Vec<usize> = spread(dataset.len(), COMPARED).collect();
    Ok(Batch { items: dataset.items(&indices)?, indices })
}

fn compare(
    saved: &Saved,
    network: &Network,
    runtime: &Runtime,
    model: Vec<u8>,
    (batch, seen): (&Batch, &Items),
) -> Result<Result<Parity, String>, TrainError> {
    let file = ModelFile::from_bytes("the exported model", model)?;
    let found = Session::new(runtime, &file, &SessionOptions::default())?.run_items(seen)?;
    let expected = saved.learner.answers(&batch.items).membership;
    let rows = expected.chunks_exact(saved.order.len()).zip(found.probabilities.rows()).enumerate();
    let pairs = rows.map(|(i, (row, found_row))| Pair {
        item: batch.indices[i],
        expected: saved.order.iter().map(|&old| f64::from(row[old])).collect(),
        found: found_row.to_slice().unwrap_or_default(),
        cluster: found.clusters[i],
        size: parity::size(network, found.embedding.row(i).iter().copied()),
    });
    let strange = found.outliers.iter().position(|value| !(0.0..=1.0).contains(value));
    Ok(match strange {
        Some(at) => Err(format!("in how far item {} is from others: {}", batch.indices[at], found.outliers[at])),
        None => parity::judge(pairs),
    })
}

/// Where a model goes that is not as it should be: nobody takes it for a good one, and nobody is left without.
fn unverified(out: &Path) -> PathBuf {
    out.with_extension("unverified.onnx")
}
