//! FiftyOne: its own JSON of classified images (`FiftyOneImageClassificationDataset`), with the images by their paths.

use std::path::Path;

use dtkc_observe::Observer;
use serde::Serialize;

use super::{About, Labels, Out};
use crate::error::Result;

/// One classification; what is not its own goes among its attributes.
#[derive(Serialize)]
struct Classification<'a> {
    label: &'a str,
    confidence: f32,
    attributes: Attributes,
}

#[derive(Serialize)]
struct Attributes {
    cluster: u32,
    margin: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    outlier: Option<f32>,
}

pub(super) fn write(path: &Path, about: &About<'_>, labels: &Labels, observer: &dyn Observer) -> Result<()> {
    let mut out = Out::beside(path)?;
    out.text("{\"classes\": ")?;
    out.json(&labels.names)?;
    out.text(",\n\"labels\": {")?;
    let mut before = "\n";
    about.each(labels, &mut |image| {
        out.text(std::mem::replace(&mut before, ",\n"))?;
        out.json(&about.naming.path(&image.row.path)?)?;
        out.text(": ")?;
        let label = image.label;
        let target = image.class.map(|class| {
            let attributes = Attributes { cluster: label.cluster, margin: label.margin, outlier: label.outlier };
            Classification { label: labels.name(class), confidence: label.confidence, attributes }
        });
        observer.advance(1);
        out.json(&target)
    })?;
    out.text("\n}}\n")?;
    out.finish()
}
