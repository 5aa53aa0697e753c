//! Eight bits and one or three channels from whatever was decoded, in place.

use dtkc_item::Color;
use image::ColorType;

/// Pixels that are converted together: small arrays on the stack let the compiler use vector code, which
/// reading and writing one buffer in the same loop would not.
const BLOCK: usize = 64;

/// What is seen of a drawing that is nearly white everywhere: the mean distance from white, of 255, below which it is laid
/// over black.
const FAINT: u64 = 32;

/// Converts the decoded buffer in place and cuts it to its new length: 16 bits and floats to 8 bits, alpha over a
/// background that keeps the drawing visible ([`background`]), colour to gray where `wanted` is gray. Gray stays gray. `None` for an unknown pixel type.
pub fn reduce(buffer: &mut Vec<u8>, kind: ColorType, wanted: Color) -> Option<Color> {
    let bytes = match kind {
        ColorType::L8 | ColorType::La8 | ColorType::Rgb8 | ColorType::Rgba8 => 1,
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16 => 2,
        ColorType::Rgb32F | ColorType::Rgba32F => 4,
        _ => return None,
    };
    match bytes {
        2 => shrink::<2, 1>(buffer, |v| [from_u16(u16::from_ne_bytes(v))]),
        4 => shrink::<4, 1>(buffer, |v| [from_f32(f32::from_ne_bytes(v))]),
        _ => {}
    }
    match (kind.channel_count(), wanted) {
        (1, _) => {}
        (2, _) => {
            let ground = background(buffer.as_chunks::<2>().0.iter().map(|&[v, a]| (v, a)));
            shrink::<2, 1>(buffer, |[v, a]| [over(ground, v, a)]);
        }
        (3, Color::Gray) => shrink::<3, 1>(buffer, |[r, g, b]| [luma(r, g, b)]),
        (3, Color::Rgb) => {}
        (_, Color::Gray) => {
            let ground = background_of(buffer);
            shrink::<4, 1>(buffer, |[r, g, b, a]| [luma(over(ground, r, a), over(ground, g, a), over(ground, b, a))])
        }
        (_, Color::Rgb) => lay(buffer),
    }
    Some(if kind.channel_count() < 3 { Color::Gray } else { wanted })
}

/// RGBA pixels to RGB ones, as a file with transparency would be read.
pub fn flatten(mut rgba: Vec<u8>) -> Vec<u8> {
    lay(&mut rgba);
    rgba
}

fn lay(rgba: &mut Vec<u8>) {
    let ground = background_of(rgba);
    shrink::<4, 3>(rgba, |[r, g, b, a]| [over(ground, r, a), over(ground, g, a), over(ground, b, a)]);
}

fn background_of(rgba: &[u8]) -> u8 {
    background(rgba.as_chunks::<4>().0.iter().map(|&[r, g, b, a]| (luma(r, g, b), a)))
}

/// What transparency is laid over: white, or black where the visible part is nearly white, so that white strokes do not
/// vanish. Pixels, as gray value and opacity, count as much as they are opaque.
fn background(pixels: impl Iterator<Item = (u8, u8)>) -> u8 {
    let (mut opacity, mut distance) = (0, 0);
    for (value, alpha) in pixels {
        opacity += u64::from(alpha);
        distance += u64::from(alpha) * u64::from(255 - value);
    }
    if opacity > 0 && distance < FAINT * opacity { 0 } else { 255 }
}

/// RGB pixels to gray ones, into another buffer.
pub fn rgb_to_gray(rgb: &[u8], gray: &mut Vec<u8>) {
    gray.clear();
    gray.extend(rgb.as_chunks::<3>().0.iter().map(|&[r, g, b]| luma(r, g, b)));
}

/// Pillow's `L`: ITU-R 601 weights in 16-bit fixed point, rounded.
fn luma(r: u8, g: u8, b: u8) -> u8 {
    ((19595 * u32::from(r) + 38470 * u32::from(g) + 7471 * u32::from(b) + 32768) >> 16) as u8
}

/// `v` with opacity `a` over `ground`, rounded.
fn over(ground: u8, v: u8, a: u8) -> u8 {
    let (ground, v, a) = (u32::from(ground), u32::from(v), u32::from(a));
    let sum = v * a + ground * (255 - a) + 128;
    // The exact quotient sum / 255 for every sum that can occur, without a division.
    ((sum + (sum >> 8)) >> 8) as u8
}

fn from_u16(v: u16) -> u8 {
    ((u32::from(v) + 128) / 257) as u8
}

fn from_f32(v: f32) -> u8 {
    // A NaN becomes 0.
    (v.clamp(0.0, 1.0) * 255.0 + 0.5) as u8
}

