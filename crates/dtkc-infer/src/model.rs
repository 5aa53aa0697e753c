//! Model files: found by name or path, checked before anything runs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dtkc_item::{ImageSpec, ItemShape};
use dtkc_onnx::{ImageInput, InputSpec, Largest, Metadata, OnnxError, OutlierInfo};

use crate::places::{files_in, program_folder, upwards};
use crate::session::SLICE_BYTES;
use crate::{InferError, Names, SequenceSpec, sequences};

/// A checked model: its bytes, what it says about itself, and the images it takes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ModelFile {
    name: String,
    path: Option<PathBuf>,
    bytes: Arc<[u8]>,
    metadata: Arc<Metadata>,
    largest: Largest,
}

impl ModelFile {
    /// Opens a model by path, or a bundled one by its name.
    ///
    /// What has a folder or the ending `.onnx` is a path. A word without either, as in `mnist`, is a name. It means
    /// `NAME.onnx` in the first of these folders that has it: the one in the environment variable `DTKC_MODELS`,
    /// `models` beside the program, and `models` in the program's folder, the current one, or one above them (the
    /// repository). When none has it, a file of that very name is tried. So no folder or file that happens to be
    /// called `mnist` hides the bundled model, and `./mnist` still means the file.
    pub fn open(name_or_path: impl AsRef<Path>) -> Result<Self, InferError> {
        let given = name_or_path.as_ref();
        let named = if is_name(given) { find_named(given) } else { None };
        let path = named.unwrap_or_else(|| given.to_owned());
        if path.is_dir() || !path.exists() {
            return Err(missing(given));
        }
        let mut model = Self::from_bytes(&path.display().to_string(), read_limited(&path)?)?;
        model.name = name_of(&path);
        model.path = Some(path);
        Ok(model)
    }

    /// A model from its bytes, under a name of the caller's choice.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Self, InferError> {
        let wrong = |error: OnnxError| InferError::Model { name: name.into(), error };
        let metadata = dtkc_onnx::read_metadata(&bytes).map_err(wrong)?;
        if let InputSpec::Image(ImageInput { filter, .. }) = &metadata.input
            && filter != dtkc_image::FILTER
        {
            let unknown = format!("images are to be prepared with the resize filter {filter:?}");
            return Err(wrong(OnnxError::Preparation(unknown)));
        }
        let largest = dtkc_onnx::largest_values(&bytes).map_err(wrong)?;
        let metadata = Arc::new(metadata);
        Ok(Self { name: name.into(), path: None, bytes: bytes.into(), metadata, largest })
    }

    /// The same file with other content: what it is called and where it lies stay.
    pub fn with_bytes(&self, bytes: Vec<u8>) -> Result<Self, InferError> {
        Ok(Self { name: self.name.clone(), path: self.path.clone(), ..Self::from_bytes(&self.name, bytes)? })
    }

    /// The bundled models that [`ModelFile::open`] finds, by name.
    pub fn bundled() -> Vec<String> {
        let files = folders().into_iter().flat_map(|folder| files_in(&folder)).filter(|path| ends_in_onnx(path));
        let mut names: Vec<String> = files.map(|path| name_of(&path)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The model's name: the file's name without its ending, unless it got another.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the model another name: that under which a service offers it.
    pub fn set_name(&mut self, name: &str) {
        self.name = name.into();
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

    /// What one item that the model takes looks like.
    pub fn shape(&self) -> ItemShape {
        self.metadata.input.shape()
    }

    /// The images that the model takes, and how any other image becomes one of them; `None` for sequences.
    pub fn image(&self) -> Option<ImageSpec> {
        self.metadata.input.image()
    }

    /// The sequences of up to `max_steps` steps that the model takes, fewer where a run would take too much memory; `None`
    /// for images.
    pub fn sequences(&self, max_steps: usize) -> Option<SequenceSpec> {
        self.shape().dim().map(|dim| SequenceSpec::new(dim, max_steps, self.largest))
    }

    /// Bytes that running one sequence of that length takes at most, beside the sequence itself.
    pub fn run_bytes(&self, steps: usize) -> u64 {
        sequences::run_bytes(self.largest, steps)
    }

    /// Bytes that running any batch of sequences of up to `max_steps` steps takes at most; 0 for images.
    pub fn worst_run(&self, max_steps: usize) -> u64 {
        let Some(spec) = self.sequences(max_steps) else { return 0 };
        self.run_bytes(spec.max_steps).max(sequences::VALUES_AT_ONCE * SLICE_BYTES as u64)
    }

    /// Number of clusters.
    pub fn clusters(&self) -> usize {
        self.metadata.k()
    }

    /// Width of the embedding.
    pub fn embedding_size(&self) -> usize {
        self.metadata.embedding_size
    }

    /// What the output `outlier` means; `None` where the model has none.
    pub fn outlier(&self) -> Option<OutlierInfo> {
        self.metadata.outlier
    }

    /// Numbers in the largest values inside the network.
    pub(crate) fn largest(&self) -> Largest {
        self.largest
    }

    /// Gives clusters other names than those in the file; the file itself is not changed.
    pub fn rename(&mut self, names: &Names) {
        names.apply(Arc::make_mut(&mut self.metadata));
    }
}

fn is_name(given: &Path) -> bool {
    // As text: as a path, `mnist/` is the same as `mnist`.
    let has_folder = given.to_string_lossy().contains(std::path::is_separator);
    !has_folder && !ends_in_onnx(given)
}

/// A file's name without its ending.
fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn ends_in_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "onnx")
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

fn missing(given: &Path) -> InferError {
    let bundled = ModelFile::bundled();
    let hint = if given.is_dir() {
        folder_hint(given)
    } else if !is_name(given) {
        "no such file".to_owned()
    } else if bundled.is_empty() {
        "no bundled models were found either; give the path of a .onnx file, or set DTKC_MODELS to their folder".into()
    } else {
        format!("give the path of a .onnx file, or one of the bundled models: {}", bundled.join(", "))
    };
    InferError::ModelMissing { name: given.display().to_string(), hint }
}

/// For a folder, such as that of a training run: the models in it.
fn folder_hint(folder: &Path) -> String {
    let models = files_in(folder).into_iter().filter(|path| ends_in_onnx(path));
    let models: Vec<String> = models.map(|path| path.display().to_string()).collect();
    match models.is_empty() {
        true => "this is a folder without a .onnx file; give the path of one".into(),
        false => format!("this is a folder; give the path of a file, as {}", models.join(" or ")),
    }
}

/// Reads a file up to the limit of a model's size and a byte more, by which a larger one is known: nothing else of it is ever
/// held in memory.
pub fn read_limited(path: &Path) -> Result<Vec<u8>, InferError> {
    let file = fs_err::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(dtkc_onnx::MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
