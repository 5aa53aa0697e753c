//! What clustering networks are built from, in burn: layers, kernels, losses, random views.
//!
//! *Deep Image Clustering with Tensor Kernels and Unsupervised Companion Objectives* (Trosten, Kampffmeyer,
//! Jenssen; arXiv 2001.07026): a convolutional network and a softmax are trained end to end from random weights so
//! that the memberships they give separate the images in kernel space, on the embedding and, through companion
//! objectives, on the output of every block.
//!
//! | part | where |
//! |---|---|
//! | network: configuration, check, forward, state, frozen form | [`ModelConfig`], [`ValidModel`], [`Model`] |
//! | autoencoders, dense layers in a row | [`Autoencoder`], [`Mlp`] |
//! | kernels and their bandwidth | [`kernel`] |
//! | loss terms, companion objectives | [`loss`] |
//! | random views of images | [`augment`] |
//! | sequences: their scaling, recurrent layers | [`Sequences`], [`StepMoments`], [`RecurrentConfig`] |
//!
//! Images are channels-last (`[n, height, width, channels]`) from the dataset to the flattened features.

pub mod augment;
mod autoencoder;
mod config;
mod error;
pub mod kernel;
pub mod loss;
mod mlp;
mod model;
mod pixels;
mod random;
mod reduce;
mod sequences;

pub use augment::{AugmentConfig, Augmenter, Fill, SequenceAugmenter, SequenceViewConfig};
pub use autoencoder::{Autoencoder, AutoencoderConfig, AutoencoderKind, Encoded, Norms, Tapped, mean_square_error};
pub use config::{BlockConfig, Init, ModelConfig, NetworkConfig, Padding, Tap, ValidModel};
pub use dtkc_views::{scale_pixels, scale_pixels_into};
pub use error::{ConfigError, StateError};
pub use loss::{CompanionKernel, Companions, LossConfig, LossTerms, LossValues, Moment, Objective, Views};
pub use mlp::{End, Mlp, MlpOutput};
pub use model::{
    BatchStatistics, Input, Model, NamedArray, Output, OutputLayer, RecurrentConfig, StatisticsPass, Values,
};
pub use pixels::scale_images;
pub use sequences::{Sequences, StepMoments, scale_steps};
