//! FiftyOne: its own JSON of classified images (`FiftyOneImageClassificationDataset`), with the images by their paths.

use std::path::Path;

use dtkc_observe::Observer;
use serde_json::json;

use super::{About, Labels, Out};
use crate::error::Result;

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
            let more = json!({ "cluster": label.cluster, "margin": label.margin, "outlier": label.outlier });
            json!({ "label": labels.name(class), "confidence": label.confidence, "attributes": more })
        });
        observer.advance(1);
        out.json(&target)
    })?;
    out.text("\n}}\n")?;
    out.finish()
}
