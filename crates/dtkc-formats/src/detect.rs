//! What a source is, by its content.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use dtkc_image::Limits;
use dtkc_source::remote::{self, At};
use dtkc_source::{FileKind, Sought, is_tar, kind_by_name, parquet, rules, zip};

use super::images::Listing;
use super::sequences::{arabic, ts};
use super::{ReadError, idx, libsvm, mat, npy, splits, stream};

/// Bytes that are enough to tell any format.
const HEAD: usize = 8192;

/// A format that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Format {
    Folder,
    Image,
    Zip,
    Tar,
    Coil,
    Idx,
    Mat,
    Hdf5,
    Npy,
    Npz,
    Ts,
    Arabic,
    Libsvm,
    Csv,
    CsvLong,
    CsvWide,
    CsvEach,
    Wav,
    Parquet,
}

impl Format {
    const ALL: [(Self, &'static str); 19] = [
        (Self::Folder, "folder"),
        (Self::Image, "image"),
        (Self::Zip, "zip"),
        (Self::Tar, "tar"),
        (Self::Coil, "coil"),
        (Self::Idx, "idx"),
        (Self::Mat, "mat"),
        (Self::Hdf5, "hdf5"),
        (Self::Npy, "npy"),
        (Self::Npz, "npz"),
        (Self::Ts, "ts"),
        (Self::Arabic, "arabic"),
        (Self::Libsvm, "libsvm"),
        (Self::Csv, "csv"),
        (Self::CsvLong, "csv-long"),
        (Self::CsvWide, "csv-wide"),
        (Self::CsvEach, "csv-each"),
        (Self::Wav, "wav"),
        (Self::Parquet, "parquet"),
    ];

    /// What is looked for in folders, where a file of this format is one item.
    pub fn sought(self) -> Option<Sought> {
        match self {
            Self::Image => Some(Sought::Images),
            Self::CsvEach => Some(Sought::Tables),
            Self::Wav => Some(Sought::Sounds),
            _ => None,
        }
    }

    /// Whether a file that looks like `found` can be what this format says.
    fn includes(self, found: Self) -> bool {
        self == found || (found == Self::Csv && matches!(self, Self::CsvLong | Self::CsvWide | Self::CsvEach))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(format, _)| format == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(format, _)| *format);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("'{text}' is not a format; there are {}", names.join(", "))
        })
    }
}

/// A source of known format.
#[derive(Debug)]
pub enum Input {
    /// A folder with its images.
    Folder(PathBuf, Box<Listing>),
    /// A file.
    File(PathBuf, Format),
}

impl Input {
    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Folder(path, _) | Self::File(path, _) => path,
        }
    }
}

/// Finds out what the sources are, in the order given. A folder without images stands for the data files in it.
pub fn detect(sources: &[PathBuf], format: Option<Format>, limits: Limits) -> Result<Vec<Input>, ReadError> {
    let mut inputs = Vec::new();
    for source in sources {
        if is_image_in_store(source, format) {
            inputs.push(Input::File(source.clone(), Format::Image));
            continue;
        }
        let at = remote::at(source).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound if !remote::is(source) => {
                ReadError::file(source, "there is no such file or folder")
            }
            _ => ReadError::file(source, e),
        })?;
        if at == At::Folder {
            inputs.extend(folder_or_files(source, format, limits)?);
            continue;
        }
        let format = match format {
            Some(Format::Folder) => return Err(ReadError::file(source, "this is a file, not a folder (--format)")),
            // COIL may come as a folder or an archive; the names in it are the format.
            Some(Format::Coil) | None => of_file(source)?,
            // Files that are an item each may lie in an archive.
            Some(format @ (Format::CsvEach | Format::Wav)) => match guess(source)? {
                Some(archive @ (Format::Zip | Format::Tar)) => {
                    inputs.push(archived(source, archive, format, limits)?);
                    continue;
                }
                _ => format,
            },
            Some(format) => format,
        };
        inputs.push(Input::File(source.clone(), format));
    }
    drop_labels(&mut inputs, sources.len());
    if inputs.is_empty() {
        return Err(ReadError::Usage("only label files were given; name the files of images".into()));
    }
    Ok(inputs)
}

/// An archive of files of a format that was named.
fn archived(path: &Path, archive: Format, format: Format, limits: Limits) -> Result<Input, ReadError> {
    let input = match archive {
        Format::Zip => dtkc_source::Input::Zip(path.to_owned()),
        _ => dtkc_source::Input::Tar(path.to_owned()),
    };
    let listing = Listing::seek(input, format.sought().unwrap_or_default(), limits)?;
    match listing.is_empty() {
        true => Err(ReadError::file(path, listing.nothing())),
        false => Ok(Input::Folder(path.to_owned(), Box::new(listing))),
    }
}

/// The format of a file by its first bytes.
fn of_file(path: &Path) -> Result<Format, ReadError> {
    guess(path)?.ok_or_else(|| {
        let reason = match remote::at(path) {
            Ok(At::File(0)) => "the file is empty".to_owned(),
            _ => "the format is not one that can be imported (images, zip, tar, IDX, MAT, HDF5, NumPy, .ts, LIBSVM, CSV, WAV, Parquet); name it with --format if it is".to_owned(),
        };
        ReadError::file(path, reason)
    })
}

