//! Which pixels speak for a cluster: expected gradients, which is what SHAP's `GradientExplainer` computes.
//!
//! For an image `x`, background images `x'` and places `t` on the way between them,
//!
//! ```text
//! map = mean over draws of (x - x') * grad f_c(x' + t (x - x'))
//! ```
//!
//! where `f_c` is what the network says about cluster `c`. The map adds up to `f_c(x) - mean f_c(x')`
//! ([`Explanation::error`] is what it misses).
//!
//! Images are explained as the network sees them: scaled to 0..1 by their own minimum and maximum. The scaling itself is not
//! explained, and images between `x` and `x'` are not scaled again.
//!
//! | what | where |
//! |---|---|
//! | the network with slopes; which draws are taken | `network`, `draws` |
//! | images of datasets, folders and files | [`Pictures`] |
//! | maps as pictures and arrays | [`picture`], [`files`] |

mod arrays;
mod draws;
pub mod files;
mod network;
pub mod picture;
mod pictures;

use burn::tensor::{Tensor, TensorData};
use dtkc_item::ImageShape;
use dtkc_observe::Observer;
use dtkc_onnx::Network;
use serde::{Deserialize, Serialize};

pub use self::arrays::ArrayFormat;
pub use self::pictures::{Named, Pictures};

use self::draws::{Draw, draws};
use self::network::Runner;
use crate::device::DeviceName;
use crate::error::TrainError;

/// Bytes that a pass through the network may take.
const PASS_BYTES: usize = 128 << 20;
/// Copies of every value that a pass and its way back hold at most, in measured runs fewer.
const COPIES: usize = 4;
/// More rows in a pass make nothing faster.
const MOST_ROWS: usize = 256;
/// Bytes of background images, which are held as scaled values.
const BACKGROUND_BYTES: usize = 512 << 20;

/// What the network says about a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// Its probability, the output `probabilities` of the model file: what SHAP explains when it is given the file.
    #[default]
    Probability,
    /// What the softmax makes probabilities of; for Student's t, minus the logarithm of one and the squared distance to the
    /// centre. It does not level off where the network is sure.
    Score,
}

/// How maps are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Draws for each image.
    pub samples: usize,
    /// Seed of the draws.
    pub seed: u64,
    /// What is explained.
    pub output: Output,
    /// The cluster that is explained; `None` is the one that each image is assigned to.
    pub cluster: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { samples: 200, seed: 0, output: Output::default(), cluster: None }
    }
}

/// Why an image is in its cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The cluster that the image is assigned to.
    pub assigned: usize,
    /// The cluster that is explained.
    pub cluster: usize,
    /// `f_c` of the image.
    pub value: f64,
    /// Mean of `f_c` over the background.
    pub expected: f64,
    /// What every value of the image adds, `[height, width, channels]`.
    pub map: Vec<f32>,
}

impl Explanation {
    /// What the map adds up to.
    pub fn sum(&self) -> f64 {
        self.map.iter().map(|&value| f64::from(value)).sum()
    }

    /// By how much that misses the difference that it should explain.
    pub fn error(&self) -> f64 {
        self.sum() - (self.value - self.expected)
    }
}

/// Explains images of one network against one background.
pub struct Explainer {
    runner: Runner,
    shape: ImageShape,
    settings: Settings,
    /// Scaled images, one after the other.
    background: Vec<f32>,
    /// Mean over the background for each cluster.
    expected: Vec<f64>,
    rows: usize,
}

/// How many background images suit so many samples: a draw for each, unless memory says fewer.
pub fn backgrounds(shape: ImageShape, samples: usize) -> usize {
    samples.min(BACKGROUND_BYTES / (size_of::<f32>() * shape.len().max(1))).max(1)
}

/// The maps of `images` (pixels, one image after the other) against the images of `background`, in one go.
pub fn maps(
    network: &Network,
    background: &[u8],
    images: &[u8],
    settings: Settings,
    observer: &dyn Observer,
) -> Result<Vec<Explanation>, TrainError> {
    let explainer = Explainer::new(network, background, settings)?;
    let each = explainer.shape.len();
    observer.begin("explain", "images", Some((images.len() / each) as u64));
    let all = images.chunks_exact(each).enumerate().map(|(number, image)| explainer.explain(number, image, observer));
    let all = all.collect();
    observer.end();
    all
}

