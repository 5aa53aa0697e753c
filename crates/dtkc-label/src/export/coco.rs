//! Labels of whole images in the words of COCO, as Datumaro reads them (`coco_labels`).

use std::path::{Path, PathBuf};

use dtkc_observe::Observer;
use serde::Serialize;
use serde_json::json;

use super::{About, Labels, Out};
use crate::error::{LabelError, Result};

#[derive(Serialize)]
struct Image {
    id: u64,
    file_name: String,
    width: u32,
    height: u32,
}

#[derive(Serialize)]
struct Annotation {
    id: u64,
    image_id: u64,
    category_id: usize,
    score: f32,
}

/// Whether a file alone is asked for, and not the folders that Datumaro expects around it.
fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

/// The file with the labels.
pub(super) fn file(path: &Path) -> PathBuf {
    if is_file(path) { path.to_owned() } else { path.join("annotations").join("labels_default.json") }
}

/// The first part of its path that is not there yet.
pub(super) fn first(path: &Path) -> PathBuf {
    let target = file(path);
    let parts = [path.to_owned(), path.join("annotations"), target.clone()];
    parts.into_iter().find(|part| !part.is_dir()).unwrap_or(target)
}

pub(super) fn write(path: &Path, about: &About<'_>, labels: &Labels, observer: &dyn Observer) -> Result<()> {
    let target = file(path);
    if !is_file(path) {
        fs_err::create_dir_all(path.join("annotations"))?;
        place_images(&path.join("images"), about.naming.root())?;
    }
    let mut out = Out::beside(&target)?;
    out.text("{\"info\": ")?;
    out.json(&json!({ "description": about.version(), "contributor": "dtkc-label" }))?;
    let category = |(id, name): (usize, &String)| json!({ "id": id + 1, "name": name, "supercategory": "" });
    out.text(",\n\"licenses\": [],\n\"categories\": ")?;
    out.json(&labels.names.iter().enumerate().map(category).collect::<Vec<_>>())?;
    out.text(",\n\"images\": [")?;
    let mut before = "\n";
    about.each(labels, &mut |image| {
        let (width, height) = image.size()?;
        out.text(std::mem::replace(&mut before, ",\n"))?;
        observer.advance(1);
        let file_name = about.naming.name(&image.row.path)?;
        out.json(&Image { id: image.row.index + 1, file_name, width, height })
    })?;
    out.text("\n],\n\"annotations\": [")?;
    before = "\n";
    about.each(labels, &mut |image| {
        let Some(class) = image.class else { return Ok(()) };
        out.text(std::mem::replace(&mut before, ",\n"))?;
        let id = image.row.index + 1;
        out.json(&Annotation { id, image_id: id, category_id: class + 1, score: image.label.confidence })
    })?;
    out.text("\n]}\n")?;
    out.finish()
}

/// Datumaro wants a folder of images beside the labels: a link to where they are, or, where they lie in an archive or the
/// system has no links, an empty one for them. What is there already stays.
fn place_images(images: &Path, root: &Path) -> Result<()> {
    if images.symlink_metadata().is_ok() {
        return Ok(());
    }
    #[cfg(unix)]
    if root.is_dir() {
        return std::os::unix::fs::symlink(root, images)
            .map_err(|error| LabelError::unwritable(images.display(), &error, ""));
    }
    let _ = root;
    fs_err::create_dir_all(images).map_err(|error| LabelError::unwritable(images.display(), &error, ""))
}
