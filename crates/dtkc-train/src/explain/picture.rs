//! Maps as pictures: the image beside its map, red where pixels speak for the cluster and blue where they speak against it.

use dtkc_item::ImageShape;

/// What speaks for a cluster and against it, as SHAP colours it.
const FOR: [f32; 3] = [255.0, 0.0, 81.0];
const AGAINST: [f32; 3] = [0.0, 139.0, 251.0];
/// How dark the image is behind its map: enough to see where it is.
const SHADE: f32 = 0.25;
/// Share of a map's values that are within the colours; few large ones would leave the rest pale.
const WITHIN: f64 = 0.995;
/// A side that small pictures are enlarged to, pixel by pixel.
const SIDE: usize = 112;
/// White between the image and its map.
const GAP: usize = 4;

/// A picture in red, green and blue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Three bytes for each pixel, row by row.
    pub pixels: Vec<u8>,
}

impl Picture {
    fn white(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![255; width * height * 3] }
    }

    fn put(&mut self, row: usize, column: usize, color: [u8; 3]) {
        let place = (row * self.width + column) * 3;
        self.pixels[place..place + 3].copy_from_slice(&color);
    }

    /// Another picture laid over this one.
    fn lay(&mut self, top: usize, left: usize, other: &Self) {
        for row in 0..other.height {
            let to = ((top + row) * self.width + left) * 3;
            let from = row * other.width * 3;
            self.pixels[to..to + other.width * 3].copy_from_slice(&other.pixels[from..from + other.width * 3]);
        }
    }

    /// The bytes of a PNG file.
    pub fn png(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let (width, height) = (self.width as u32, self.height as u32);
        let kind = image::ExtendedColorType::Rgb8;
        image::write_buffer_with_format(&mut bytes, &self.pixels, width, height, kind, image::ImageFormat::Png)
            .map_err(std::io::Error::other)?;
        Ok(bytes.into_inner())
    }
}

/// The map over the pale image. Channels of the map are added.
pub fn tint(image: &[u8], map: &[f32], shape: ImageShape) -> Picture {
    let sums: Vec<f32> = map.chunks_exact(shape.channels.max(1)).map(|channels| channels.iter().sum()).collect();
    let reach = reach(&sums);
    enlarged(shape, |place| tinted(color(&image[place * shape.channels..][..shape.channels]), sums[place] / reach))
}

/// The image and, beside it, its map over the pale image.
pub fn overlay(image: &[u8], map: &[f32], shape: ImageShape) -> Picture {
    let plain = enlarged(shape, |place| color(&image[place * shape.channels..][..shape.channels]));
    let mut picture = Picture::white(2 * plain.width + GAP, plain.height);
    picture.lay(0, 0, &plain);
    picture.lay(0, plain.width + GAP, &tint(image, map, shape));
    picture
}

/// A picture of that shape, large enough to be seen, from the colour of every pixel.
fn enlarged(shape: ImageShape, color: impl Fn(usize) -> [u8; 3]) -> Picture {
    let factor = (SIDE / shape.height.max(shape.width).max(1)).max(1);
    let mut picture = Picture::white(shape.width * factor, shape.height * factor);
    for row in 0..picture.height {
        for column in 0..picture.width {
            picture.put(row, column, color(row / factor * shape.width + column / factor));
        }
    }
    picture
}

/// Pictures of one size in rows, with white between them.
pub fn sheet(pictures: &[Picture], columns: usize) -> Option<Picture> {
    let first = pictures.first()?;
    let columns = columns.clamp(1, pictures.len());
    let (step, rise) = (first.width + 3 * GAP, first.height + 3 * GAP);
    let mut all = Picture::white(columns * step, pictures.len().div_ceil(columns) * rise);
    for (number, picture) in pictures.iter().enumerate() {
        all.lay(number / columns * rise + GAP, number % columns * step + GAP, picture);
    }
    Some(all)
}

/// The size that gets the full colour.
fn reach(sums: &[f32]) -> f32 {
    let mut sizes: Vec<f32> = sums.iter().map(|sum| sum.abs()).collect();
    sizes.sort_unstable_by(f32::total_cmp);
    let last = sizes.len().saturating_sub(1);
    sizes.get((last as f64 * WITHIN).ceil() as usize).copied().unwrap_or(0.0).max(f32::MIN_POSITIVE)
}

fn color(channels: &[u8]) -> [u8; 3] {
    match *channels {
        [red, green, blue] => [red, green, blue],
        _ => [channels.first().copied().unwrap_or(0); 3],
    }
}

/// The pale gray of a pixel with as much colour as its share of the map, from -1 to 1.
fn tinted(color: [u8; 3], share: f32) -> [u8; 3] {
    let gray = color.iter().map(|&value| f32::from(value)).sum::<f32>() / 3.0;
    let pale = 255.0 - SHADE * (255.0 - gray);
    let (full, share) = (if share < 0.0 { AGAINST } else { FOR }, share.abs().min(1.0));
    full.map(|full| (pale + share * (full - pale)).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { height: 2, width: 3, channels: 1 };

    #[test]
    fn red_is_for_and_blue_against() {
        let picture = overlay(&[255; 6], &[1.0, -1.0, 0.0, 0.5, 0.0, 0.0], SHAPE);
        let (width, side) = (picture.width, (picture.width - GAP) / 2 / 3);
        let at = |row: usize, column: usize| {
            let place = (row * side * width + (width - GAP) / 2 + GAP + column * side) * 3;
            [picture.pixels[place], picture.pixels[place + 1], picture.pixels[place + 2]]
        };
        assert_eq!(at(0, 0), [255, 0, 81]);
        assert_eq!(at(0, 1), [0, 139, 251]);
        assert_eq!(at(0, 2), [255; 3]);
        assert_eq!(at(1, 0), [255, 128, 168], "half the colour");
        assert_eq!(picture.pixels[..3], [255; 3], "the image itself is on the left");
    }

    #[test]
    fn channels_are_added_and_nothing_has_no_colour() {
        let shape = ImageShape { height: 1, width: 2, channels: 3 };
        let one = overlay(&[9; 6], &[1.0, 1.0, -1.0, 0.0, 0.0, 0.0], shape);
        let other = overlay(&[9; 6], &[0.0, 1.0, 0.0, 1.0, 0.0, -1.0], shape);
        assert_eq!(one, other);
        assert_eq!(tinted([0; 3], 0.0), [191; 3]);
        assert_eq!(overlay(&[0; 6], &[0.0; 6], SHAPE).pixels.last(), Some(&191));
    }

    #[test]
    fn a_sheet_has_all_of_them() {
        let one = overlay(&[7; 6], &[0.0; 6], SHAPE);
        let all = vec![one.clone(); 5];
        let made = sheet(&all, 2).unwrap_or_else(|| Picture::white(0, 0));
        assert_eq!((made.width, made.height), (2 * (one.width + 3 * GAP), 3 * (one.height + 3 * GAP)));
        assert!(sheet(&[], 2).is_none());
    }
}
