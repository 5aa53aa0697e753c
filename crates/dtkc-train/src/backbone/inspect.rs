//! What a network takes and gives.

use std::path::Path;

use dtkc_dataset::Dataset;
use dtkc_infer::{FeatureSession, Features, Runtime, SessionOptions, read_limited};
use dtkc_item::{FeatureShape, ImageShape};
use dtkc_observe::Observer;
use dtkc_onnx::{Backbone, Channels, Preparation, Reading, fingerprint};
use dtkc_views::AugmentConfig;

use super::{BackboneOptions, Engine, Recipe, taps};
use crate::error::TrainError;

/// What most networks of photographs were trained with (ImageNet).
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];
/// Most values of a vector: what a network that takes them may be given.
const MOST_VALUES: usize = 1 << 16;
/// Two runs of a network may differ by so much in a vector of the length 1.
const SAME: f32 = 1e-3;

/// Everything that is known before features are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What they are made of.
    pub recipe: Recipe,
    /// How many there will be.
    pub items: usize,
    /// What they look like.
    pub shape: FeatureShape,
    /// From pixels to features, as ONNX.
    pub graph: Vec<u8>,
    /// The same with what lies inside the network behind them; `None` where nothing of that is kept.
    pub(super) tapped: Option<Vec<u8>>,
    engine: Engine,
}

impl Plan {
    /// The name of their file, which tells these features from others.
    pub(super) fn file_name(&self) -> String {
        let stem = |name: &str| Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let data = stem(&self.recipe.images.to_string_lossy());
        format!("{data}.{}.{}.features.h5", stem(&self.recipe.network), &self.key()[..8])
    }

    /// What tells these features from others.
    pub(super) fn key(&self) -> String {
        let text = self.recipe.write().unwrap_or_default();
        fingerprint([text.as_bytes(), &self.graph].concat().as_slice())
    }

    /// Opens the graph for views of images.
    pub(super) fn session(&self) -> Result<FeatureSession, TrainError> {
        session(&self.graph, self.recipe.image, &self.engine)
    }

    /// Opens that for the images themselves, where it is another one.
    pub(super) fn tapped_session(&self) -> Result<Option<FeatureSession>, TrainError> {
        let open = |graph: &Vec<u8>| session(graph, self.recipe.image, &self.engine);
        self.tapped.as_ref().map(open).transpose()
    }
}

/// Finds out what the network takes and gives, and says so. Whatever cannot work is refused here.
pub fn inspect(data: &Path, options: &BackboneOptions, observer: &dyn Observer) -> Result<Plan, TrainError> {
    let dataset = Dataset::open(data)?;
    let image = dataset.require_images()?;
    let name = options.network.display().to_string();
    let about = |error: dtkc_onnx::OnnxError| TrainError::Setting(format!("{name}: {error}"));
    let bytes = read_limited(&options.network)?;
    let network_sha256 = fingerprint(&bytes);
    let backbone = Backbone::read(bytes).map_err(about)?;
    let (layer, why) = match &options.layer {
        Some(layer) => (layer.clone(), "as asked for"),
        None => backbone.layer().map_err(about)?,
    };
    let preparation = preparation(&backbone, image, options)?;
    let session_of = |graph: &[u8]| session(graph, image, &options.engine);
    let open = |reading: Reading| -> Result<(Vec<u8>, FeatureSession), TrainError> {
        let graph = backbone.prefix(&preparation, &layer, reading).map_err(about)?;
        let session = session_of(&graph)?;
        Ok((graph, session))
    };
    let run = |session: &mut FeatureSession, count: usize| {
        session.run(&noise(image, count)).map_err(|error| cannot_run(&name, &error, &preparation))
    };
    let raw = run(&mut open(Reading::Raw)?.1, 2)?;
    let reading = reading_of(&raw.dims, backbone.input().order, (&name, &layer))?;
    let (graph, mut session) = open(reading)?;
    let both = run(&mut session, 2)?;
    let dim = dim_of(&both, (&name, &layer))?;
    let one = run(&mut session, 1)?;
    // Not so for what is no number.
    let is_same = one.values.iter().zip(&both.values).all(|(a, b)| (a - b).abs() <= SAME);
    if !is_same {
        return Err(TrainError::Setting(format!(
            "{name}: an image's features change with the images beside it, or are not numbers; export the network for evaluation \
             (model.eval()), with a batch of any size"
        )));
    }
    let inside = taps::readings(&backbone, &name, &options.taps, |tap| {
        let graph = backbone.prefix(&preparation, tap, Reading::Raw).map_err(about)?;
        run(&mut session_of(&graph)?, 2)
    })?;
    let shape = FeatureShape { dim, views: options.views, taps: taps::shape_of(&inside) };
    let tapped = match inside.is_empty() {
        true => None,
        false => Some(backbone.prefix_with_taps(&preparation, &layer, reading, &inside).map_err(about)?),
    };
    let [height, width] = preparation.size;
    observer.say(&format!(
        "{name}: {}; images of {image} become {height} x {width}; features: {dim} values of {layer:?} ({why}){}",
        backbone.input(),
        match reading {
            Reading::Maps(_) => ", averaged over all places",
            Reading::FirstToken => ", of the first token",
            Reading::Raw | Reading::Vector => "",
        },
    ));
    if !inside.is_empty() {
        observer.say(&taps::told(&inside, shape, dataset.len()));
    }
    if options.mean.is_none() && !backbone.input().takes_bytes {
        observer.say(
            "pixels are scaled as ImageNet's mostly are; if the network was trained otherwise, give --backbone-mean and \
             --backbone-std",
        );
    }
    let recipe = Recipe {
        images: std::path::absolute(data)?,
        name: dataset.name().to_owned(),
        fingerprint: dataset.fingerprint()?,
        image,
        resize: dataset.resize(),
        network: options.network.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        network_sha256,
        layer,
        taps: options.taps.clone(),
        size: preparation.size,
        mean: preparation.mean,
        deviation: preparation.deviation,
        views: options.views,
        augment: AugmentConfig::mild(),
    };
    let items = dataset.len();
    Ok(Plan { recipe, items, shape, graph, tapped, engine: options.engine.clone() })
}