/// Whether an address has the name of an image: a pattern may stand for a million of them, and a request for each would be made
/// twice.
pub fn is_image_in_store(path: &Path, format: Option<Format>) -> bool {
    matches!(format, None | Some(Format::Image)) && remote::is(path) && rules::has_image_extension(path)
}

/// Whether a file in a store is read where it is. Others are wanted on the disk: their readers jump about in them, or read them
/// several times.
pub fn reads_in_place(path: &Path, format: Option<Format>) -> Result<bool, ReadError> {
    let in_place = |format: Format| {
        format.sought().is_some() || matches!(format, Format::Zip | Format::Tar | Format::Parquet | Format::Coil)
    };
    match format {
        Some(Format::Coil | Format::Folder) | None => Ok(guess(path)?.is_none_or(in_place)),
        Some(format) => Ok(in_place(format)),
    }
}

fn guess(path: &Path) -> Result<Option<Format>, ReadError> {
    let head = stream::head(path, HEAD)?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    Ok(Some(if zip::is_zip(&head) {
        if extension == "npz" || !npy::array_names(path)?.is_empty() { Format::Npz } else { Format::Zip }
    } else if is_hdf5(&head) {
        Format::Hdf5
    } else if npy::matches(&head) {
        Format::Npy
    } else if parquet::matches(&head) {
        Format::Parquet
    } else if mat::matches(&head) {
        Format::Mat
    } else if is_tar(&head) {
        Format::Tar
    } else if rules::is_image_head(&head) || rules::has_image_extension(path) {
        Format::Image
    } else if rules::is_sound_head(&head) || Sought::Sounds.has_extension(path) {
        Format::Wav
    } else if idx::matches(&head) {
        Format::Idx
    } else if ts::matches(&head) {
        Format::Ts
    } else if arabic::matches(&head) {
        Format::Arabic
    } else if libsvm::matches(&head) {
        Format::Libsvm
    } else if is_table(path) {
        Format::Csv
    } else {
        // The content says nothing, so the name may: a damaged file should be called that by its own reader.
        return Ok(match extension.as_str() {
            "h5" | "hdf5" => Some(Format::Hdf5),
            "mat" => Some(Format::Mat),
            "npy" => Some(Format::Npy),
            "npz" => Some(Format::Zip),
            "ts" => Some(Format::Ts),
            _ => match kind_by_name(path) {
                FileKind::Zip => Some(Format::Zip),
                FileKind::Tar => Some(Format::Tar),
                FileKind::Parquet => Some(Format::Parquet),
                FileKind::Image | FileKind::Other => None,
            },
        });
    }))
}

/// Whether the first bytes are those of an HDF5 file, possibly behind a user block of 512 bytes.
fn is_hdf5(head: &[u8]) -> bool {
    const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
    head.starts_with(SIGNATURE) || head.get(512..520) == Some(SIGNATURE)
}

/// Whether the name is that of a table, packed or not.
fn is_table(path: &Path) -> bool {
    let packed = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz") || e.eq_ignore_ascii_case("bz2"));
    let name = if packed { path.file_stem().map(Path::new) } else { Some(path) };
    name.is_some_and(|name| Sought::Tables.has_extension(name))
}

fn folder_or_files(folder: &Path, format: Option<Format>, limits: Limits) -> Result<Vec<Input>, ReadError> {
    let wants_images = matches!(format, None | Some(Format::Folder | Format::Coil | Format::Image));
    if wants_images {
        let listing = Listing::of(dtkc_source::Input::Folder(folder.to_owned()), limits)?;
        if !listing.is_empty() {
            return Ok(vec![Input::Folder(folder.to_owned(), Box::new(listing))]);
        }
        return match format {
            None => sequences_or_files(folder, &listing, limits),
            Some(_) => Err(ReadError::file(folder, listing.nothing())),
        };
    }
    if let Some(sought) = format.and_then(Format::sought) {
        let listing = Listing::seek(dtkc_source::Input::Folder(folder.to_owned()), sought, limits)?;
        return match listing.is_empty() {
            true => Err(ReadError::file(folder, listing.nothing())),
            false => Ok(vec![Input::Folder(folder.to_owned(), Box::new(listing))]),
        };
    }
    let files = data_files(folder, format)?;
    match (files.is_empty(), format) {
        (true, Some(format)) => Err(ReadError::file(folder, format!("there is no {format} file in this folder"))),
        _ => Ok(files),
    }
}

