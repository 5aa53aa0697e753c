//! From what was found to opened sources.

use std::path::{Path, PathBuf};

use super::arrays::layout::FlatShape;
use super::arrays::pair::Keys;
use super::arrays::{ArrayImporter, Part};
use super::detect::{Format, Input};
use super::images::{ImageImporter, Listing};
use super::labels::LabelsFrom;
use super::record::{Classes, Importer};
use super::{ImportError, arabic, foreign, idx, libsvm, mat, npy, ts};

/// What the user said about how to read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Where the labels of encoded images come from.
    pub labels: LabelsFrom,
    /// Names of the arrays.
    pub keys: Keys,
    /// The shape of flat images.
    pub shape: Option<FlatShape>,
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
                let folder = ImageImporter::new(listing, options.labels, several);
                sources.push(labelled(&path, Box::new(folder), options)?);
                continue;
            }
            Input::File(path, format) => (path, format),
        };
        if format == Format::Image {
            arrays.close(&mut sources)?;
            files.push(path);
        } else if let Some((format, parts, names)) = open_arrays(&path, format, options)? {
            close_files(&mut sources, &mut files, options);
            arrays.add(format, parts, names, &mut sources)?;
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
    arrays.close(sources)
}

fn close_files(sources: &mut Vec<Box<dyn Importer>>, files: &mut Vec<PathBuf>, options: &ReadOptions) {
    if !files.is_empty() {
        let listing = Listing::of_files(std::mem::take(files));
        sources.push(Box::new(ImageImporter::new(listing, options.labels, false)));
    }
}

/// Arrays that still wait for more of their kind.
#[derive(Default)]
struct Arrays {
    format: &'static str,
    parts: Vec<Part>,
    names: Option<Vec<String>>,
}

impl Arrays {
    fn add(
        &mut self,
        format: &'static str,
        parts: Vec<Part>,
        names: Option<Vec<String>>,
        sources: &mut Vec<Box<dyn Importer>>,
    ) -> Result<(), ImportError> {
        for part in parts {
            let size = |p: &Part| (p.layout.height, p.layout.width, p.layout.channels);
            if self.parts.last().is_some_and(|last| size(last) != size(&part) || self.names != names) {
                self.close(sources)?;
            }
            self.format = format;
            self.names.clone_from(&names);
            self.parts.push(part);
        }
        Ok(())
    }

    fn close(&mut self, sources: &mut Vec<Box<dyn Importer>>) -> Result<(), ImportError> {
        let Self { format, parts, names } = std::mem::take(self);
        if !parts.is_empty() {
            sources.push(Box::new(ArrayImporter::new(format, parts, names)?));
        }
        Ok(())
    }
}

type OpenedArrays = (&'static str, Vec<Part>, Option<Vec<String>>);

fn open_arrays(path: &Path, format: Format, options: &ReadOptions) -> Result<Option<OpenedArrays>, ImportError> {
    let ReadOptions { keys, shape, .. } = options;
    Ok(Some(match format {
        Format::Idx => ("IDX", vec![idx::open(path)?], None),
        Format::Mat => ("MAT v5", mat::open(path, keys, *shape)?, None),
        Format::Npy => ("NumPy array", vec![npy::open_npy(path, *shape)?], None),
        Format::Npz => ("NumPy arrays", npy::open_npz(path, keys, *shape)?, None),
        Format::Libsvm => ("LIBSVM text", vec![libsvm::open(path, *shape)?], None),
        Format::Hdf5 => {
            let foreign = foreign::open(path, keys, *shape)?;
            ("HDF5", foreign.parts, foreign.label_names)
        }
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
    let listing = Listing::of(input)?;
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
