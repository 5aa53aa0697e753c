//! From what was found to opened sources.

use std::path::{Path, PathBuf};

use dtkc_image::Limits;
use dtkc_source::Sought;

use super::arrays::layout::FlatShape;
use super::arrays::pair::Keys;
use super::arrays::{ArrayImporter, Arrays, Part};
use super::detect::{Format, Input};
use super::images::{ImageImporter, Listing};
use super::labels::LabelsFrom;
use super::record::{Classes, Description, Importer};
use super::sequences::files::FileImporter;
use super::sequences::lines::Text;
use super::sequences::sound::SoundOptions;
use super::sequences::table::Columns;
use super::sequences::{arabic, layout, lists, long, ts, wide};
use super::{ReadError, idx, libsvm, mat, npy, rows};

/// What the user said about how to read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Where the labels of encoded images come from.
    pub labels: LabelsFrom,
    /// Names of the arrays.
    pub keys: Keys,
    /// The shape of flat images.
    pub shape: Option<FlatShape>,
    /// Whether arrays of three axes are sequences and not images.
    pub sequences: bool,
    /// Which columns of a table are what.
    pub columns: Columns,
    /// How sounds become sequences.
    pub sound: SoundOptions,
    /// What one encoded image, table or sound may cost.
    pub limits: Limits,
    /// What opens HDF5 files; without it they are refused.
    pub hdf5: Option<OpenHdf5>,
}

/// Finds the arrays of an HDF5 file.
pub type OpenHdf5 = fn(&Path, &Keys, Option<FlatShape>) -> Result<Arrays, ReadError>;

/// Opens the sources. Arrays of one size become one source, so that they are scaled alike; image files that were named one
/// by one become one too, and so do Parquet files of images, so that their classes are the same.
pub fn open(inputs: Vec<Input>, options: &ReadOptions) -> Result<Vec<Box<dyn Importer>>, ReadError> {
    let mut sources: Vec<Box<dyn Importer>> = Vec::new();
    let mut arrays = Arrays::default();
    let mut files = Files::default();
    let several = inputs.len() > 1;
    let mut labelled_tar = None;
    for input in inputs {
        let (path, format) = match input {
            Input::Folder(path, listing) => {
                close(&mut sources, &mut arrays, &mut files, options)?;
                sources.push(labelled(&path, listed(*listing, options, several)?, options)?);
                continue;
            }
            Input::File(path, format) => (path, format),
        };
        if let Some(sought) = format.sought() {
            close_arrays(&mut sources, &mut arrays)?;
            if files.sought != sought || files.shards {
                close_files(&mut sources, &mut files, options)?;
            }
            files.sought = sought;
            files.paths.push(path);
        } else if format == Format::Parquet && rows::are_images(&path, options)? {
            close_arrays(&mut sources, &mut arrays)?;
            if !files.shards {
                close_files(&mut sources, &mut files, options)?;
            }
            files.shards = true;
            files.paths.push(path);
        } else if let Some(source) = open_sequences(&path, format, options)? {
            close(&mut sources, &mut arrays, &mut files, options)?;
            sources.push(source);
        } else if let Some(found) = open_arrays(&path, format, options)? {
            close_files(&mut sources, &mut files, options)?;
            add(&mut arrays, found, &mut sources)?;
        } else {
            close(&mut sources, &mut arrays, &mut files, options)?;
            let source = open_other(&path, format, options)?;
            check_alike(&mut labelled_tar, &path, format, source.describe())?;
            sources.push(source);
        }
    }
    close(&mut sources, &mut arrays, &mut files, options)?;
    Ok(sources)
}

fn close(
    sources: &mut Vec<Box<dyn Importer>>,
    arrays: &mut Arrays,
    files: &mut Files,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    close_files(sources, files, options)?;
    close_arrays(sources, arrays)
}

/// Files that follow each other and become one source.
#[derive(Default)]
struct Files {
    paths: Vec<PathBuf>,
    /// What each is, where it is an item by itself.
    sought: Sought,
    /// Whether they are shards with an image in every row.
    shards: bool,
}

fn close_files(
    sources: &mut Vec<Box<dyn Importer>>,
    files: &mut Files,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let Files { paths, sought, shards } = std::mem::take(files);
    let Some(first) = paths.first().cloned() else { return Ok(()) };
    sources.push(match shards {
        true => labelled(&first, Box::new(rows::RowImporter::open(paths, options)?), options)?,
        false => listed(Listing::of_files(paths, sought, options.limits), options, false)?,
    });
    Ok(())
}

/// The importer of files that were listed.
fn listed(listing: Listing, options: &ReadOptions, several: bool) -> Result<Box<dyn Importer>, ReadError> {
    Ok(match listing.sought() {
        Sought::Images => Box::new(ImageImporter::new(listing, options.labels, several)),
        Sought::Tables | Sought::Sounds => Box::new(FileImporter::new(listing, options, several)?),
    })
}

