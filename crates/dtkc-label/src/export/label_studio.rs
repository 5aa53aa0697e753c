//! Label Studio: a list of tasks with predictions, and the labelling interface that fits them.

use std::path::{Path, PathBuf};

use dtkc_observe::Observer;
use serde::Serialize;

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
        observer.advance(1);
        tasks.json(&Task {
            data: Data { image: about.naming.address(&image.row.path)?, path: &image.row.path },
            predictions: prediction(image, labels, &version).into_iter().collect(),
        })
    })?;
    // No image at all is an empty list.
    tasks.text(if before == "[\n" { "[]\n" } else { "\n]\n" })?;
    let mut config = Out::beside(&config_path(path))?;
    config.text(&interface(labels))?;
    config.finish()?;
    tasks.finish()
}

#[derive(Serialize)]
struct Task<'a> {
    data: Data<'a>,
    predictions: Vec<Prediction<'a>>,
}

#[derive(Serialize)]
struct Data<'a> {
    image: String,
    path: &'a str,
}

#[derive(Serialize)]
struct Prediction<'a> {
    model_version: &'a str,
    score: f32,
    result: [Choice<'a>; 1],
}

#[derive(Serialize)]
struct Choice<'a> {
    id: String,
    from_name: &'static str,
    to_name: &'static str,
    r#type: &'static str,
    score: f32,
    value: Chosen<'a>,
}

#[derive(Serialize)]
struct Chosen<'a> {
    choices: [&'a str; 1],
}

fn prediction<'a>(image: &Image<'_>, labels: &'a Labels, version: &'a str) -> Option<Prediction<'a>> {
    let value = Chosen { choices: [labels.name(image.class?)] };
    let (id, score) = (format!("dtkc-{}", image.row.index), image.label.confidence);
    let choice = Choice { id, from_name: FROM, to_name: TO, r#type: "choices", score, value };
    Some(Prediction { model_version: version, score, result: [choice] })
}

fn interface(labels: &Labels) -> String {
    let choice = |name: &String| format!("    <Choice value=\"{}\"/>\n", text::xml(name));
    let choices: String = labels.names.iter().map(choice).collect();
    format!(
        "<View>\n  <Image name=\"{TO}\" value=\"${TO}\"/>\n  <Choices name=\"{FROM}\" toName=\"{TO}\" choice=\"single\" \
         showInLine=\"true\">\n{choices}  </Choices>\n</View>\n"
    )
}