fn preparation(backbone: &Backbone, image: ImageShape, options: &BackboneOptions) -> Result<Preparation, TrainError> {
    let input = backbone.input();
    let own = [image.height, image.width];
    let mut size = options.size.unwrap_or(own);
    for (side, fixed) in size.iter_mut().zip(input.size) {
        match (fixed, options.size) {
            (Some(fixed), Some(_)) if fixed != *side => {
                return Err(TrainError::Setting(format!(
                    "{} takes images of {fixed} pixels a side only; leave --backbone-size out",
                    options.network.display()
                )));
            }
            (Some(fixed), _) => *side = fixed,
            (None, _) => {}
        }
    }
    let several = |given: &Option<Vec<f32>>, usual: [f32; 3]| match given.as_deref() {
        Some([one]) => vec![*one; input.channels],
        Some(given) => given.to_vec(),
        None if input.channels == 1 => vec![usual.iter().sum::<f32>() / 3.0],
        None => usual.to_vec(),
    };
    let (mean, deviation) = (several(&options.mean, MEAN), several(&options.deviation, DEVIATION));
    Ok(Preparation { image, size, mean, deviation })
}

fn session(graph: &[u8], image: ImageShape, engine: &Engine) -> Result<FeatureSession, TrainError> {
    let runtime = Runtime::find(engine.onnxruntime.as_deref())?;
    let intra_threads = match engine.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    Ok(FeatureSession::new(
        &runtime,
        graph,
        image,
        &SessionOptions { intra_threads, device: engine.device, ..SessionOptions::default() },
    )?)
}

/// How a value of such sizes becomes one vector for each of two images.
fn reading_of(dims: &[usize], order: Channels, (name, layer): (&str, &str)) -> Result<Reading, TrainError> {
    let found = dims.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let wrong = |reason: &str| {
        Err(TrainError::Setting(format!(
            "{name}: {layer:?} has the shape [{found}] for two images, {reason}; name another value with --backbone-layer"
        )))
    };
    if dims.first() != Some(&2) {
        return wrong("so the network takes one image at a time or mixes them: export it with a batch of any size");
    }
    if dims.contains(&0) {
        return wrong("which is empty");
    }
    match dims.len() {
        2 => Ok(Reading::Vector),
        3 => Ok(Reading::FirstToken),
        4 => Ok(Reading::Maps(order)),
        _ => wrong("and a vector, a list of tokens or maps are needed"),
    }
}

fn dim_of(features: &Features, (name, layer): (&str, &str)) -> Result<usize, TrainError> {
    match features.dims.as_slice() {
        [2, dim] if *dim > MOST_VALUES => Err(TrainError::Setting(format!(
            "{name}: {layer:?} has {dim} values for an image, and at most {MOST_VALUES} can be clustered; name another value with \
             --backbone-layer"
        ))),
        [2, dim] if features.values.iter().all(|value| value.is_finite()) => Ok(*dim),
        _ => Err(TrainError::Setting(format!(
            "{name}: {layer:?} gives values that are no numbers; name another value with --backbone-layer, or other \
             --backbone-mean and --backbone-std"
        ))),
    }
}

fn cannot_run(name: &str, error: &dtkc_infer::InferError, preparation: &Preparation) -> TrainError {
    let [height, width] = preparation.size;
    TrainError::Setting(format!(
        "{name} cannot be run on images of {height} x {width} pixels ({error}); give the size it was made for with --backbone-size"
    ))
}

/// Pixels that are different everywhere, and always the same.
fn noise(image: ImageShape, count: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count * image.len()).map(next).collect()
}
