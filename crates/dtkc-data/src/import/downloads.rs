//! Files in stores whose readers want them on the disk: they are brought beside the output, and go when the import ends.

use std::path::{Path, PathBuf};

use dtkc_files::{Lock, LockError};
use dtkc_formats::detect::{Format, is_image_in_store, reads_in_place};
use dtkc_formats::idx;
use dtkc_observe::Observer;
use dtkc_source::remote::{self, At};
use dtkc_store::work;

use super::{ImportError, ImportOptions};

/// The sources of an import, those that had to be brought among them.
pub struct Downloads {
    /// Paths on the disk, and addresses of what is read where it is.
    pub paths: Vec<PathBuf>,
    /// Folders in stores, and where their files are now.
    folders: Vec<(String, PathBuf)>,
    place: Option<Place>,
}

/// The folder of all downloads. It goes with this.
struct Place {
    folder: PathBuf,
    /// Dropped last.
    _lock: Option<Lock>,
}

impl Downloads {
    /// Brings what must be on the disk.
    pub fn bring(sources: Vec<PathBuf>, options: &ImportOptions, observer: &dyn Observer) -> Result<Self, ImportError> {
        let mut downloads = Self { paths: Vec::new(), folders: Vec::new(), place: None };
        for source in sources {
            let stays = !remote::is(&source)
                || is_image_in_store(&source, options.format)
                || !matches!(at(&source)?, At::File(_))
                || reads_in_place(&source, options.format)?;
            let path = if stays { source } else { downloads.one(&source, options, observer)? };
            downloads.paths.push(path);
        }
        Ok(downloads)
    }

    fn one(&mut self, source: &Path, options: &ImportOptions, observer: &dyn Observer) -> Result<PathBuf, ImportError> {
        let url = source.to_string_lossy();
        let target = self.fetch(&url, &options.out, observer)?;
        // Labels beside images belong to them.
        if matches!(options.format, None | Some(Format::Idx)) && is_idx(&target) {
            let names = idx::labels_names(source).into_iter().flatten();
            let labels = names.map(|name| name.to_string_lossy().into_owned());
            for labels in labels.filter(|labels| remote::is_text(labels)) {
                if matches!(remote::at(Path::new(&labels)), Ok(At::File(_))) {
                    self.fetch(&labels, &options.out, observer)?;
                    break;
                }
            }
        }
        Ok(target)
    }

    fn fetch(&mut self, url: &str, out: &Path, observer: &dyn Observer) -> Result<PathBuf, ImportError> {
        let target = self.folder_of(url, out)?.join(work::last_part(url));
        if target.exists() {
            return Ok(target);
        }
        let brought = dtkc_store::download(url, &target, observer);
        if observer.stop() {
            return Err(ImportError::Interrupted("nothing was written".into()));
        }
        brought.map_err(|error| ImportError::Fetch(format!("{}: {error}", remote::Shown(url))))?;
        Ok(target)
    }

    /// The local folder for the files of a folder in a store: they lie beside each other, as they did there.
    fn folder_of(&mut self, url: &str, out: &Path) -> Result<PathBuf, ImportError> {
        let parent = url.trim_end_matches('/').rsplit_once('/').map_or(url, |(parent, _)| parent).to_owned();
        if let Some((_, folder)) = self.folders.iter().find(|(known, _)| *known == parent) {
            return Ok(folder.clone());
        }
        let place = match &self.place {
            Some(place) => place,
            None => self.place.insert(Place::beside(out)?),
        };
        let folder = place.folder.join(self.folders.len().to_string()).join(work::last_part(&parent));
        fs_err::create_dir_all(&folder)?;
        self.folders.push((parent, folder.clone()));
        Ok(folder)
    }

    /// An error with the names that the user gave.
    pub fn as_given(&self, error: ImportError) -> ImportError {
        let named = |text: String| {
            self.folders.iter().fold(text, |text, (url, folder)| {
                text.replace(&folder.display().to_string(), &remote::Shown(url).to_string())
            })
        };
        match error {
            ImportError::Usage(text) => ImportError::Usage(named(text)),
            ImportError::Read(error) if !self.folders.is_empty() => ImportError::Fetch(named(error.to_string())),
            other => other,
        }
    }
}

fn at(source: &Path) -> Result<At, ImportError> {
    remote::at(source)
        .map_err(|error| ImportError::Fetch(format!("{}: {error}", remote::Shown(&source.to_string_lossy()))))
}

fn is_idx(path: &Path) -> bool {
    dtkc_formats::stream::head(path, 4).is_ok_and(|head| idx::matches(&head))
}

impl Place {
    /// A hidden folder beside the output. What a killed import left there goes.
    fn beside(out: &Path) -> Result<Self, ImportError> {
        let hidden = |end: &str| {
            let name = out.file_name().unwrap_or_default().to_string_lossy();
            out.with_file_name(format!(".{name}.{end}"))
        };
        let lock = match Lock::take_passing(&hidden("downloads-lock")) {
            Ok(lock) => Some(lock),
            Err(LockError::Held(holder)) => {
                let reason =
                    format!("another import downloads for it ({holder}); wait for it, or choose another --out");
                return Err(ImportError::file(out, reason));
            }
            Err(LockError::Io(_)) => None,
        };
        let folder = hidden("downloads");
        match std::fs::symlink_metadata(&folder) {
            Ok(meta) if meta.is_dir() => fs_err::remove_dir_all(&folder)?,
            Ok(_) => return Err(ImportError::file(&folder, "this is in the way of downloads; remove it")),
            Err(_) => {}
        }
        fs_err::create_dir(&folder)?;
        Ok(Self { folder, _lock: lock })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed goes with the next import of this output.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
