//! Features of a network that somebody else has trained, in place of pixels.
//!
//! | what | where |
//! |---|---|
//! | what the network takes and gives, found by running it | `inspect.rs` |
//! | values inside the network that companion objectives look at | `taps.rs` |
//! | what features were made of, kept with them | `recipe.rs` |
//! | images and views of them through the network, into a dataset file | `make.rs` |
//! | rows that are done, for whoever goes on after a stop | `rows.rs` |
//!
//! Views are made once, with the features: a network that takes a hundredth of a second for an image cannot be asked at every
//! step. A run that is trained on features knows nothing of images; export joins the two networks.

mod inspect;
mod make;
mod recipe;
mod rows;
mod taps;

use std::path::{Path, PathBuf};

use dtkc_dataset::Dataset;
use dtkc_files::Sources;
use dtkc_infer::Device;
use dtkc_observe::Observer;

use crate::error::TrainError;

pub use inspect::{Plan, inspect};
pub use make::make;
pub use recipe::{Recipe, graph_of};

/// A network of others and how it is to be used; what is `None` is found out.
#[derive(Debug, Clone, PartialEq)]
pub struct BackboneOptions {
    /// The ONNX file.
    pub network: PathBuf,
    /// The value that describes an image.
    pub layer: Option<String>,
    /// Values inside it that companion objectives look at.
    pub taps: Vec<String>,
    /// Rows and columns of the images that it gets.
    pub size: Option<[usize; 2]>,
    /// Taken away from pixels between 0 and 1, one number or one for each channel.
    pub mean: Option<Vec<f32>>,
    /// What is left is divided by it.
    pub deviation: Option<Vec<f32>>,
    /// Random views of each image.
    pub views: usize,
    /// What runs it.
    pub engine: Engine,
}

/// What runs a network of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Engine {
    /// The ONNX Runtime library; `None` looks in the usual places.
    pub onnxruntime: Option<PathBuf>,
    /// Where it runs.
    pub device: Device,
    /// Threads; 0 takes all cores.
    pub threads: usize,
}

/// Random views of each image, where nobody says how many.
pub const VIEWS: usize = 4;

/// The features of a set for a run: those of a former run where they are the same, else new ones, in the folder where the run
/// will be. `suit` refuses what the run could not use before anything is made.
pub fn features_for(
    run: &Path,
    data: &Path,
    named: Option<&Path>,
    options: &BackboneOptions,
    suit: impl FnOnce(&Plan) -> Result<(), TrainError>,
    observer: &dyn Observer,
) -> Result<PathBuf, TrainError> {
    let plan = inspect(data, options, observer)?;
    suit(&plan)?;
    let out = named.map_or_else(|| run.with_file_name(plan.file_name()), Path::to_owned);
    let inputs = Sources::of([data, options.network.as_path()]);
    inputs.refuse(&out).map_err(|refused| TrainError::Setting(refused.to_string()))?;
    if out.exists() {
        if Recipe::of(&Dataset::open(&out)?)? != plan.recipe {
            return Err(TrainError::Setting(format!(
                "{} holds other features than those asked for; name another file with --features, or remove it",
                out.display()
            )));
        }
        observer.say(&format!("the features in {} are used", out.display()));
        return Ok(out);
    }
    make(&plan, &out, observer)?;
    Ok(out)
}