/// Formats that hold sequences, or may do so.
fn open_sequences(path: &Path, format: Format, options: &ReadOptions) -> Result<Option<Box<dyn Importer>>, ReadError> {
    let table = match format {
        Format::Csv => Some(layout::of(path, &options.columns)?),
        Format::CsvLong => Some(layout::Layout::Long),
        Format::CsvWide => Some(layout::Layout::Wide),
        _ => None,
    };
    Ok(Some(match (format, table) {
        (_, Some(layout::Layout::Long)) => Box::new(long::LongImporter::open(Text::file(path), &options.columns)?),
        (_, Some(layout::Layout::Wide)) => Box::new(wide::WideImporter::open(Text::file(path), &options.columns)?),
        (Format::Ts, _) => Box::new(ts::TsImporter::open(path)?),
        (Format::Parquet, _) => Box::new(lists::ListImporter::open(path, &options.columns)?),
        (Format::Arabic, _) => Box::new(arabic::ArabicImporter::open(path)?),
        (Format::Npy, _) if options.sequences => Box::new(npy::open_npy_sequences(path)?),
        (Format::Npz, _) => {
            let found = npy::open_npz_sequences(path, &options.keys, options.sequences)?;
            return Ok(found.map(|source| Box::new(source) as Box<dyn Importer>));
        }
        (Format::Idx | Format::Mat | Format::Hdf5 | Format::Libsvm, _) if options.sequences => {
            let reason = format!("--sequences is for NumPy files; save the array of this {format} file as .npy");
            return Err(ReadError::file(path, reason));
        }
        _ => return Ok(None),
    }))
}

/// Puts arrays to those that wait for more of their kind.
fn add(waiting: &mut Arrays, found: Arrays, sources: &mut Vec<Box<dyn Importer>>) -> Result<(), ReadError> {
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

fn close_arrays(sources: &mut Vec<Box<dyn Importer>>, waiting: &mut Arrays) -> Result<(), ReadError> {
    let arrays = std::mem::take(waiting);
    if !arrays.parts.is_empty() {
        sources.push(Box::new(ArrayImporter::new(arrays)?));
    }
    Ok(())
}

fn open_arrays(path: &Path, format: Format, options: &ReadOptions) -> Result<Option<Arrays>, ReadError> {
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
        Format::Hdf5 => match options.hdf5 {
            Some(open) => open(path, keys, *shape)?,
            None => {
                return Err(ReadError::file(path, "HDF5 files of other programs are not read here; import it first"));
            }
        },
        _ => return Ok(None),
    }))
}

fn open_other(path: &Path, format: Format, options: &ReadOptions) -> Result<Box<dyn Importer>, ReadError> {
    let source: Box<dyn Importer> = match format {
        Format::Tar => archive(dtkc_source::Input::Tar, path, options)?,
        Format::Zip => archive(dtkc_source::Input::Zip, path, options)?,
        other => return Err(ReadError::file(path, format!("this is not a source of format {other}"))),
    };
    labelled(path, source, options)
}

/// Refuses a tar whose classes have names where those of the first one are numbers: they are no shards of one dataset, and
/// numbers would become names.
fn check_alike(
    first: &mut Option<(PathBuf, bool)>,
    path: &Path,
    format: Format,
    description: &Description,
) -> Result<(), ReadError> {
    let named = match &description.classes {
        Classes::Names(_) if format == Format::Tar => true,
        Classes::Numbers(_) if format == Format::Tar => false,
        _ => return Ok(()),
    };
    let (other, known) = first.get_or_insert_with(|| (path.to_owned(), named));
    if *known == named {
        return Ok(());
    }
    let have = |named: bool| if named { "names" } else { "numbers" };
    let reason = format!(
        "its classes are {} and those of {} are {}; import shards of one dataset, or each by itself",
        have(named),
        other.display(),
        have(*known)
    );
    Err(ReadError::file(path, reason))
}

fn archive(
    of: fn(PathBuf) -> dtkc_source::Input,
    path: &Path,
    options: &ReadOptions,
) -> Result<Box<dyn Importer>, ReadError> {
    let images = Listing::of(of(path.to_owned()), options.limits)?;
    if !images.is_empty() {
        return listed(images, options, false);
    }
    for sought in [Sought::Sounds, Sought::Tables] {
        let listing = Listing::seek(of(path.to_owned()), sought, options.limits)?;
        if !listing.is_empty() {
            return listed(listing, options, false);
        }
    }
    Err(ReadError::file(path, images.nothing()))
}

/// A source whose labels were asked for must have some.
fn labelled(path: &Path, source: Box<dyn Importer>, options: &ReadOptions) -> Result<Box<dyn Importer>, ReadError> {
    let none = source.describe().classes == Classes::None;
    match options.labels {
        LabelsFrom::Coil if none => Err(ReadError::file(path, "no image is named objN__ANGLE, as COIL's are")),
        LabelsFrom::Folders if none => {
            let reason = "the files lie in no folders that could be labels (--labels-from-folders)";
            Err(ReadError::file(path, reason))
        }
        _ => Ok(source),
    }
}
