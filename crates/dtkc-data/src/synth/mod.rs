//! Generated sets: labelled, deterministic, no download.
//!
//! `glyphs` are ten stroke figures and `signs` as many as one likes, drawn as if by hand: each image has its own tremble, slant,
//! size, pressure, blur and noise. Image number `i` depends on the seed, the size, the number of classes and `i` alone, so a
//! larger set begins with the smaller one, and any number of threads makes the same file.

mod figures;
mod hand;
mod random;
mod raster;
mod signs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

use dtkc_dataset::{Compression, Writer, WriterOptions};
use dtkc_item::ImageShape;
use dtkc_observe::Observer;
use rayon::prelude::*;

use self::random::Random;
use self::raster::Canvas;
use crate::import::{ClassCount, ImportError, Size, Summary, check_new};

/// Images that are made at a time, by all threads together.
const BLOCK: u64 = 2048;
/// More signs than that are hard to tell apart.
const MOST_SIGNS: usize = 5000;
/// Smaller figures cannot be told apart.
const SMALLEST: usize = 12;

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SynthKind {
    /// Ten hand-drawn-looking stroke figures.
    #[default]
    Glyphs,
    /// Any number of made-up characters of two to four strokes.
    Signs,
}

impl SynthKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glyphs => "glyphs",
            Self::Signs => "signs",
        }
    }

    /// The number of its classes, where somebody asked for `asked`.
    fn classes(self, asked: Option<usize>) -> Result<usize, String> {
        match (self, asked) {
            (Self::Glyphs, None) => Ok(figures::NAMES.len()),
            (Self::Glyphs, Some(_)) => Err("glyphs are ten classes; --classes is for --kind signs".into()),
            (Self::Signs, asked) => match asked.unwrap_or(100) {
                classes @ 2..=MOST_SIGNS => Ok(classes),
                classes => Err(format!("--classes {classes} is out of range; there are 2 to {MOST_SIGNS} signs")),
            },
        }
    }

    /// The names of classes by label.
    fn names(self, classes: usize) -> Vec<String> {
        match self {
            Self::Glyphs => glyph_names(),
            Self::Signs => (0..classes).map(|class| format!("sign-{class:04}")).collect(),
        }
    }

    fn strokes(self, seed: u64, class: usize, random: &mut Random) -> Vec<figures::Stroke> {
        match self {
            Self::Glyphs => figures::draw(class, random),
            Self::Signs => signs::draw(seed, class),
        }
    }
}

impl FromStr for SynthKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "glyphs" => Ok(Self::Glyphs),
            "signs" => Ok(Self::Signs),
            _ => Err(format!("'{text}' is not a kind of generated set; there are glyphs and signs")),
        }
    }
}

/// Everything about a generated set.
#[derive(Debug, Clone)]
pub struct SynthOptions {
    /// The dataset file to write.
    pub out: PathBuf,
    /// What to generate.
    pub kind: SynthKind,
    /// How many classes; `None` for as many as the kind has.
    pub classes: Option<usize>,
    /// Dark ink on white paper instead of the opposite.
    pub dark: bool,
    /// How many images.
    pub count: u64,
    /// The seed: another one gives another set.
    pub seed: u64,
    /// The size of the images.
    pub size: Size,
    /// The dataset's name.
    pub name: String,
    /// How pixels are stored.
    pub compression: Compression,
    /// Replace an output that is there already.
    pub force: bool,
}

/// The class names of the glyphs, by label.
pub fn glyph_names() -> Vec<String> {
    figures::NAMES.iter().map(|&n| n.to_owned()).collect()
}

/// Image number `index` of a set of glyphs, `height * width` bytes, and its label.
pub fn glyph(seed: u64, index: u64, size: Size) -> (Vec<u8>, i64) {
    image(SynthKind::Glyphs, figures::NAMES.len(), seed, index, size)
}

/// Image number `index` of a set, `height * width` bytes, and its label.
fn image(kind: SynthKind, classes: usize, seed: u64, index: u64, size: Size) -> (Vec<u8>, i64) {
    let label = label_of(seed, index, classes);
    let mut random = Random::new(seed, 2 * index);
    let strokes = kind.strokes(seed, label, &mut random);
    let mut canvas = Canvas::new(size.height, size.width);
    for piece in hand::draw(strokes, size.height, size.width, &mut random) {
        canvas.draw(&piece);
    }
    canvas.blur(random.range(0.0, 0.2));
    let (ink, noise) = (random.range(0.7, 1.0), random.range(0.0, 0.07));
    (canvas.develop(ink, noise, &mut random), label as i64)
}

/// As many images as classes hold each class once, in an order of their own.
fn label_of(seed: u64, index: u64, classes: usize) -> usize {
    let mut random = Random::new(seed, 2 * (index / classes as u64) + 1);
    let mut order: Vec<usize> = (0..classes).collect();
    for i in (1..classes).rev() {
        order.swap(i, random.below(i + 1));
    }
    order[(index % classes as u64) as usize]
}

