//! What a model file says about itself beside its graph.
//!
//! ONNX stores metadata as a flat map of strings. Ours all start with `dtkc.`; lists and maps are JSON. Entries of
//! others are kept in [`Metadata::extra`].

use std::collections::BTreeMap;

use dtkc_item::{Color, ImageSpec, ItemKind, ItemShape, Resize};
use serde::{Deserialize, Serialize};

use crate::{OnnxError, OutlierInfo, Past};

/// The newest version of the metadata that this crate reads and writes. Version 2 says what kind of items a model takes.
/// Models for images are still written in version 1, which knows no other kind, so that older programs can use them.
pub const SCHEMA: u32 = 2;

/// Everything a user of the model needs to know beside the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// What the graph takes.
    pub input: InputSpec,
    /// Width of the output `embedding`; [`crate::write()`] fills it in.
    pub embedding_size: usize,
    /// The clusters, by id; their number is k.
    pub clusters: Vec<Cluster>,
    /// Where the model comes from.
    pub provenance: Provenance,
    /// Scores at export time by name ("acc", "nmi", "loss", ..).
    pub metrics: BTreeMap<String, f64>,
    /// How closely ONNX Runtime agreed with the trainer at export time.
    pub parity: Option<Parity>,
    /// What the output `outlier` means, where the graph has it; [`crate::with_outlier`] fills it in.
    pub outlier: Option<OutlierInfo>,
    /// What people changed about the clusters since training, the last change at the end; [`crate::edit()`] fills it in.
    pub edits: Vec<Past>,
    /// Entries of other tools, kept as they are.
    pub extra: BTreeMap<String, String>,
}

/// The graph's input and how to get there from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum InputSpec {
    /// Images of one size.
    Image(ImageInput),
    /// Sequences of any length, as they are: the graph scales them.
    Sequence {
        /// Values per time step.
        dim: usize,
    },
}

/// The input of a graph for images and how to get there from an image file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInput {
    /// The images that the graph takes, and how any other image becomes one of them.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// The resize filter, `dtkc_image::FILTER`.
    pub filter: String,
}

impl InputSpec {
    /// What one item looks like.
    pub const fn shape(&self) -> ItemShape {
        match self {
            Self::Image(input) => ItemShape::Image(input.image.shape()),
            Self::Sequence { dim } => ItemShape::Sequence { dim: *dim },
        }
    }

    /// The images that it takes; `None` for sequences.
    pub const fn image(&self) -> Option<ImageSpec> {
        match self {
            Self::Image(input) => Some(input.image),
            Self::Sequence { .. } => None,
        }
    }
}

impl From<ImageInput> for InputSpec {
    fn from(input: ImageInput) -> Self {
        Self::Image(input)
    }
}

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cluster {
    /// What people call it, once somebody named it.
    pub name: Option<String>,
    /// Training items in it.
    pub size: u64,
}

/// Where a model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The method, as in "dtkc".
    pub method: String,
    /// The preset it started from.
    pub preset: String,
    /// Hash of the full training configuration.
    pub config_hash: String,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the dataset.
    pub dataset: String,
    /// Fingerprint of the dataset's content.
    pub dataset_fingerprint: String,
    /// Version of the program that exported it.
    pub tool_version: String,
}

/// Agreement between ONNX Runtime and the trainer, measured at export time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Parity {
    /// Items compared.
    pub images: usize,
    /// Largest absolute difference of a probability.
    pub max_difference: f64,
    /// Items that got another cluster (only near ties may).
    pub differing_clusters: usize,
}

impl Metadata {
    /// What a model file must say; the rest can be filled in.
    pub fn new(input: InputSpec, clusters: Vec<Cluster>) -> Self {
        Self {
            input,
            embedding_size: 0,
            clusters,
            provenance: Provenance::default(),
            metrics: BTreeMap::new(),
            parity: None,
            outlier: None,
            edits: Vec::new(),
            extra: BTreeMap::new(),
        }
    }

    /// Number of clusters.
    pub fn k(&self) -> usize {
        self.clusters.len()
    }

