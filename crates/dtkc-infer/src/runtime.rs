//! Finding and opening the ONNX Runtime library.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ort::environment::Environment;

use crate::error::clause;
use crate::places::{files_in, program_folder, upwards};
use crate::{Device, InferError};

/// The opened ONNX Runtime library. A process can open one; asking again gives the same.
#[derive(Clone)]
pub struct Runtime {
    inner: Inner,
}

#[derive(Clone)]
enum Inner {
    Library {
        environment: Environment,
        path: PathBuf,
    },
    #[cfg(feature = "tract")]
    Tract,
}

static LOADED: Mutex<Option<(Environment, PathBuf)>> = Mutex::new(None);

impl Runtime {
    /// Opens ONNX Runtime. The first that is given or exists is taken, and an unusable one is an error:
    ///
    /// 1. `flag`, the library file or a folder that holds it;
    /// 2. the environment variable `ORT_DYLIB_PATH`, likewise;
    /// 3. beside the program, or in a folder `lib` there;
    /// 4. `.tools/onnxruntime` of the repository: in the program's folder, the current one, or one above them;
    /// 5. the system's library folders.
    pub fn find(flag: Option<&Path>) -> Result<Self, InferError> {
        let mut loaded = LOADED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let explicit = match flag {
            Some(path) => Some(path.to_owned()),
            None => std::env::var_os("ORT_DYLIB_PATH").filter(|value| !value.is_empty()).map(PathBuf::from),
        };
        let wanted = explicit.as_deref().map(library_at).transpose()?;
        if let Some((environment, path)) = &*loaded {
            return match wanted {
                Some(other) if flag.is_some() && !same(&other, path) => {
                    Err(InferError::RuntimeLoaded { path: path.clone() })
                }
                _ => Ok(Self::library(environment.clone(), path.clone())),
            };
        }
        let (environment, path) = match wanted {
            Some(path) => open(&path)?,
            None => search()?,
        };
        *loaded = Some((environment.clone(), path.clone()));
        Ok(Self::library(environment, path))
    }

    /// What `device` needs: [`Runtime::find`], except for tract, which needs no library.
    pub fn for_device(device: Device, flag: Option<&Path>) -> Result<Self, InferError> {
        match device {
            #[cfg(feature = "tract")]
            Device::Tract => Ok(Self { inner: Inner::Tract }),
            _ => Self::find(flag),
        }
    }

    /// The library's file.
    pub fn path(&self) -> Option<&Path> {
        match &self.inner {
            Inner::Library { path, .. } => Some(path),
            #[cfg(feature = "tract")]
            Inner::Tract => None,
        }
    }

    pub(crate) fn environment(&self) -> Option<&Environment> {
        match &self.inner {
            Inner::Library { environment, .. } => Some(environment),
            #[cfg(feature = "tract")]
            Inner::Tract => None,
        }
    }

    fn library(environment: Environment, path: PathBuf) -> Self {
        Self { inner: Inner::Library { environment, path } }
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("path", &self.path()).finish()
    }
}

fn same(a: &Path, b: &Path) -> bool {
    let resolve = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    resolve(a) == resolve(b)
}

/// The library that a flag or variable names: the file itself, or the one in that folder.
fn library_at(path: &Path) -> Result<PathBuf, InferError> {
    let unusable = |reason: &str| InferError::RuntimeUnusable { path: path.to_owned(), reason: reason.into() };
    if path.is_dir() {
        return in_folder(path).ok_or_else(|| unusable("the folder holds no libonnxruntime"));
    }
    if !path.exists() {
        return Err(unusable("there is no such file"));
    }
    // A relative path would be looked up beside the program.
    Ok(std::path::absolute(path)?)
}

/// `libonnxruntime.so`, `libonnxruntime.so.1.31.1`, `onnxruntime.dll`, .. in a folder.
fn in_folder(folder: &Path) -> Option<PathBuf> {
    files_in(folder).into_iter().find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_prefix(std::env::consts::DLL_PREFIX).unwrap_or(&name);
        let Some(rest) = stem.strip_prefix("onnxruntime") else { return false };
        rest.starts_with(std::env::consts::DLL_SUFFIX)
            || (rest.starts_with('.') && rest.ends_with(std::env::consts::DLL_SUFFIX))
    })
}

/// Places 3 to 5 of [`Runtime::find`].
fn search() -> Result<(Environment, PathBuf), InferError> {
    let beside = program_folder().into_iter().flat_map(|folder| [folder.join("lib"), folder]);
    let tools = upwards().into_iter().map(|folder| folder.join(".tools/onnxruntime"));
    if let Some(library) = beside.chain(tools).find_map(|folder| in_folder(&folder)) {
        return open(&library);
    }
    let name = format!("{}onnxruntime{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    open(Path::new(&name)).map_err(|_| InferError::RuntimeMissing {
        looked: "--onnxruntime, ORT_DYLIB_PATH, the program's folder, .tools/onnxruntime and the system's libraries"
            .into(),
    })
}

/// ONNX Runtime reports to its maker from the moment it is loaded: a database in the home folder, and uploads. The
/// builder's `with_telemetry(false)` comes too late for that; only this variable is read in time.
fn no_telemetry() {
    const NAME: &str = "ORT_DISABLE_TELEMETRY";
    if std::env::var_os(NAME).is_none() {
        // SAFETY: the library that reads variables behind Rust's back is not loaded yet.
        #[allow(unsafe_code)]
        unsafe {
            std::env::set_var(NAME, "1");
        }
    }
}

fn open(path: &Path) -> Result<(Environment, PathBuf), InferError> {
    let unusable = |reason: String| InferError::RuntimeUnusable { path: path.to_owned(), reason };
    no_telemetry();
    let builder = ort::init_from(path).map_err(|error| unusable(clause(&error)))?;
    let builder = builder.with_name("dtkc").with_telemetry(false);
    let environment = builder.build().map_err(|error| unusable(clause(&error)))?;
    environment.set_log_level(ort::logging::LogLevel::Error);
    Ok((environment, path.to_owned()))
}
