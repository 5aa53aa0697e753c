//! How large pictures may be so that all of them fit.

use super::encode::{Picture, PictureError, Pixels};
use super::tiles::{Tiles, TilesWriter};

/// Sides and qualities, the best first. Sides are whole blocks of JPEG, which pictures then do not share.
const STEPS: [(usize, u8); 13] = [
    (96, 85),
    (64, 85),
    (64, 70),
    (48, 70),
    (32, 80),
    (32, 60),
    (32, 40),
    (24, 60),
    (24, 40),
    (24, 25),
    (16, 60),
    (16, 35),
    (8, 50),
];

/// Size and quality of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// The longest side.
    pub side: usize,
    /// Quality as JPEG.
    pub quality: u8,
}

impl Fit {
    /// The best of them for `count` pictures in `budget` bytes, by how large a sample becomes; `None` where not even the worst
    /// fits. `sample` gives some of the pictures with a longest side; none is shown larger than `source`, its own longest side.
    pub fn find(
        count: usize,
        budget: usize,
        source: usize,
        mut sample: impl FnMut(usize) -> Vec<Pixels>,
    ) -> Result<Option<Self>, PictureError> {
        let mut made: Option<(usize, Vec<Pixels>)> = None;
        // A side above that of the source adds nothing, up to whole blocks.
        let useful = |side: usize| side < source.div_ceil(8) * 8 + 8 || side == 8;
        for (side, quality) in STEPS.into_iter().filter(|&(side, _)| useful(side)) {
            let own = side.min(source.max(1));
            if made.as_ref().is_none_or(|(made, _)| *made != own) {
                made = Some((own, sample(own)));
            }
            let fit = Self { side: own, quality };
            let Some((_, pictures)) = &made else { continue };
            if pictures.is_empty() || fit.bytes(pictures)? * count.div_ceil(pictures.len()) <= budget {
                return Ok(Some(fit));
            }
        }
        Ok(None)
    }

    /// What these pictures take, as text in a page.
    fn bytes(self, pictures: &[Pixels]) -> Result<usize, PictureError> {
        let mut writer = TilesWriter::new(self, &pictures[0]);
        for picture in pictures {
            writer.push(picture)?;
        }
        Ok(writer.finish()?.map_or(0, |tiles: Tiles| tiles.text_bytes()))
    }
}

/// Sides and qualities of single pictures, the best first. Each has a head of some 600 bytes of its own.
const FRAMES: [(usize, u8); 6] = [(160, 80), (112, 80), (96, 70), (72, 65), (48, 60), (32, 45)];

/// Size and kind of pictures that are files of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The longest side.
    pub side: usize,
    /// Quality as JPEG; `None` without loss.
    pub quality: Option<u8>,
}

impl Frame {
    /// The best for `count` pictures in `budget` bytes of text, by how large a sample becomes; the smallest where none fits. Drawings and
    /// pictures of few pixels are kept as they are where that fits.
    pub fn find(
        count: usize,
        budget: usize,
        (source, is_drawing): (usize, bool),
        mut sample: impl FnMut(usize) -> Vec<Pixels>,
    ) -> Result<Self, PictureError> {
        let sharp = (is_drawing || source <= 64).then_some(Self { side: source, quality: None });
        let jpeg = FRAMES.into_iter().map(|(side, quality)| Self { side: side.min(source), quality: Some(quality) });
        let mut best = Self { side: source, quality: None };
        for frame in sharp.into_iter().chain(jpeg) {
            best = frame;
            let pictures = sample(frame.side);
            let mut bytes = 0;
            for picture in &pictures {
                bytes += frame.picture(picture)?.bytes.len().div_ceil(3) * 4;
            }
            if bytes * count <= budget * pictures.len() {
                break;
            }
        }
        Ok(best)
    }

    /// Makes a picture of it.
    pub fn picture(self, pixels: &Pixels) -> Result<Picture, PictureError> {
        match self.quality {
            None => Picture::sharp(pixels),
            Some(quality) => Picture::small(pixels, quality),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn noise(side: usize) -> Vec<Pixels> {
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..64)
            .map(|_| Pixels {
                width: side,
                height: side,
                channels: 1,
                bytes: (0..side * side).map(|_| next()).collect(),
            })
            .collect()
    }

    #[test]
    fn fewer_bytes_make_smaller_pictures() {
        let best = |count: usize, budget: usize| Fit::find(count, budget, 28, noise).unwrap();
        assert_eq!(best(64, 10_000_000), Some(Fit { side: 28, quality: 80 }), "never larger than they are");
        let many = best(60_000, 8_000_000).unwrap();
        assert!(many.side < 28, "{many:?}");
        assert_eq!(best(60_000, 1000), None);
    }

    #[test]
    fn single_pictures_stay_sharp_where_there_is_room() {
        let best = |count: usize, source: usize| Frame::find(count, 2_500_000, (source, false), noise).unwrap();
        assert_eq!(best(400, 28), Frame { side: 28, quality: None });
        assert_eq!(best(30, 500), Frame { side: 160, quality: Some(80) });
        let many = best(1500, 500);
        assert!(many.side < 112, "{many:?}");
        assert_eq!(best(1_000_000, 500), Frame { side: 32, quality: Some(45) }, "never none");
    }
}