    /// The name of a cluster: the given one, else `cluster N`.
    pub fn cluster_name(&self, id: usize) -> String {
        let given = self.clusters.get(id).and_then(|cluster| cluster.name.clone());
        given.unwrap_or_else(|| format!("cluster {id}"))
    }

    /// Share of the training items in a cluster; 0 when the sizes are not known.
    pub fn cluster_share(&self, id: usize) -> f64 {
        let total: u64 = self.clusters.iter().map(|cluster| cluster.size).sum();
        match self.clusters.get(id) {
            Some(cluster) if total > 0 => cluster.size as f64 / total as f64,
            _ => 0.0,
        }
    }

    /// Numbers that JSON cannot hold would come back as something else.
    pub(crate) fn check(&self) -> Result<(), OnnxError> {
        if let Some((name, value)) = self.metrics.iter().find(|(_, value)| !value.is_finite()) {
            return Err(OnnxError::Mismatch(format!("the metric {name} is {value}; leave it out")));
        }
        if self.parity.is_some_and(|parity| !parity.max_difference.is_finite()) {
            return Err(OnnxError::Mismatch("the parity figure is not a number".into()));
        }
        if let Some(Err(reason)) = self.outlier.map(|outlier| outlier.check()) {
            return Err(OnnxError::Mismatch(format!("the output `outlier` {reason}")));
        }
        Ok(())
    }

    /// As the flat map of strings that goes into the file.
    pub(crate) fn to_entries(&self) -> Result<BTreeMap<String, String>, OnnxError> {
        let names: Vec<&Option<String>> = self.clusters.iter().map(|cluster| &cluster.name).collect();
        let sizes: Vec<u64> = self.clusters.iter().map(|cluster| cluster.size).collect();
        let mut entries = self.extra.clone();
        let mut put = |key: &str, value: String| entries.insert(format!("dtkc.{key}"), value);
        match &self.input {
            InputSpec::Image(ImageInput { image, filter }) => {
                put("schema", 1.to_string());
                put("input.height", image.height.to_string());
                put("input.width", image.width.to_string());
                put("input.color", image.color.to_string());
                put("input.resize", image.resize.to_string());
                put("input.filter", filter.clone());
            }
            InputSpec::Sequence { dim } => {
                put("schema", SCHEMA.to_string());
                put("input.kind", ItemKind::Sequences.to_string());
                put("input.dim", dim.to_string());
            }
        }
        put("embedding_size", self.embedding_size.to_string());
        put("k", self.k().to_string());
        put("cluster_names", json(&names)?);
        put("cluster_sizes", json(&sizes)?);
        put("method", self.provenance.method.clone());
        put("preset", self.provenance.preset.clone());
        put("config_hash", self.provenance.config_hash.clone());
        put("seed", self.provenance.seed.to_string());
        put("dataset", self.provenance.dataset.clone());
        put("dataset_fingerprint", self.provenance.dataset_fingerprint.clone());
        put("tool_version", self.provenance.tool_version.clone());
        put("metrics", json(&self.metrics)?);
        if let Some(parity) = &self.parity {
            put("parity", json(parity)?);
        }
        if let Some(outlier) = &self.outlier {
            put("outlier", json(outlier)?);
        }
        if !self.edits.is_empty() {
            put("edits", json(&self.edits)?);
        }
        Ok(entries)
    }

    /// From the flat map of strings of a file.
    pub(crate) fn from_entries(entries: BTreeMap<String, String>) -> Result<Self, OnnxError> {
        let mut entries = Entries(entries);
        let Some(schema) = entries.0.remove("dtkc.schema") else {
            let found = entries.0.keys().any(|key| key.starts_with("dtkc."));
            let missing = if found { "`dtkc.schema` is missing" } else { "no `dtkc.` entry" };
            return Err(OnnxError::Foreign(missing.into()));
        };
        let kind = match schema.as_str() {
            "1" => ItemKind::Images,
            "2" => entries.kind()?,
            _ => return Err(OnnxError::Schema { found: schema, known: SCHEMA }),
        };
        let input = match kind {
            ItemKind::Images => InputSpec::Image(entries.image()?),
            ItemKind::Sequences => InputSpec::Sequence { dim: entries.number("input.dim")? },
            ItemKind::Features => {
                return Err(OnnxError::Entry { key: "dtkc.input.kind".into(), reason: "names features".into() });
            }
        };
        let clusters = entries.clusters()?;
        let provenance = Provenance {
            method: entries.text("method")?,
            preset: entries.text("preset")?,
            config_hash: entries.text("config_hash")?,
            seed: entries.number("seed")?,
            dataset: entries.text("dataset")?,
            dataset_fingerprint: entries.text("dataset_fingerprint")?,
            tool_version: entries.text("tool_version")?,
        };
        let embedding_size = entries.number("embedding_size")?;
        let metrics = entries.json("metrics")?;
        let parity = if entries.0.contains_key("dtkc.parity") { Some(entries.json("parity")?) } else { None };
        let outlier = entries.outlier()?;
        let edits = if entries.0.contains_key("dtkc.edits") { entries.json("edits")? } else { Vec::new() };
        Ok(Self { input, embedding_size, clusters, provenance, metrics, parity, outlier, edits, extra: entries.0 })
    }
}