/// What a folder without images holds: sounds, data files, or tables that are one sequence each.
fn sequences_or_files(folder: &Path, images: &Listing, limits: Limits) -> Result<Vec<Input>, ReadError> {
    let seek = |sought| Listing::seek(dtkc_source::Input::Folder(folder.to_owned()), sought, limits);
    let sounds = seek(Sought::Sounds)?;
    if !sounds.is_empty() {
        return Ok(vec![Input::Folder(folder.to_owned(), Box::new(sounds))]);
    }
    let files = if remote::is(folder) { Vec::new() } else { data_files(folder, None)? };
    if !files.is_empty() {
        return Ok(files);
    }
    let tables = seek(Sought::Tables)?;
    match tables.is_empty() {
        true if remote::is(folder) => data_files(folder, None),
        true => Err(ReadError::file(folder, images.nothing())),
        false => Ok(vec![Input::Folder(folder.to_owned(), Box::new(tables))]),
    }
}

/// The data files of a folder, training data first. They must be parts of one dataset.
fn data_files(folder: &Path, format: Option<Format>) -> Result<Vec<Input>, ReadError> {
    if remote::is(folder) {
        let reason =
            "there are no images in this folder; name its data files themselves, with a pattern such as FOLDER/*.npy";
        return Err(ReadError::file(folder, reason));
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if path.is_file() && !hidden {
            files.push(path);
        }
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.sort_by(|a, b| splits::compare(&name(a), &name(b)));
    let mut inputs = Vec::new();
    for path in files {
        let found = guess(&path)?.and_then(|found| match format {
            // Tables in a folder are one sequence each, unless it was said what they are.
            None => Some(found).filter(|found| *found != Format::Csv),
            Some(wanted) => wanted.includes(found).then_some(wanted),
        });
        if let Some(found) = found {
            inputs.push(Input::File(path, found));
        }
    }
    drop_labels(&mut inputs, usize::MAX);
    let names: Vec<String> = inputs.iter().map(|input| name(input.path())).collect();
    let parts: Vec<String> = names.iter().map(|n| splits::without_split(n)).collect();
    if parts.windows(2).any(|pair| pair[0] != pair[1]) {
        let reason = format!(
            "there are {} different datasets in this folder ({}); name the one to import",
            names.len(),
            names.join(", ")
        );
        return Err(ReadError::Usage(format!("{}: {reason}", folder.display())));
    }
    Ok(inputs)
}

/// Label files are found from the images; as sources of their own they are nothing. A single one stays,
/// so that its reader can say so.
fn drop_labels(inputs: &mut Vec<Input>, given: usize) {
    if given <= 1 {
        return;
    }
    inputs.retain(|input| match input {
        Input::File(path, Format::Idx) => !stream::head(path, 4).is_ok_and(|h| idx::matches_labels(&h)),
        Input::File(path, Format::Npy) => !npy::is_labels(path),
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use dtkc_testing::files::idx;

    use super::*;

    fn find(sources: &[PathBuf]) -> Result<Vec<Input>, ReadError> {
        detect(sources, None, Limits::default())
    }

    fn names(inputs: &[Input]) -> Vec<String> {
        inputs.iter().map(|i| i.path().file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn formats_go_both_ways() {
        for (format, name) in Format::ALL {
            assert_eq!(name.parse(), Ok(format));
            assert_eq!(format.to_string(), name);
        }
        assert!("docx".parse::<Format>().is_err_and(|e| e.contains("idx")));
    }

    #[test]
    fn a_folder_of_data_files_is_joined_training_first() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("t10k-images-idx3-ubyte", idx(&[1, 1, 1], &[1])),
            ("t10k-labels-idx1-ubyte", idx(&[1], &[1])),
            ("train-images-idx3-ubyte", idx(&[1, 1, 1], &[1])),
            ("train-labels-idx1-ubyte", idx(&[1], &[1])),
            ("README", b"hello".to_vec()),
        ] {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let inputs = find(&[folder.path().to_owned()]).unwrap();
        assert_eq!(names(&inputs), ["train-images-idx3-ubyte", "t10k-images-idx3-ubyte"]);
        let both =
            find(&[folder.path().join("train-images-idx3-ubyte"), folder.path().join("train-labels-idx1-ubyte")]);
        assert_eq!(names(&both.unwrap()), ["train-images-idx3-ubyte"]);
    }

    #[test]
    fn different_datasets_are_not_joined() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Letters.ts"), "@problemName a\n@data\n1:2\n").unwrap();
        std::fs::write(folder.path().join("LettersTrimmed.ts"), "@problemName a\n@data\n1:2\n").unwrap();
        let error = find(&[folder.path().to_owned()]).unwrap_err();
        assert!(matches!(&error, ReadError::Usage(text) if text.contains("2 different datasets")), "{error}");
    }

    #[test]
    fn unknown_and_empty_things_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: PathBuf| find(&[path]).unwrap_err().to_string();
        assert!(error(folder.path().to_owned()).contains("the folder is empty"));
        std::fs::write(folder.path().join("notes.txt"), "hello").unwrap();
        assert!(error(folder.path().to_owned()).contains("no images found among 1 files"));
        assert!(error(folder.path().join("notes.txt")).contains("--format"));
        std::fs::write(folder.path().join("empty"), "").unwrap();
        assert!(error(folder.path().join("empty")).contains("the file is empty"));
        assert!(error(folder.path().join("gone")).contains("no such file or folder"));
    }
}