/// Writes a generated set, which appears whole or not at all.
pub fn generate(options: &SynthOptions, observer: &dyn Observer) -> Result<Summary, ImportError> {
    let started = Instant::now();
    let (kind, Size { height, width }) = (options.kind, options.size);
    let classes = kind.classes(options.classes).map_err(ImportError::Usage)?;
    if height.min(width) < SMALLEST {
        return Err(ImportError::Usage(format!("{} need at least {SMALLEST}x{SMALLEST} pixels (--size)", kind.name())));
    }
    check_new(&options.out, options.force)?;
    let shape = ImageShape { height, width, channels: 1 };
    let source = source(options, classes);
    let mut writer = WriterOptions::new(shape, &options.name, source);
    writer.compression = options.compression;
    writer.label_names = Some(kind.names(classes));
    let mut writer = Writer::create(&options.out, writer)?;
    observer.begin("drawing", "images", Some(options.count));
    let mut counts = BTreeMap::new();
    let mut done = 0;
    while done < options.count {
        if observer.stop() {
            return Err(ImportError::Interrupted("nothing was written".into()));
        }
        let end = (done + BLOCK).min(options.count);
        let draw = |i| image(kind, classes, options.seed, i, options.size);
        let images: Vec<_> = (done..end).into_par_iter().map(draw).collect();
        for (mut pixels, label) in images {
            if options.dark {
                pixels.iter_mut().for_each(|pixel| *pixel = u8::MAX - *pixel);
            }
            writer.push_image(&pixels, Some(label), None)?;
            *counts.entry(label).or_insert(0) += 1;
        }
        observer.advance(end - done);
        done = end;
    }
    observer.end();
    writer.finish()?;
    let names = kind.names(classes);
    let class = |(&label, &count): (&i64, &u64)| ClassCount { label, name: names.get(label as usize).cloned(), count };
    Ok(Summary {
        out: options.out.clone(),
        name: options.name.clone(),
        kind: "images",
        formats: vec![kind.name()],
        count: options.count,
        shape: Some(shape),
        dim: None,
        classes: counts.iter().map(class).collect(),
        unlabelled: 0,
        skipped: 0,
        skipped_file: None,
        passed_over: BTreeMap::new(),
        passed_over_file: None,
        notes: Vec::new(),
        bytes: std::fs::metadata(&options.out).map_or(0, |m| m.len()),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// The command that makes the set.
fn source(options: &SynthOptions, classes: usize) -> String {
    let SynthOptions { kind, seed, size, dark, .. } = options;
    let classes = if *kind == SynthKind::Signs { format!(" --classes {classes}") } else { String::new() };
    let dark = if *dark { " --dark" } else { "" };
    format!("dtkc-data synth --kind {}{classes} --seed {seed} --size {size}{dark}", kind.name())
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    const SIZE: Size = Size { height: 28, width: 28 };

    #[test]
    fn every_ten_images_hold_every_class() {
        for block in 0..20 {
            let mut labels: Vec<usize> = (0..10).map(|i| label_of(7, block * 10 + i, 10)).collect();
            labels.sort_unstable();
            assert_eq!(labels, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(
            (0..50).map(|i| label_of(7, i, 10)).collect::<Vec<_>>(),
            (0..50).map(|i| label_of(8, i, 10)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn images_have_ink_and_differ() {
        for size in [SIZE, Size { height: 16, width: 40 }, Size { height: 64, width: 64 }] {
            for index in 0..40 {
                let (pixels, _) = glyph(1, index, size);
                assert_eq!(pixels.len(), size.height * size.width);
                let share = pixels.iter().filter(|&&p| p > 100).count() as f64 / pixels.len() as f64;
                assert!((0.01..0.6).contains(&share), "{size} {index}: {share}");
                assert_ne!(pixels, glyph(1, index + 1, size).0);
                assert_ne!(pixels, glyph(2, index, size).0);
            }
        }
    }

    #[test]
    fn signs_are_as_many_as_asked_for() {
        let draw = |index| image(SynthKind::Signs, 300, 5, index, SIZE);
        let labels: std::collections::BTreeSet<i64> = (0..300).map(|index| draw(index).1).collect();
        assert_eq!(labels, (0..300).collect());
        for index in 0..60 {
            let pixels = draw(index).0;
            let share = pixels.iter().filter(|&&p| p > 100).count() as f64 / pixels.len() as f64;
            assert!((0.01..0.6).contains(&share), "{index}: {share}");
        }
        assert!(SynthKind::Signs.classes(Some(1)).is_err_and(|text| text.contains("2 to 5000")));
        assert!(SynthKind::Glyphs.classes(Some(10)).is_err_and(|text| text.contains("--kind signs")));
    }

    /// The set must have the same bits on every machine; this sum was computed once and must never change,
    /// because models that are shipped were trained on this set.
    #[test]
    fn the_bits_are_fixed() {
        let mut hash = Sha256::new();
        for index in 0..100 {
            let (pixels, label) = glyph(42, index, SIZE);
            hash.update(&pixels);
            hash.update(label.to_le_bytes());
        }
        let sum: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(sum, "c4320f59dd918eaaf78491ee37dfd41901dfd96a60c7d250a9f85365b3f905f9");
    }
}