fn json(value: &impl Serialize) -> Result<String, OnnxError> {
    serde_json::to_string(value).map_err(|error| OnnxError::Mismatch(format!("it cannot be written ({error})")))
}

/// Entries that are taken out one by one; what remains belongs to others.
struct Entries(BTreeMap<String, String>);

impl Entries {
    fn text(&mut self, key: &str) -> Result<String, OnnxError> {
        let key = format!("dtkc.{key}");
        self.0.remove(&key).ok_or_else(|| OnnxError::Entry { key, reason: "is missing".into() })
    }

    fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<T, OnnxError> {
        let text = self.text(key)?;
        text.parse().map_err(|_| wrong(key, format!("is not a number ({text:?})")))
    }

    fn json<T: for<'a> Deserialize<'a>>(&mut self, key: &str) -> Result<T, OnnxError> {
        let text = self.text(key)?;
        serde_json::from_str(&text).map_err(|error| wrong(key, format!("cannot be read ({error})")))
    }

    fn kind(&mut self) -> Result<ItemKind, OnnxError> {
        let text = self.text("input.kind")?;
        ItemKind::from_name(&text)
            .ok_or_else(|| OnnxError::Preparation(format!("the model takes items of the kind {text:?}")))
    }

    fn image(&mut self) -> Result<ImageInput, OnnxError> {
        let image = ImageSpec {
            height: self.number("input.height")?,
            width: self.number("input.width")?,
            color: self.color()?,
            resize: self.resize()?,
        };
        Ok(ImageInput { image, filter: self.text("input.filter")? })
    }

    fn color(&mut self) -> Result<Color, OnnxError> {
        let text = self.text("input.color")?;
        let known = [Color::Gray, Color::Rgb].into_iter().find(|color| color.to_string() == text);
        known.ok_or_else(|| wrong("input.color", format!("is {text:?} instead of gray or rgb")))
    }

    fn resize(&mut self) -> Result<Resize, OnnxError> {
        let text = self.text("input.resize")?;
        text.parse()
            .map_err(|_| OnnxError::Preparation(format!("images are to be prepared with the resize rule {text:?}")))
    }

    fn outlier(&mut self) -> Result<Option<OutlierInfo>, OnnxError> {
        if !self.0.contains_key("dtkc.outlier") {
            return Ok(None);
        }
        let outlier: OutlierInfo = self.json("outlier")?;
        outlier.check().map_err(|reason| wrong("outlier", reason))?;
        Ok(Some(outlier))
    }

    fn clusters(&mut self) -> Result<Vec<Cluster>, OnnxError> {
        let k: usize = self.number("k")?;
        let names: Vec<Option<String>> = self.json("cluster_names")?;
        let sizes: Vec<u64> = self.json("cluster_sizes")?;
        for (key, found) in [("cluster_names", names.len()), ("cluster_sizes", sizes.len())] {
            if found != k {
                return Err(wrong(key, format!("has {found} values for {k} clusters")));
            }
        }
        Ok(names.into_iter().zip(sizes).map(|(name, size)| Cluster { name, size }).collect())
    }
}

fn wrong(key: &str, reason: String) -> OnnxError {
    OnnxError::Entry { key: format!("dtkc.{key}"), reason }
}
