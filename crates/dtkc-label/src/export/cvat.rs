//! CVAT for images 1.1: a tag for every image, and the labels that a task needs for them.

use std::path::{Path, PathBuf};

use dtkc_observe::Observer;
use serde_json::json;

use super::text::xml;
use super::{About, Labels, Out};
use crate::error::Result;

/// The attribute of a tag with the probability.
const CONFIDENCE: &str = "confidence";

/// Where the labels go, as CVAT takes them when a task is made.
pub(super) fn labels_path(annotations: &Path) -> PathBuf {
    annotations.with_extension("labels.json")
}

pub(super) fn write(path: &Path, about: &About<'_>, labels: &Labels, observer: &dyn Observer) -> Result<()> {
    let mut out = Out::beside(path)?;
    out.text(&head(about, labels))?;
    let mut number = 0u64;
    about.each(labels, &mut |image| {
        let (width, height) = image.size()?;
        let name = xml(&about.naming.name(&image.row.path)?);
        out.text(&format!("  <image id=\"{number}\" name=\"{name}\" width=\"{width}\" height=\"{height}\">\n"))?;
        if let Some(class) = image.class {
            let (label, confidence) = (xml(labels.name(class)), image.label.confidence);
            out.text(&format!(
                "    <tag label=\"{label}\" source=\"auto\"><attribute name=\"{CONFIDENCE}\">{confidence}</attribute></tag>\n"
            ))?;
        }
        number += 1;
        observer.advance(1);
        out.text("  </image>\n")
    })?;
    out.text("</annotations>\n")?;
    let attribute =
        json!({ "name": CONFIDENCE, "mutable": false, "input_type": "text", "default_value": "", "values": [""] });
    let label = |name: &String| json!({ "name": name, "type": "tag", "attributes": [attribute] });
    let mut definitions = Out::beside(&labels_path(path))?;
    definitions.json(&labels.names.iter().map(label).collect::<Vec<_>>())?;
    definitions.text("\n")?;
    definitions.finish()?;
    out.finish()
}

fn head(about: &About<'_>, labels: &Labels) -> String {
    let attribute = format!(
        "<attribute><name>{CONFIDENCE}</name><mutable>False</mutable><input_type>text</input_type>\
         <default_value></default_value><values></values></attribute>"
    );
    let label = |name: &String| {
        let name = xml(name);
        format!("        <label><name>{name}</name><type>tag</type><attributes>{attribute}</attributes></label>\n")
    };
    let definitions: String = labels.names.iter().map(label).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<annotations>\n  <version>1.1</version>\n  <meta>\n    <task>\n      \
         <name>{}</name>\n      <size>{}</size>\n      <mode>annotation</mode>\n      <labels>\n{definitions}      \
         </labels>\n    </task>\n  </meta>\n",
        xml(&about.version()),
        about.images,
    )
}