/// Replaces every group of `FROM` bytes by `TO` bytes, `TO < FROM`, from the front to the back.
fn shrink<const FROM: usize, const TO: usize>(buffer: &mut Vec<u8>, convert: impl Fn([u8; FROM]) -> [u8; TO]) {
    let pixels = buffer.len() / FROM;
    let mut input = [[0; FROM]; BLOCK];
    let mut output = [[0; TO]; BLOCK];
    let mut done = 0;
    while done < pixels {
        let n = BLOCK.min(pixels - done);
        input.as_flattened_mut()[..n * FROM].copy_from_slice(&buffer[done * FROM..(done + n) * FROM]);
        for (to, from) in output.iter_mut().zip(&input) {
            *to = convert(*from);
        }
        buffer[done * TO..(done + n) * TO].copy_from_slice(&output.as_flattened()[..n * TO]);
        done += n;
    }
    buffer.truncate(pixels * TO);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn gray_follows_pillow() {
        // Image.new("RGB", (1, 1), c).convert("L").getpixel((0, 0)) for each c, Pillow 12.
        let cases =
            [([255, 0, 0], 76), ([0, 255, 0], 150), ([0, 0, 255], 29), ([255, 255, 255], 255), ([12, 200, 77], 130)];
        for ([r, g, b], expected) in cases {
            assert_eq!(luma(r, g, b), expected, "{r} {g} {b}");
        }
    }

    #[test]
    fn alpha_is_laid_over_the_background_exactly() {
        for ground in [0, 255u8] {
            for v in 0..=255u8 {
                for a in 0..=255u8 {
                    let exact = (f64::from(v) * f64::from(a) + f64::from(ground) * (255.0 - f64::from(a))) / 255.0;
                    assert_eq!(f64::from(over(ground, v, a)), (exact + 0.5).floor(), "{ground} {v} {a}");
                }
            }
        }
    }

    #[test]
    fn a_drawing_on_transparency_stays_visible() {
        // A stroke in the middle of nothing, with a soft edge; what lies under nothing does not matter.
        let stroke = |v: u8, hidden: u8| [[hidden, hidden, hidden, 0], [v, v, v, 100], [v, v, v, 255]].concat();
        for hidden in [0, 255] {
            assert_eq!(flatten(stroke(255, hidden)), [0, 0, 0, 100, 100, 100, 255, 255, 255]);
            assert_eq!(flatten(stroke(240, hidden))[..3], [0; 3]);
            assert_eq!(flatten(stroke(0, hidden)), [255, 255, 255, 155, 155, 155, 0, 0, 0]);
            assert_eq!(flatten(stroke(128, hidden))[..3], [255; 3]);
        }
        assert_eq!(flatten(vec![9, 9, 9, 0]), [255; 3]);
        for (kind, mut buffer, expected) in [
            (ColorType::La8, vec![0, 0, 255, 255], [0, 255]),
            (ColorType::La8, vec![255, 0, 0, 255], [255, 0]),
            (ColorType::Rgba8, vec![0, 0, 0, 0, 255, 255, 255, 255], [0, 255]),
        ] {
            reduce(&mut buffer, kind, Color::Gray).unwrap();
            assert_eq!(buffer, expected, "{kind:?}");
        }
    }

    #[test]
    fn sixteen_bits_and_floats_are_rounded() {
        for v in 0..=255u8 {
            assert_eq!(from_u16(u16::from(v) * 257), v);
            assert_eq!(from_f32(f32::from(v) / 255.0), v);
        }
        assert_eq!((from_u16(128), from_u16(129), from_u16(u16::MAX)), (0, 1, 255));
        assert_eq!((from_f32(-1.0), from_f32(2.0), from_f32(f32::NAN)), (0, 255, 0));
    }

    #[test]
    fn every_pixel_type_is_reduced_beyond_one_block() {
        let n = 3 * BLOCK + 5;
        let kinds = [
            ColorType::L8,
            ColorType::La8,
            ColorType::Rgb8,
            ColorType::Rgba8,
            ColorType::L16,
            ColorType::La16,
            ColorType::Rgb16,
            ColorType::Rgba16,
            ColorType::Rgb32F,
            ColorType::Rgba32F,
        ];
        for kind in kinds {
            for wanted in [Color::Gray, Color::Rgb] {
                // White, opaque: every route must give white.
                let mut buffer = match kind {
                    ColorType::Rgb32F | ColorType::Rgba32F => {
                        1f32.to_ne_bytes().repeat(n * usize::from(kind.channel_count()))
                    }
                    _ => vec![255; n * usize::from(kind.bytes_per_pixel())],
                };
                let color = reduce(&mut buffer, kind, wanted).unwrap();
                assert_eq!(buffer, vec![255; n * color.channels()], "{kind:?} {wanted}");
            }
        }
    }

    #[test]
    fn the_order_of_pixels_is_kept() {
        let mut rgba: Vec<u8> = (0..=254u8).flat_map(|v| [v, 255 - v, v / 2, 255]).collect();
        let expected: Vec<u8> = (0..=254u8).flat_map(|v| [v, 255 - v, v / 2]).collect();
        reduce(&mut rgba, ColorType::Rgba8, Color::Rgb).unwrap();
        assert_eq!(rgba, expected);
        let mut gray = Vec::new();
        rgb_to_gray(&expected, &mut gray);
        reduce(&mut rgba, ColorType::Rgb8, Color::Gray).unwrap();
        assert_eq!(rgba, gray);
    }
}
