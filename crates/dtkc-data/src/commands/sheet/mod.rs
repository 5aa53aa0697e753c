//! The contact sheet: a title, and rows of images with their class on the left.

mod canvas;
mod font;

use std::path::Path;

use canvas::{Canvas, Rgb};
use dtkc_image::{Limits, Preparer};
use dtkc_item::{Color, ImageShape, ImageSpec, Resize};
use image::ImageEncoder;
use image::codecs::png::PngEncoder;

const PAPER: Rgb = [250, 250, 249];
const INK: Rgb = [32, 33, 36];
const PALE: Rgb = [128, 131, 137];
const MARGIN: usize = 16;
const GAP: usize = 3;
const DOT: usize = 2;
/// Images are brought to about this size: small ones enlarged without smoothing, large ones reduced.
const SMALLEST: usize = 48;
const LARGEST: usize = 128;
/// More pixels than this are no sheet to look at, and a third of a GiB.
const MAX_PIXELS: usize = 120 << 20;
/// Characters of a class name that find room.
const NAME: usize = 16;

/// One row of the sheet.
#[derive(Debug, Default)]
pub struct Row {
    /// The class; empty where the set has no labels.
    pub name: String,
    /// A second line below it.
    pub count: String,
}

/// All that is drawn.
#[derive(Debug)]
pub struct Sheet {
    pub title: String,
    pub rows: Vec<Row>,
    pub columns: usize,
    /// Pixels between the first image of a row and the others, besides the usual gap.
    pub apart: usize,
    pub height: usize,
    pub width: usize,
    pub color: Color,
    /// Whether the pictures were made for the sheet: they keep their size.
    pub drawn: bool,
}

impl Sheet {
    /// Draws the sheet and writes it as PNG. `images` gives the pixels of a row, one row at a time: together they may be
    /// more than memory holds.
    pub fn write<E>(&self, out: &Path, images: impl FnMut(usize) -> Result<Vec<u8>, E>) -> anyhow::Result<()>
    where
        anyhow::Error: From<E>,
    {
        let layout = self.layout();
        if layout.width.saturating_mul(layout.height) > MAX_PIXELS {
            let text = format!(
                "the sheet would have {}x{} pixels; ask for fewer --rows or --columns",
                layout.width, layout.height
            );
            return Err(dtkc_cli::Usage(text).into());
        }
        let canvas = self.draw(&layout, images)?;
        let (width, height) = (canvas.width() as u32, canvas.height() as u32);
        let mut png = Vec::new();
        PngEncoder::new(&mut png).write_image(canvas.pixels(), width, height, image::ExtendedColorType::Rgb8)?;
        dtkc_files::write(out, &png)?;
        println!("wrote {}: {width}x{height} pixels", out.display());
        Ok(())
    }

    fn layout(&self) -> Layout {
        let cell = self.cell();
        let line = font::HEIGHT * DOT;
        // A class row holds two lines of text, even where the images are lower.
        let labelled = self.rows.iter().any(|row| !row.name.is_empty());
        let pitch = GAP + if labelled { cell.height.max(2 * line + 8) } else { cell.height };
        let left = MARGIN + if labelled { self.names_width() + 12 } else { 0 };
        let top = MARGIN + line + 14;
        let title = font::width(&self.title) * DOT;
        let images_width = self.columns * (cell.width + GAP) - GAP + self.apart;
        let width = MARGIN + (left + images_width).max(MARGIN + title);
        let height = top + self.rows.len() * pitch - GAP + MARGIN;
        Layout { cell, labelled, pitch, left, top, width, height }
    }

    fn draw<E>(&self, layout: &Layout, mut images: impl FnMut(usize) -> Result<Vec<u8>, E>) -> Result<Canvas, E> {
        let &Layout { cell, labelled, pitch, left, top, width, height } = layout;
        let line = font::HEIGHT * DOT;
        let mut canvas = Canvas::new(width, height, PAPER);
        canvas.text(MARGIN, MARGIN, DOT, INK, &self.title);
        for (number, row) in self.rows.iter().enumerate() {
            let y = top + number * pitch;
            if labelled {
                let lines = if row.count.is_empty() { line } else { 2 * line + 6 };
                let text_y = y + (pitch - GAP - lines) / 2;
                canvas.text(MARGIN, text_y, DOT, INK, &font::shorten(&row.name, NAME));
                canvas.text(MARGIN, text_y + line + 6, DOT, PALE, &row.count);
            }
            let pixels = images(number)?;
            for (column, image) in pixels.chunks_exact(self.height * self.width * self.color.channels()).enumerate() {
                let x = left + column * (cell.width + GAP) + if column > 0 { self.apart } else { 0 };
                canvas.paste(x, y + (pitch - GAP - cell.height) / 2, cell.width, &self.picture(image, cell));
            }
        }
        Ok(canvas)
    }

    fn names_width(&self) -> usize {
        let names = self.rows.iter().map(|row| font::width(&font::shorten(&row.name, NAME)));
        let counts = self.rows.iter().map(|row| font::width(&row.count));
        names.chain(counts).max().unwrap_or(0) * DOT
    }

    fn cell(&self) -> Cell {
        if self.drawn {
            return Cell { height: self.height, width: self.width, factor: Some(1) };
        }
        let longest = self.height.max(self.width);
        if longest > LARGEST {
            let side = |n: usize| (n * LARGEST).div_ceil(longest);
            return Cell { height: side(self.height), width: side(self.width), factor: None };
        }
        let factor = SMALLEST.div_ceil(longest).max(1);
        Cell { height: self.height * factor, width: self.width * factor, factor: Some(factor) }
    }

    /// One image as RGB pixels of the cell's size.
    fn picture(&self, image: &[u8], cell: Cell) -> Vec<u8> {
        match cell.factor {
            Some(factor) => self.enlarged(image, factor),
            None => self.reduced(image, cell),
        }
    }

    /// Every pixel as a square: people want to see what the network sees.
    fn enlarged(&self, image: &[u8], factor: usize) -> Vec<u8> {
        let channels = self.color.channels();
        let mut out = Vec::with_capacity(self.height * self.width * factor * factor * 3);
        for row in image.chunks_exact(self.width * channels) {
            let start = out.len();
            for pixel in row.chunks_exact(channels) {
                let rgb = [pixel[0], pixel[channels / 2], pixel[channels - 1]];
                out.extend_from_slice(&rgb.repeat(factor));
            }
            for _ in 1..factor {
                out.extend_from_within(start..start + self.width * factor * 3);
            }
        }
        out
    }

    fn reduced(&self, image: &[u8], cell: Cell) -> Vec<u8> {
        let shape = ImageSpec { height: cell.height, width: cell.width, color: Color::Rgb, resize: Resize::Stretch };
        let limits = Limits { max_side: u32::MAX, max_pixels: u64::MAX, ..Limits::default() };
        let mut out = vec![0; shape.bytes()];
        // The sizes are right by construction; a failure would leave the cell black.
        let size = ImageShape { height: self.height, width: self.width, channels: self.color.channels() };
        let _ = Preparer::new(shape, limits).resize_pixels(image, size, &mut out);
        out
    }
}

/// Where things are on the sheet.
#[derive(Debug)]
struct Layout {
    cell: Cell,
    labelled: bool,
    /// From one row to the next.
    pitch: usize,
    /// Of the first image.
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

/// The drawn size of an image; `factor` where it is a whole enlargement.
#[derive(Debug, Clone, Copy)]
struct Cell {
    height: usize,
    width: usize,
    factor: Option<usize>,
}
