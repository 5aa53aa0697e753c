//! The shapes of values between layers, and what fits onto what.

use dtkc_item::ImageShape;

use crate::{GruOutput, GruWeights, Layer, Weights};

/// The shape of a value between two layers, without the batch dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Height, width and channels; in the graph the channels come first.
    Image(ImageShape),
    /// Features of a step; as many steps as the sequence has.
    Sequence(usize),
    /// So many steps of so many features each.
    Steps(usize, usize),
    /// Features.
    Vector(usize),
}

impl Size {
    /// The sizes that are known, batch and time left out.
    pub(crate) fn dims(self) -> Vec<usize> {
        match self {
            Size::Image(shape) => vec![shape.channels, shape.height, shape.width],
            Size::Sequence(features) | Size::Vector(features) => vec![features],
            Size::Steps(steps, features) => vec![steps, features],
        }
    }

    /// As part of a sentence.
    fn kind(self) -> &'static str {
        match self {
            Size::Image(_) => "an image",
            Size::Sequence(_) => "a sequence",
            Size::Steps(..) => "a resampled sequence",
            Size::Vector(_) => "a vector",
        }
    }
}

/// The size after `layer`, or what does not fit.
pub(crate) fn next_size(layer: &Layer, size: Size) -> Result<Size, String> {
    match (layer, size) {
        (Layer::Conv { weight, bias, padding }, Size::Image(ImageShape { height, width, channels })) => {
            let &[out, input, rows, columns] = weight.shape.as_slice() else {
                return Err(format!("its weight has {} dimensions instead of 4", weight.shape.len()));
            };
            check_weight(weight)?;
            check_vector("bias", bias, out)?;
            if input != channels {
                return Err(format!("its weight expects {input} channels and gets {channels}"));
            }
            let fit = |total: usize, kernel: usize| if kernel == 0 { None } else { (total + 1).checked_sub(kernel) };
            let height = fit(height + padding[0] + padding[2], rows).filter(|&h| h > 0);
            let width = fit(width + padding[1] + padding[3], columns).filter(|&w| w > 0);
            let (Some(height), Some(width)) = (height, width) else {
                return Err(format!("its {rows} x {columns} kernel is larger than what it gets; use larger images"));
            };
            Ok(Size::Image(ImageShape { height, width, channels: out }))
        }
        (
            Layer::BatchNorm { gamma, beta, mean, variance, epsilon },
            Size::Image(ImageShape { channels, .. }) | Size::Vector(channels),
        ) => {
            for (name, values) in [("gamma", gamma), ("beta", beta), ("mean", mean), ("variance", variance)] {
                check_vector(name, values, channels)?;
            }
            if variance.iter().any(|v| v + epsilon <= 0.0) || !epsilon.is_finite() {
                return Err("its variance plus epsilon is not positive".into());
            }
            Ok(size)
        }
        (
            Layer::MaxPool { size } | Layer::AveragePool { size },
            Size::Image(ImageShape { height, width, channels }),
        ) => {
            if *size == 0 || height < *size || width < *size {
                return Err(format!("a {height} x {width} image cannot be pooled by {size}; use larger images"));
            }
            Ok(Size::Image(ImageShape { height: height / size, width: width / size, channels }))
        }
        (Layer::Standardize { mean, deviation }, Size::Sequence(dim) | Size::Vector(dim)) => {
            check_vector("mean", mean, dim)?;
            check_vector("deviation", deviation, dim)?;
            match deviation.iter().find(|&&value| value <= 0.0) {
                Some(value) => Err(format!("its deviation holds {value} and must be above 0")),
                None => Ok(size),
            }
        }
        (Layer::Gru { forward, backward, keep }, Size::Sequence(features)) => {
            let units = gru_units(forward, features).map_err(|reason| format!("forwards, {reason}"))?;
            let others = gru_units(backward, features).map_err(|reason| format!("backwards, {reason}"))?;
            if units != others {
                return Err(format!("it has {units} units forwards and {others} backwards"));
            }
            Ok(match keep {
                GruOutput::Steps => Size::Sequence(2 * units),
                GruOutput::Last => Size::Vector(2 * units),
            })
        }
        (Layer::Resample { steps }, Size::Sequence(features)) => match *steps {
            0 | 1 => Err(format!("{steps} steps are too few; use at least 2")),
            steps => Ok(Size::Steps(steps, features)),
        },
        (Layer::Flatten, Size::Image(shape)) => Ok(Size::Vector(shape.len())),
        (Layer::Flatten, Size::Steps(steps, features)) => Ok(Size::Vector(steps * features)),
        (Layer::Dense { weight, bias }, Size::Vector(features)) => {
            let &[input, out] = weight.shape.as_slice() else {
                return Err(format!("its weight has {} dimensions instead of 2", weight.shape.len()));
            };
            check_weight(weight)?;
            check_vector("bias", bias, out)?;
            if input != features {
                return Err(format!("its weight expects {input} features and gets {features}"));
            }
            Ok(Size::Vector(out))
        }
        (Layer::StudentT { centres }, Size::Vector(features)) => {
            let &[clusters, width] = centres.shape.as_slice() else {
                return Err(format!("its centres have {} dimensions instead of 2", centres.shape.len()));
            };
            check_weight(centres)?;
            if width != features {
                return Err(format!("its centres have {width} features and it gets {features}"));
            }
            Ok(Size::Vector(clusters))
        }
        (Layer::Relu | Layer::Tanh, size) => Ok(size),
        (Layer::Embedding | Layer::Softmax, size @ Size::Vector(_)) => Ok(size),
        (Layer::Conv { .. } | Layer::MaxPool { .. } | Layer::AveragePool { .. }, size) => {
            Err(format!("it needs an image and gets {}", size.kind()))
        }
        (Layer::Standardize { .. } | Layer::Gru { .. } | Layer::Resample { .. }, size) => {
            Err(format!("it needs a sequence and gets {}", size.kind()))
        }
        (Layer::Flatten, Size::Vector(_)) => Err("it needs an image or a resampled sequence and gets a vector".into()),
        (_, Size::Sequence(_)) => {
            Err("it needs a vector and gets a sequence; add a Gru that keeps the last state, or \
                                       Resample and Flatten, before it"
                .into())
        }
        (_, size) => Err(format!("it needs a vector and gets {}; add Flatten before it", size.kind())),
    }
}

