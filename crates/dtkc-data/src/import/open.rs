//! From what was found to opened sources.

use std::path::{Path, PathBuf};

use dtkc_image::Limits;

use super::arrays::layout::FlatShape;
use super::arrays::pair::Keys;
use super::arrays::{ArrayImporter, Arrays, Part};
use super::detect::{Format, Input};
use super::images::{ImageImporter, Listing};
use super::labels::LabelsFrom;
use super::record::{Classes, Importer};
use super::sequences::{arabic, ts};
use super::{ImportError, foreign, idx, libsvm, mat, npy};

/// What the user said about how to read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Where the labels of encoded images come from.
    pub labels: LabelsFrom,
    /// Names of the arrays.
    pub keys: Keys,
    /// The shape of flat images.
    pub shape: Option<FlatShape>,
    /// What one encoded image may cost.
    pub limits: Limits,
}

/// Opens the sources. Arrays of one size become one source, so that they are scaled alike; image files
/// that were named one by one become one too.
pub fn open(inputs: Vec<Input>, options: &ReadOptions) -> Result<Vec<Box<dyn Importer>>, ImportError> {
    let mut sources: Vec<Box<dyn Importer>> = Vec::new();
    let mut arrays = Arrays::default();
    let mut files = Vec::new();
    let several = inputs.len() > 1;
    for input in inputs {
        let (path, format) = match input {
            Input::Folder(path, listing) => {
                close(&mut sources, &mut arrays, &mut files, options)?;
                let folder = ImageImporter::new(*listing, options.labels, several);
                sources.push(labelled(&path, Box::new(folder), options)?);
                continue;
            }
            Input::File(path, format) => (path, format),
        };
        if format == Format::Image {
            close_arrays(&mut sources, &mut arrays)?;
            files.push(path);
        } else if let Some(found) = open_arrays(&path, format, options)? {
            close_files(&mut sources, &mut files, options);
            add(&mut arrays, found, &mut sources)?;
        } else {
            close(&mut sources, &mut arrays, &mut files, options)?;
            sources.push(open_other(&path, format, options)?);
        }
    }
    close(&mut sources, &mut arrays, &mut files, options)?;
    Ok(sources)
}

fn close(
    sources: &mut Vec<Box<dyn Importer>>,
    arrays: &mut Arrays,
    files: &mut Vec<PathBuf>,
    options: &ReadOptions,
) -> Result<(), ImportError> {
    close_files(sources, files, options);
    close_arrays(sources, arrays)
}

fn close_files(sources: &mut Vec<Box<dyn Importer>>, files: &mut Vec<PathBuf>, options: &ReadOptions) {
    if !files.is_empty() {
        let listing = Listing::of_files(std::mem::take(files), options.limits);
        sources.push(Box::new(ImageImporter::new(listing, options.labels, false)));
    }
}

/// Puts arrays to those that wait for more of their kind.
fn add(waiting: &mut Arrays, found: Arrays, sources: &mut Vec<Box<dyn Importer>>) -> Result<(), ImportError> {
    let Arrays { format, parts, names, resize, ours, mut notes } = found;
    for part in parts {
        let size = |p: &Part| (p.layout.height, p.layout.width, p.layout.channels);
        let alike = |last: &Part| {
            size(last) == size(&part) && waiting.names == names && waiting.resize == resize && waiting.ours == ours
        };
        if waiting.parts.last().is_some_and(|last| !alike(last)) {
            close_arrays(sources, waiting)?;
        }
        (waiting.format, waiting.resize, waiting.ours) = (format, resize, ours);
        waiting.notes.append(&mut notes);
        waiting.names.clone_from(&names);
        waiting.parts.push(part);
    }
    Ok(())
}

fn close_arrays(sources: &mut Vec<Box<dyn Importer>>, waiting: &mut Arrays) -> Result<(), ImportError> {
    let arrays = std::mem::take(waiting);
    if !arrays.parts.is_empty() {
        sources.push(Box::new(ArrayImporter::new(arrays)?));
    }
    Ok(())
}

fn open_arrays(path: &Path, format: Format, options: &ReadOptions) -> Result<Option<Arrays>, ImportError> {
    let ReadOptions { keys, shape, .. } = options;
    Ok(Some(match format {
        Format::Idx => Arrays::new("IDX", vec![idx::open(path)?]),
        Format::Mat => Arrays::new("MAT v5", mat::open(path, keys, *shape)?),
        Format::Npy => npy::open_npy(path, *shape)?,
        Format::Npz => npy::open_npz(path, keys, *shape)?,
        Format::Libsvm => {
            let (part, note) = libsvm::open(path, *shape)?;
            Arrays { notes: note.into_iter().collect(), ..Arrays::new("LIBSVM text", vec![part]) }
        }
        Format::Hdf5 => foreign::open(path, keys, *shape)?,
        _ => return Ok(None),
    }))
}

fn open_other(path: &Path, format: Format, options: &ReadOptions) -> Result<Box<dyn Importer>, ImportError> {
    let source: Box<dyn Importer> = match format {
        Format::Ts => Box::new(ts::TsImporter::open(path)?),
        Format::Arabic => Box::new(arabic::ArabicImporter::open(path)?),
        Format::Tar => archive(dtkc_source::Input::Tar(path.to_owned()), path, options)?,
        Format::Zip => archive(dtkc_source::Input::Zip(path.to_owned()), path, options)?,
        other => return Err(ImportError::file(path, format!("this is not a source of format {other}"))),
    };
    labelled(path, source, options)
}

fn archive(input: dtkc_source::Input, path: &Path, options: &ReadOptions) -> Result<Box<dyn Importer>, ImportError> {
    let listing = Listing::of(input, options.limits)?;
    match listing.is_empty() {
        true => Err(ImportError::file(path, listing.nothing())),
        false => Ok(Box::new(ImageImporter::new(listing, options.labels, false))),
    }
}

/// A source whose labels were asked for must have some.
fn labelled(path: &Path, source: Box<dyn Importer>, options: &ReadOptions) -> Result<Box<dyn Importer>, ImportError> {
    let none = source.describe().classes == Classes::None;
    match options.labels {
        LabelsFrom::Coil if none => Err(ImportError::file(path, "no image is named objN__ANGLE, as COIL's are")),
        LabelsFrom::Folders if none => {
            let reason = "the images lie in no folders that could be labels (--labels-from-folders)";
            Err(ImportError::file(path, reason))
        }
        _ => Ok(source),
    }
}
