//! Many small pictures of one size, as sheets that a page opens one by one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::encode::{PictureError, Pixels};
use super::fit::Fit;

/// Pictures in a row and in a column of a sheet.
const ACROSS: usize = 32;
/// JPEG's blocks: no two pictures share one.
const BLOCK: usize = 8;

/// Sheets of pictures, in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles {
    /// Columns of a picture.
    pub width: usize,
    /// Rows of a picture.
    pub height: usize,
    /// From one picture to the next, to the right and down.
    pub step: [usize; 2],
    /// Pictures in a row.
    pub across: usize,
    /// Pictures of a sheet.
    pub per_sheet: usize,
    /// JPEG files.
    pub sheets: Vec<Vec<u8>>,
}

impl Tiles {
    /// A sheet as text.
    pub fn text(&self, sheet: usize) -> String {
        self.sheets.get(sheet).map_or(String::new(), |bytes| STANDARD.encode(bytes))
    }

    /// What all sheets take as text.
    pub fn text_bytes(&self) -> usize {
        self.sheets.iter().map(|sheet| sheet.len().div_ceil(3) * 4).sum()
    }
}

/// Fills sheets one picture after the other; one sheet of pixels is held at a time.
#[derive(Debug)]
pub struct TilesWriter {
    quality: u8,
    channels: usize,
    held: usize,
    sheet: Vec<u8>,
    tiles: Tiles,
}

impl TilesWriter {
    /// For pictures of the size and the channels of `like`.
    pub fn new(fit: Fit, like: &Pixels) -> Self {
        let step = [like.width.div_ceil(BLOCK) * BLOCK, like.height.div_ceil(BLOCK) * BLOCK];
        let tiles = Tiles {
            width: like.width,
            height: like.height,
            step,
            across: ACROSS,
            per_sheet: ACROSS * ACROSS,
            sheets: Vec::new(),
        };
        Self { quality: fit.quality, channels: like.channels, held: 0, sheet: Vec::new(), tiles }
    }

    /// Adds a picture.
    pub fn push(&mut self, picture: &Pixels) -> Result<(), PictureError> {
        let Pixels { width, height, channels, ref bytes } = *picture;
        let is_like = (width, height, channels) == (self.tiles.width, self.tiles.height, self.channels);
        if !is_like || bytes.len() != width * height * channels {
            return Err(PictureError::Pixels { width, height, channels, bytes: bytes.len() });
        }
        let [right, down] = self.tiles.step;
        let line = ACROSS * right * channels;
        if self.held == 0 {
            self.sheet = vec![0; line * down * ACROSS];
        }
        let (row, column) = (self.held / ACROSS, self.held % ACROSS);
        for y in 0..down {
            // What fills up a block repeats the edge: a sharp change would cost bytes and blur the picture.
            let from = &bytes[y.min(height - 1) * width * channels..][..width * channels];
            let to = &mut self.sheet[(row * down + y) * line + column * right * channels..][..right * channels];
            to[..from.len()].copy_from_slice(from);
            let (done, rest) = to.split_at_mut(from.len());
            rest.chunks_exact_mut(channels).for_each(|pixel| pixel.copy_from_slice(&done[done.len() - channels..]));
        }
        self.held += 1;
        if self.held == ACROSS * ACROSS { self.close() } else { Ok(()) }
    }

    /// The sheets; `None` where there was no picture.
    pub fn finish(mut self) -> Result<Option<Tiles>, PictureError> {
        if self.held > 0 {
            self.close()?;
        }
        Ok((!self.tiles.sheets.is_empty()).then_some(self.tiles))
    }

    fn close(&mut self) -> Result<(), PictureError> {
        let [right, down] = self.tiles.step;
        let rows = self.held.div_ceil(ACROSS);
        let (width, height) = (ACROSS * right, rows * down);
        let mut bytes = std::mem::take(&mut self.sheet);
        bytes.truncate(width * height * self.channels);
        let sheet = Pixels { width, height, channels: self.channels, bytes };
        self.tiles.sheets.push(sheet.jpeg(self.quality)?);
        self.held = 0;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn picture(value: u8) -> Pixels {
        Pixels { width: 10, height: 6, channels: 1, bytes: vec![value; 60] }
    }

    #[test]
    fn every_picture_is_where_the_page_looks_for_it() {
        let mut writer = TilesWriter::new(Fit { side: 10, quality: 90 }, &picture(0));
        let value = |i: usize| (i * 37 % 256) as u8;
        (0..1100).for_each(|i| writer.push(&picture(value(i))).unwrap());
        let tiles = writer.finish().unwrap().unwrap();
        assert_eq!((tiles.sheets.len(), tiles.step, tiles.per_sheet), (2, [16, 8], 1024));
        let sheets: Vec<_> = tiles.sheets.iter().map(|s| image::load_from_memory(s).unwrap().to_luma8()).collect();
        for i in [0, 1, 31, 32, 1023, 1024, 1099] {
            let at = i % tiles.per_sheet;
            let (x, y) = (at % tiles.across * tiles.step[0] + 5, at / tiles.across * tiles.step[1] + 3);
            let seen = sheets[i / tiles.per_sheet].get_pixel(x as u32, y as u32)[0];
            assert!(seen.abs_diff(value(i)) < 6, "picture {i}: {seen} for {}", value(i));
        }
        assert_eq!(tiles.text_bytes(), tiles.text(0).len() + tiles.text(1).len());
    }

    #[test]
    fn pictures_of_another_size_are_refused() {
        let mut writer = TilesWriter::new(Fit { side: 10, quality: 90 }, &picture(0));
        assert!(writer.push(&Pixels { width: 6, height: 10, channels: 1, bytes: vec![0; 60] }).is_err());
        assert_eq!(writer.finish().unwrap(), None);
    }
}
