//! A zip of images. Nothing is extracted: entries are read one by one, in natural order, each within the
//! limits for one image, whatever the archive claims.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use dtkc_image::Limits;
use dtkc_item::ItemError;
use zip::ZipArchive;

use super::super::record::{Content, ContentForm, Description, Importer, Record, Sample, Sink};
use super::super::{ImportError, natural};
use super::names::{self, Labels, LabelsFrom};
use super::{is_wanted, sample, spread};

type Archive = ZipArchive<BufReader<fs_err::File>>;

/// An opened archive with the list of its images.
pub struct ZipSource {
    path: PathBuf,
    archive: Archive,
    entries: Vec<usize>,
    shown: Vec<String>,
    labels: Vec<Option<i64>>,
    limits: Limits,
    description: Description,
}

impl ZipSource {
    /// Opens an archive and lists its images from the directory at its end.
    pub fn open(path: &Path, from: LabelsFrom) -> Result<Self, ImportError> {
        let archive = open_archive(path)?;
        let mut found = Vec::new();
        for index in 0..archive.len() {
            let Ok(entry) = archive.by_index_data(index) else { continue };
            let name = String::from_utf8_lossy(entry.name_raw()).replace('\\', "/");
            if entry.is_file() && is_wanted(&name) {
                found.push((index, name));
            }
        }
        found.sort_by(|a, b| natural::compare(&a.1, &b.1));
        let (entries, shown): (Vec<usize>, Vec<String>) = found.into_iter().unzip();
        let Labels { classes, labels, coil, notes } = names::label(&shown, from);
        let description = Description {
            format: if coil { "COIL zip" } else { "zip of images" },
            form: ContentForm::Encoded,
            count: Some(entries.len() as u64),
            classes,
            paths: true,
            origin: path.file_name().map(|n| n.to_string_lossy().into_owned()),
            notes,
        };
        Ok(Self { path: path.to_owned(), archive, entries, shown, labels, limits: Limits::default(), description })
    }

    /// What the archive holds in all, for the message where there are no images.
    pub fn total(&self) -> usize {
        self.archive.len()
    }

    fn read(&mut self, place: usize) -> Content {
        let unreadable = |e: &dyn std::fmt::Display| {
            Content::Unreadable(ItemError::new("damaged", format_args!("the archive entry cannot be read ({e})")))
        };
        let limit = self.limits.max_bytes;
        let mut entry = match self.archive.by_index(self.entries[place]) {
            Ok(entry) => entry,
            Err(error) => return unreadable(&error),
        };
        let too_large = |size: u64| Content::Unreadable(ItemError::too_many_bytes(size, limit));
        if entry.size() > limit {
            return too_large(entry.size());
        }
        let mut bytes = Vec::with_capacity(entry.size() as usize);
        // The size in the directory may be a lie; what comes out of the archive is not.
        match (&mut entry).take(limit + 1).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > limit => too_large(bytes.len() as u64),
            Ok(_) => Content::Encoded(bytes),
            Err(error) => unreadable(&error),
        }
    }
}

fn open_archive(path: &Path) -> Result<Archive, ImportError> {
    let file = BufReader::new(fs_err::File::open(path)?);
    ZipArchive::new(file).map_err(|e| damaged(path, &e))
}

/// An archive that cannot be read.
pub fn damaged(path: &Path, error: &zip::result::ZipError) -> ImportError {
    ImportError::file(path, format!("the zip archive is cut off or damaged ({error}); copy or download it again"))
}

impl Importer for ZipSource {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn samples(&mut self, wanted: usize) -> Result<Vec<Sample>, ImportError> {
        let mut samples = Vec::new();
        for place in spread(self.entries.len(), wanted) {
            if let Content::Encoded(bytes) = self.read(place) {
                samples.extend(sample(&bytes, &self.limits));
            }
        }
        Ok(samples)
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ImportError> {
        for place in 0..self.entries.len() {
            let content = self.read(place);
            let path = Some(self.shown[place].clone());
            if sink(Record { content, label: self.labels[place], path })?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for ZipSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZipSource").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::ops::ControlFlow;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn archive(folder: &tempfile::TempDir, files: &[(&str, &[u8])]) -> PathBuf {
        let path = folder.path().join("a.zip");
        let mut zip = ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, bytes) in files {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
        path
    }

    fn records(source: &mut ZipSource) -> Vec<Record> {
        let mut records = Vec::new();
        source
            .stream(&mut |record| {
                records.push(record);
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        records
    }

    #[test]
    fn entries_come_in_natural_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = archive(&folder, &[("x/obj10__0.png", b"ten"), ("x/obj9__0.png", b"nine"), ("x/readme.txt", b"no")]);
        let mut source = ZipSource::open(&path, LabelsFrom::Detect).unwrap();
        let record = |bytes: &[u8], label, path: &str| Record {
            content: Content::Encoded(bytes.to_vec()),
            label: Some(label),
            path: Some(path.to_owned()),
        };
        assert_eq!(records(&mut source), [record(b"nine", 9, "x/obj9__0.png"), record(b"ten", 10, "x/obj10__0.png")]);
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let path = archive(&folder, &[("bomb.png", &vec![0; 1 << 20]), ("ok.png", b"ok")]);
        let mut source = ZipSource::open(&path, LabelsFrom::Detect).unwrap();
        source.limits.max_bytes = 1000;
        let records = records(&mut source);
        assert!(matches!(&records[0].content, Content::Unreadable(e) if e.code == "too_large"), "{records:?}");
        assert_eq!(records[1].content, Content::Encoded(b"ok".to_vec()));
    }

    #[test]
    fn a_cut_archive_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = archive(&folder, &[("a.png", &[7; 5000])]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = ZipSource::open(&path, LabelsFrom::Detect).unwrap_err().to_string();
        assert!(error.contains("a.zip") && error.contains("cut off or damaged"), "{error}");
    }
}
