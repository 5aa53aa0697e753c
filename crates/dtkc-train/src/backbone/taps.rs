//! Values inside a network that companion objectives look at.

use dtkc_infer::Features;
use dtkc_item::{FeatureShape, MOST_TAPS, TapShape, Taps};
use dtkc_onnx::{Backbone, TapReading};

use crate::error::TrainError;

/// How the named values are read; `run` gives any value of the network for two images.
pub(super) fn readings(
    backbone: &Backbone,
    name: &str,
    wanted: &[String],
    mut run: impl FnMut(&str) -> Result<Features, TrainError>,
) -> Result<Vec<TapReading>, TrainError> {
    if wanted.len() > MOST_TAPS {
        let text = format!("{} values are named with --backbone-taps, and at most {MOST_TAPS} are kept", wanted.len());
        return Err(TrainError::Setting(text));
    }
    let mut found: Vec<TapReading> = Vec::new();
    for tap in wanted {
        backbone.check_tap(tap).map_err(|error| TrainError::Setting(format!("{name}: {error}")))?;
        if found.iter().any(|reading| reading.name == *tap) {
            return Err(TrainError::Setting(format!("--backbone-taps names {tap:?} twice; name each value once")));
        }
        found.push(reading(backbone, (name, tap), &run(tap)?)?);
    }
    Ok(found)
}

fn reading(backbone: &Backbone, (name, tap): (&str, &str), raw: &Features) -> Result<TapReading, TrainError> {
    let wrong = |reason: &str| {
        let dims = raw.dims.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        Err(TrainError::Setting(format!(
            "{name}: {tap:?} has the shape [{dims}] for two images, {reason}; name another value with --backbone-taps"
        )))
    };
    let sizes = match raw.dims.as_slice() {
        [2, sizes @ ..] if [1, 3].contains(&sizes.len()) => sizes.to_vec(),
        [2, ..] => return wrong("and maps (4 dimensions) or a vector (2) are needed"),
        _ => return wrong("so the network takes one image at a time or mixes them"),
    };
    if sizes.contains(&0) {
        return wrong("which is empty");
    }
    if !raw.values.iter().all(|value| value.is_finite()) {
        return wrong("and values that are no numbers");
    }
    Ok(TapReading { name: tap.to_owned(), sizes, order: backbone.order_of(tap) })
}

/// The same in the shape of an item.
pub(super) fn shape_of(taps: &[TapReading]) -> Taps {
    let shapes: Vec<TapShape> = taps.iter().filter_map(TapReading::shape).collect();
    Taps::new(&shapes).unwrap_or_default()
}

/// What is kept, and the room that it takes, as a sentence.
pub(super) fn told(taps: &[TapReading], shape: FeatureShape, items: usize) -> String {
    let one = |tap: &TapReading| {
        let sizes = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        let kept = tap.shape().map(|shape| shape.sizes()).unwrap_or_default();
        format!("{:?} ({} as {})", tap.name, sizes(&tap.sizes), sizes(&kept))
    };
    let bytes = shape.taps.len() * size_of::<f32>();
    format!(
        "taps: {}; {} for each image, {} for all",
        taps.iter().map(one).collect::<Vec<_>>().join(", "),
        dtkc_human::bytes(bytes as u64),
        dtkc_human::bytes((bytes * items) as u64)
    )
}
