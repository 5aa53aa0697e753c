//! Label Studio: a list of tasks with predictions, and the labelling interface that fits them.

use std::path::{Path, PathBuf};

use dtkc_observe::Observer;
use serde_json::json;

use super::{About, Image, Labels, Out, text};
use crate::error::Result;

/// What results are called in the interface, and what they are about.
const FROM: &str = "cluster";
const TO: &str = "image";

/// Where the interface goes.
pub(super) fn config_path(tasks: &Path) -> PathBuf {
    tasks.with_extension("config.xml")
}

pub(super) fn write(path: &Path, about: &About<'_>, labels: &Labels, observer: &dyn Observer) -> Result<()> {
    let version = about.version();
    let mut tasks = Out::beside(path)?;
    let mut before = "[\n";
    about.each(labels, &mut |image| {
        tasks.text(std::mem::replace(&mut before, ",\n"))?;
        let predictions: Vec<_> = prediction(image, labels, &version).into_iter().collect();
        let data = json!({ TO: about.naming.address(&image.row.path)?, "path": image.row.path });
        observer.advance(1);
        tasks.json(&json!({ "data": data, "predictions": predictions }))
    })?;
    // No image at all is an empty list.
    tasks.text(if before == "[\n" { "[]\n" } else { "\n]\n" })?;
    let mut config = Out::beside(&config_path(path))?;
    config.text(&interface(labels))?;
    config.finish()?;
    tasks.finish()
}

fn prediction(image: &Image<'_>, labels: &Labels, version: &str) -> Option<serde_json::Value> {
    let choice = labels.name(image.class?);
    let score = image.label.confidence;
    let result = json!({
        "id": format!("dtkc-{}", image.row.index),
        "from_name": FROM, "to_name": TO, "type": "choices", "score": score, "value": { "choices": [choice] },
    });
    Some(json!({ "model_version": version, "score": score, "result": [result] }))
}

fn interface(labels: &Labels) -> String {
    let choice = |name: &String| format!("    <Choice value=\"{}\"/>\n", text::xml(name));
    let choices: String = labels.names.iter().map(choice).collect();
    format!(
        "<View>\n  <Image name=\"{TO}\" value=\"${TO}\"/>\n  <Choices name=\"{FROM}\" toName=\"{TO}\" choice=\"single\" \
         showInLine=\"true\">\n{choices}  </Choices>\n</View>\n"
    )
}
