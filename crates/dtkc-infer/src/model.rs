//! Model files: found by name or path, checked before anything runs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dtkc_image::Shape;
use dtkc_onnx::{Metadata, OnnxError};

use crate::places::{files_in, program_folder, upwards};
use crate::{InferError, Names};

/// A checked model: its bytes, what it says about itself, and the images it takes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ModelFile {
    name: String,
    path: Option<PathBuf>,
    bytes: Arc<[u8]>,
    metadata: Arc<Metadata>,
    shape: Shape,
    largest_value: usize,
}

impl ModelFile {
    /// Opens a model by path, or a bundled one by its name.
    ///
    /// A name is a word without a folder or the ending `.onnx`, as in `mnist`. It means `NAME.onnx` in the first of
    /// these folders that has it: the one in the environment variable `DTKC_MODELS`, `models` beside the program,
    /// and `models` in the program's folder, the current one, or one above them (the repository). When none has
    /// it, a file of that very name is tried.
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Self, InferError> {
        let given = name_or_path.as_ref();
        let path =
            if is_name(given) { find_named(given).unwrap_or_else(|| given.to_owned()) } else { given.to_owned() };
        if !path.exists() {
            return Err(missing(given));
        }
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let bytes = read_limited(&path)?;
        let mut model = Self::from_bytes_as(&path.display().to_string(), bytes)?;
        model.name = name;
        model.path = Some(path);
        Ok(model)
    }

    /// A model from its bytes, under a name of the caller's choice.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, InferError> {
        Self::from_bytes_as(name, bytes)
    }

    /// The bundled models that [`ModelFile::open`] finds, by name.
    pub fn bundled() -> Vec<String> {
        let mut names: Vec<String> =
            folders().iter().flat_map(|folder| files_in(folder)).filter_map(model_name).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The model's name: the file's name without its ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file, when it came from one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The ONNX file's content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-256 of the content.
    pub fn fingerprint(&self) -> String {
        dtkc_onnx::fingerprint(&self.bytes)
    }

    /// What the model says about itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The images that the model takes, and how others are brought to that shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of clusters.
    pub fn clusters(&self) -> usize {
        self.metadata.k()
    }

    /// Width of the embedding.
    pub fn embedding_size(&self) -> usize {
        self.metadata.embedding_size
    }

    /// Numbers in the largest value inside the network, for one image.
    pub(crate) fn largest_value(&self) -> usize {
        self.largest_value
    }

    /// Gives clusters other names than those in the file; the file itself is not changed.
    pub fn rename(&mut self, names: &Names) {
        names.apply(Arc::make_mut(&mut self.metadata));
    }

    fn from_bytes_as(name: &str, bytes: Vec<u8>) -> Result<Self, InferError> {
        let wrong = |error: OnnxError| InferError::Model { name: name.into(), error };
        let metadata = dtkc_onnx::read_metadata(&bytes).map_err(wrong)?;
        let unknown = |what: String| InferError::Preparation { name: name.into(), what };
        let input = &metadata.input;
        if input.filter != dtkc_image::FILTER {
            return Err(unknown(format!("the resize filter {:?}", input.filter)));
        }
        let shape = Shape {
            height: input.height,
            width: input.width,
            color: input.color.parse().map_err(|_| unknown(format!("the colour mode {:?}", input.color)))?,
            resize: input.resize.parse().map_err(|_| unknown(format!("the resize rule {:?}", input.resize)))?,
        };
        let largest_value = dtkc_onnx::largest_value(&bytes).map_err(wrong)?;
        let metadata = Arc::new(metadata);
        Ok(Self { name: name.into(), path: None, bytes: bytes.into(), metadata, shape, largest_value })
    }
}

fn is_name(given: &Path) -> bool {
    given.components().count() == 1 && given.extension().is_none_or(|ending| ending != "onnx")
}

fn folders() -> Vec<PathBuf> {
    let variable = std::env::var_os("DTKC_MODELS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let beside = program_folder().map(|folder| folder.join("models"));
    let above = upwards().into_iter().map(|folder| folder.join("models"));
    variable.into_iter().chain(beside).chain(above).collect()
}

fn find_named(name: &Path) -> Option<PathBuf> {
    let mut file = name.as_os_str().to_owned();
    file.push(".onnx");
    folders().into_iter().map(|folder| folder.join(&file)).find(|path| path.is_file())
}

fn model_name(path: PathBuf) -> Option<String> {
    let ours = path.extension().is_some_and(|ending| ending == "onnx");
    ours.then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
}

fn missing(given: &Path) -> InferError {
    let bundled = ModelFile::bundled();
    let hint = if !is_name(given) {
        "no such file".to_owned()
    } else if bundled.is_empty() {
        "no bundled models were found either; give the path of a .onnx file, or set DTKC_MODELS to their folder".into()
    } else {
        format!("give the path of a .onnx file, or one of the bundled models: {}", bundled.join(", "))
    };
    InferError::ModelMissing { name: given.display().to_string(), hint }
}

/// Reads a file up to the limit of a model's size: nothing larger is ever held in memory.
fn read_limited(path: &Path) -> Result<Vec<u8>, InferError> {
    let file = fs_err::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(dtkc_onnx::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
