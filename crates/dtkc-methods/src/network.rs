//! What the size of images decides about a network.

use dtkc_core::NetworkConfig;
use dtkc_item::{ImageShape, ItemShape};

/// Sets the detail in which images are looked at where it was left open. Says so where they are reduced.
pub(crate) fn suit(network: &mut NetworkConfig, input: ItemShape) -> Option<String> {
    let ImageShape { height, width, .. } = input.image()?;
    network.reduce = network.reduce_for(input.image()?);
    let reduce = network.reduce;
    let finer = match reduce {
        0 | 1 => return None,
        _ => reduce / 2,
    };
    let (rows, columns) = (height / reduce, width / reduce);
    Some(format!(
        "images of {height}x{width} are looked at in {rows}x{columns} (network.reduce = {reduce}); --set \
         network.reduce={finer} shows the network more detail"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn image(height: usize, width: usize) -> ItemShape {
        ItemShape::Image(ImageShape { height, width, channels: 3 })
    }

    #[test]
    fn the_sentence_names_both_sizes_and_what_shows_more() {
        let mut open = NetworkConfig { reduce: 0, ..NetworkConfig::default() };
        assert_eq!(
            suit(&mut open, image(256, 260)).unwrap(),
            "images of 256x260 are looked at in 32x32 (network.reduce = 8); --set network.reduce=4 shows the network more \
             detail"
        );
        assert_eq!(open.reduce, 8);
        // What is set stays.
        assert!(suit(&mut open, image(512, 512)).unwrap().contains("64x64"));
    }

    #[test]
    fn small_images_and_sequences_are_no_sentence_worth() {
        let mut open = NetworkConfig { reduce: 0, ..NetworkConfig::default() };
        assert_eq!(suit(&mut open, ItemShape::Sequence { dim: 3 }), None);
        assert_eq!((suit(&mut open, image(28, 28)), open.reduce), (None, 1));
    }
}