/// The units of one direction, or what does not fit.
fn gru_units(weights: &GruWeights, features: usize) -> Result<usize, String> {
    let GruWeights { input, recurrent, input_bias, recurrent_bias } = weights;
    check_weight(input)?;
    check_weight(recurrent)?;
    let (&[rows, width], &[gates, units]) = (input.shape.as_slice(), recurrent.shape.as_slice()) else {
        return Err("its weights do not have 2 dimensions each".into());
    };
    if width != features {
        return Err(format!("its weight expects {width} features and gets {features}"));
    }
    if units.checked_mul(3) != Some(gates) || rows != gates {
        return Err(format!("its weights of shape {:?} and {:?} are not those of a GRU", input.shape, recurrent.shape));
    }
    check_vector("input bias", input_bias, gates)?;
    check_vector("recurrent bias", recurrent_bias, gates)?;
    Ok(units)
}

fn check_weight(weight: &Weights) -> Result<(), String> {
    let expected: usize = weight.shape.iter().product();
    if expected == 0 || expected != weight.data.len() {
        return Err(format!("its weight of shape {:?} has {} values", weight.shape, weight.data.len()));
    }
    check_finite("weight", &weight.data)
}

fn check_vector(name: &str, values: &[f32], expected: usize) -> Result<(), String> {
    if values.len() != expected {
        return Err(format!("its {name} has {} values instead of {expected}", values.len()));
    }
    check_finite(name, values)
}

fn check_finite(name: &str, values: &[f32]) -> Result<(), String> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(value) => Err(format!("its {name} holds {value}; training went wrong, so use an earlier checkpoint")),
        None => Ok(()),
    }
}
