//! What `scripts/bench-label.sh` labels: a model of the paper's size with random weights (for a repository without a
//! trained one), a dataset, a folder of PNG files.
//!
//!     cargo run --release -p dtkc-label --example bench_label -- model FILE.onnx
//!     cargo run --release -p dtkc-label --example bench_label -- dataset FILE.h5 COUNT
//!     cargo run --release -p dtkc-label --example bench_label -- pngs FOLDER COUNT SIDE

use std::error::Error;
use std::path::Path;

use dtkc_dataset::{Writer, WriterOptions};
use dtkc_item::ImageShape;
use dtkc_onnx::testing::Sample;

const SIDE: usize = 28;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["model", path] => model(Path::new(path)),
        ["dataset", path, count] => dataset(Path::new(path), count.parse()?),
        ["pngs", folder, count, side] => pngs(Path::new(folder), count.parse()?, side.parse()?),
        _ => Err("usage: bench_label model FILE | dataset FILE COUNT | pngs FOLDER COUNT SIDE".into()),
    }
}

/// Repeatable numbers; the quality of the randomness does not matter here.
struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// The paper's network for 28 x 28 gray images, with random weights.
fn model(path: &Path) -> Result<(), Box<dyn Error>> {
    let sample = Sample::mnist();
    std::fs::write(path, dtkc_onnx::write(&sample.network(), &sample.metadata())?)?;
    Ok(())
}

/// A blurred stroke on black, somewhat like a digit; larger ones get a soft background, somewhat like a photo.
fn draw(number: u64, side: usize, pixels: &mut Vec<u8>) {
    let mut noise = Noise(number + 1);
    let mut unit = || noise.bits() as f32 / (1u64 << 31) as f32;
    let (x0, y0, x1, y1, bend) = (unit(), unit(), unit(), unit(), unit() - 0.5);
    let photo = side > 64;
    pixels.clear();
    for y in 0..side {
        for x in 0..side {
            let (u, v) = (x as f32 / side as f32, y as f32 / side as f32);
            let t = (((u - x0) * (x1 - x0) + (v - y0) * (y1 - y0)) / ((x1 - x0).powi(2) + (y1 - y0).powi(2) + 1e-3))
                .clamp(0.0, 1.0);
            let (px, py) = (x0 + t * (x1 - x0) + bend * t * (1.0 - t), y0 + t * (y1 - y0));
            let distance = ((u - px).powi(2) + (v - py).powi(2)).sqrt();
            let stroke = (1.0 - (distance - 0.04).max(0.0) * 12.0).clamp(0.0, 1.0);
            let back =
                if photo { 60.0 + 50.0 * (u * 5.0 + y0 * 6.0).sin() * (v * 4.0).cos() + 6.0 * unit() } else { 0.0 };
            pixels.push((back + (250.0 - back) * stroke) as u8);
        }
    }
}

fn dataset(path: &Path, count: u64) -> Result<(), Box<dyn Error>> {
    let shape = ImageShape { height: SIDE, width: SIDE, channels: 1 };
    let mut writer = Writer::create(path, WriterOptions::new(shape, "bench", "bench_label"))?;
    // Some thousands of drawings, each time with other noise, so that no two images are the same.
    let drawn = count.min(5000);
    let mut images = vec![Vec::new(); drawn as usize];
    images.iter_mut().enumerate().for_each(|(i, pixels)| draw(i as u64, SIDE, pixels));
    let mut noise = Noise(1);
    let mut noisy = Vec::new();
    for number in 0..count {
        noisy.clear();
        noisy.extend(images[(number % drawn) as usize].iter().map(|p| p.saturating_add(noise.bits() as u8 & 31)));
        writer.push_image(&noisy, Some((number % 10) as i64), None)?;
    }
    writer.finish()?;
    Ok(())
}

fn pngs(folder: &Path, count: u64, side: usize) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut pixels = Vec::new();
    for number in 0..count {
        draw(number, side, &mut pixels);
        let path = folder.join(format!("{number:06}.png"));
        if side > 64 {
            let color: Vec<u8> = pixels.iter().flat_map(|&p| [p, p / 2 + 40, 255 - p / 3]).collect();
            image::save_buffer(path, &color, side as u32, side as u32, image::ExtendedColorType::Rgb8)?;
        } else {
            image::save_buffer(path, &pixels, side as u32, side as u32, image::ExtendedColorType::L8)?;
        }
    }
    Ok(())
}