impl Explainer {
    /// Makes the network and the background ready. More than [`backgrounds`] images are left out.
    pub fn new(network: &Network, background: &[u8], settings: Settings) -> Result<Self, TrainError> {
        let runner = Runner::new(network, &DeviceName::CPU.open()?.autodiff())?;
        let clusters = network.clusters()?;
        if let Some(cluster) = settings.cluster.filter(|&cluster| cluster >= clusters) {
            let last = clusters - 1;
            return Err(TrainError::Setting(format!(
                "the model has no cluster {cluster}; its clusters are 0 to {last}"
            )));
        }
        if settings.samples == 0 {
            return Err(TrainError::Setting("--samples is 0; a map needs at least one draw".into()));
        }
        let shape = network.input.image().unwrap_or(ImageShape { height: 0, width: 0, channels: 0 });
        let count = (background.len() / shape.len()).min(backgrounds(shape, settings.samples));
        if count == 0 {
            return Err(TrainError::Mismatch("the background holds no image; name another with --background".into()));
        }
        let background = dtkc_views::scale_pixels(&background[..count * shape.len()], shape);
        let bytes = network.values()?.saturating_mul(COPIES * size_of::<f32>());
        let rows = (PASS_BYTES / bytes.max(1)).clamp(1, MOST_ROWS);
        let mut explainer = Self { runner, shape, settings, background, expected: vec![0.0; clusters], rows };
        explainer.expected = explainer.mean_over_background();
        Ok(explainer)
    }

    /// Explains one image; its number decides its draws.
    pub fn explain(&self, number: usize, image: &[u8], observer: &dyn Observer) -> Result<Explanation, TrainError> {
        let x = dtkc_views::scale_pixels(image, self.shape);
        let said = self.answers(&x);
        let assigned = (0..said.len()).rev().max_by(|&a, &b| said[a].total_cmp(&said[b])).unwrap_or(0);
        let cluster = self.settings.cluster.unwrap_or(assigned);
        let count = self.background.len() / self.shape.len();
        let all = draws(self.settings.seed, number, self.settings.samples, count);
        let mut sums = vec![0.0f64; x.len()];
        for some in all.chunks(self.rows) {
            if observer.stop() {
                return Err(TrainError::Stopped);
            }
            self.add_draws(&x, some, cluster, &mut sums)?;
        }
        observer.advance(1);
        let map = sums.iter().map(|sum| (sum / all.len() as f64) as f32).collect();
        Ok(Explanation { assigned, cluster, value: said[cluster], expected: self.expected[cluster], map })
    }

    /// Adds `(x - x') * grad f_c` of some draws to `sums`.
    fn add_draws(&self, x: &[f32], draws: &[Draw], cluster: usize, sums: &mut [f64]) -> Result<(), TrainError> {
        let each = x.len();
        let mut between = Vec::with_capacity(draws.len() * each);
        for draw in draws {
            between.extend(x.iter().zip(self.image(draw)).map(|(x, other)| other + draw.place * (x - other)));
        }
        let slopes = self.slopes(between, cluster)?;
        for (draw, slopes) in draws.iter().zip(slopes.chunks_exact(each)) {
            for (((sum, x), other), slope) in sums.iter_mut().zip(x).zip(self.image(draw)).zip(slopes) {
                *sum += f64::from((x - other) * slope);
            }
        }
        Ok(())
    }

    fn image(&self, draw: &Draw) -> &[f32] {
        &self.background[draw.background * self.shape.len()..][..self.shape.len()]
    }

    /// The slope of `f_c` at each of these scaled images. Rows of a batch do not know each other, so that the slope of the
    /// sum is that of each.
    fn slopes(&self, images: Vec<f32>, cluster: usize) -> Result<Vec<f32>, TrainError> {
        let images = self.runner.images(images).require_grad();
        let said = self.runner.forward(images.clone(), self.settings.output);
        let [count, clusters] = said.dims();
        let chosen: Vec<f32> = (0..count * clusters).map(|i| f32::from(u8::from(i % clusters == cluster))).collect();
        let chosen = Tensor::from_data(TensorData::new(chosen, [count, clusters]), &said.device());
        let gradients = (said * chosen).sum().backward();
        let missing = || TrainError::Mismatch("the network does not depend on its input".into());
        Ok(values(images.grad(&gradients).ok_or_else(missing)?))
    }

    /// `f` of one scaled image, or of several, for every cluster.
    fn answers(&self, images: &[f32]) -> Vec<f64> {
        let said = self.runner.forward(self.runner.images(images.to_vec()), self.settings.output);
        values(said.detach()).into_iter().map(f64::from).collect()
    }

    fn mean_over_background(&self) -> Vec<f64> {
        let (clusters, each) = (self.expected.len(), self.shape.len());
        let mut sums = vec![0.0; clusters];
        for images in self.background.chunks(self.rows * each) {
            for row in self.answers(images).chunks_exact(clusters) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
        let count = (self.background.len() / each) as f64;
        sums.into_iter().map(|sum| sum / count).collect()
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
