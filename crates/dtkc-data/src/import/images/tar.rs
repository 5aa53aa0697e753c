//! A tar of images, packed or not. It can only be read from front to back, so it is read twice: once for
//! the names and some headers, once for the images, in the order of the archive.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_image::Limits;
use dtkc_item::ItemError;
use tar::Archive;

use super::super::ImportError;
use super::super::record::{Content, ContentForm, Description, Importer, Record, Sample, Sink};
use super::super::stream;
use super::names::{self, Labels, LabelsFrom};
use super::{is_wanted, sample};

/// Headers are looked at while the archive is listed; more than these tell nothing new.
const SAMPLES: usize = 256;

/// Whether the first bytes (after unpacking) are those of a tar archive.
pub fn matches(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// A tar archive with the list of its images.
pub struct TarSource {
    path: PathBuf,
    labels: Vec<Option<i64>>,
    samples: Vec<Sample>,
    limits: Limits,
    description: Description,
}

impl TarSource {
    /// Lists the images of an archive.
    pub fn open(path: &Path, from: LabelsFrom) -> Result<Self, ImportError> {
        let limits = Limits::default();
        let mut shown = Vec::new();
        let mut samples = Vec::new();
        each_image(path, &limits, &mut |name, content| {
            if let Content::Encoded(bytes) = &content
                && samples.len() < SAMPLES
            {
                samples.extend(sample(bytes, &limits));
            }
            shown.push(name);
            Ok(ControlFlow::Continue(()))
        })?;
        let Labels { classes, labels, coil, notes } = names::label(&shown, from);
        let description = Description {
            format: if coil { "COIL tar" } else { "tar of images" },
            form: ContentForm::Encoded,
            count: Some(shown.len() as u64),
            classes,
            paths: true,
            origin: path.file_name().map(|n| n.to_string_lossy().into_owned()),
            notes,
        };
        Ok(Self { path: path.to_owned(), labels, samples, limits, description })
    }
}

impl Importer for TarSource {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn samples(&mut self, wanted: usize) -> Result<Vec<Sample>, ImportError> {
        Ok(self.samples.iter().copied().take(wanted).collect())
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        let mut index = 0;
        let labels = &self.labels;
        each_image(&self.path, &self.limits, &mut |name, content| {
            let label = labels.get(index).copied().flatten();
            index += 1;
            sink(Record { content, label, path: Some(name) })
        })
    }
}

type EachImage<'a> = dyn FnMut(String, Content) -> Result<ControlFlow<()>, ImportError> + 'a;

/// Calls `each` with the name and content of every image, in the order of the archive.
fn each_image(path: &Path, limits: &Limits, each: &mut EachImage<'_>) -> Result<(), ImportError> {
    let read = |e: std::io::Error| ImportError::read(path, std::io::Error::new(end_or(&e), e));
    let mut archive = Archive::new(stream::open(path)?);
    for entry in archive.entries().map_err(read)? {
        let mut entry = entry.map_err(read)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).replace('\\', "/");
        if !entry.header().entry_type().is_file() || !is_wanted(&name) {
            continue;
        }
        let size = entry.size();
        let content = if size > limits.max_bytes {
            Content::Unreadable(ItemError::too_many_bytes(size, limits.max_bytes))
        } else {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(read)?;
            if (bytes.len() as u64) < size {
                return Err(ImportError::read(path, std::io::ErrorKind::UnexpectedEof.into()));
            }
            Content::Encoded(bytes)
        };
        if each(name, content)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The tar reader reports an early end as just another error.
fn end_or(error: &std::io::Error) -> std::io::ErrorKind {
    let text = error.to_string();
    if text.contains("unexpected EOF") || text.contains("failed to read entire block") {
        std::io::ErrorKind::UnexpectedEof
    } else {
        error.kind()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, *bytes).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn images_are_read_packed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let plain = archive(&[("b/1.png", b"one"), ("b/notes.txt", b"no"), ("a/2.png", b"two")]);
        assert!(matches(&plain));
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(&plain).unwrap();
        for bytes in [plain, gz.finish().unwrap()] {
            let path = folder.path().join("a.tar");
            std::fs::write(&path, bytes).unwrap();
            let mut source = TarSource::open(&path, LabelsFrom::Folders).unwrap();
            assert_eq!(source.describe().count, Some(2));
            let mut records = Vec::new();
            source
                .stream(&mut |r| {
                    records.push((r.content, r.label, r.path.unwrap()));
                    Ok(ControlFlow::Continue(()))
                })
                .unwrap();
            let encoded = |b: &[u8]| Content::Encoded(b.to_vec());
            let expected =
                [(encoded(b"one"), Some(1), "b/1.png".to_owned()), (encoded(b"two"), Some(0), "a/2.png".to_owned())];
            assert_eq!(records, expected);
        }
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let bytes = archive(&[("1.png", &[1; 2000]), ("2.png", &[2; 2000])]);
        for end in [700, 1500, 3000, 4000] {
            std::fs::write(&path, &bytes[..end]).unwrap();
            let error = TarSource::open(&path, LabelsFrom::Detect).err().unwrap().to_string();
            assert!(error.contains("cut off"), "{end}: {error}");
        }
    }
}
