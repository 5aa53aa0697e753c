//! Images to explain, and images to compare them with: a sample of what datasets, folders, archives and files hold.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_dataset::Dataset;
use dtkc_files::Sources;
use dtkc_human as human;
use dtkc_image::{Limits, Preparer};
use dtkc_item::{ImageSpec, ItemError, ItemKind};
use dtkc_observe::Observer;
use dtkc_source::{BodyReader, Found, Input};

use crate::error::TrainError;

/// Most bytes of pixels that are held.
const MOST_BYTES: usize = 1 << 30;

/// Where images come from, in order.
#[derive(Debug)]
pub struct Pictures {
    inputs: Vec<One>,
    spec: ImageSpec,
}

#[derive(Debug)]
enum One {
    Dataset(PathBuf),
    Encoded(Input),
}

/// Some images by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// What each is called: its path, or its dataset and row.
    pub names: Vec<String>,
    /// The pixels, one image after the other.
    pub pixels: Vec<u8>,
}

impl Pictures {
    /// Looks at each input and refuses what is not there. Images become what `spec` says.
    pub fn open(inputs: &[String], spec: ImageSpec) -> Result<Self, TrainError> {
        let open = |text: &String| match is_dataset(Path::new(text)) {
            true => {
                let dataset = Dataset::open(text)?;
                match dataset.kind() {
                    ItemKind::Images => Ok(One::Dataset(text.into())),
                    other => Err(TrainError::Mismatch(format!(
                        "{text} holds {other}, and maps of importance are made of images; name a dataset of images"
                    ))),
                }
            }
            false => Ok(One::Encoded(Input::open(text)?)),
        };
        Ok(Self { inputs: inputs.iter().map(open).collect::<Result<_, TrainError>>()?, spec })
    }

    /// The files and folders that are read.
    pub fn sources(&self) -> Sources {
        Sources::of(self.inputs.iter().filter_map(|input| match input {
            One::Dataset(path) => Some(path.as_path()),
            One::Encoded(Input::File(path) | Input::Zip(path) | Input::Tar(path)) => Some(path),
            One::Encoded(input) => input.folder(),
        }))
    }

    /// `count` images drawn at random from all, in the order that they have; all where there are fewer. Those that cannot be
    /// read are told and left out.
    pub fn sample(&self, count: usize, seed: u64, observer: &dyn Observer) -> Result<Named, TrainError> {
        let totals = self.inputs.iter().map(|input| input.count(observer)).collect::<Result<Vec<_>, _>>()?;
        let all: Vec<usize> = (0..totals.iter().sum()).collect();
        let chosen = dtkc_dataset::sample(&all, count, seed);
        check_size(chosen.len(), self.spec)?;
        let mut reader = Reader {
            preparer: Preparer::new(self.spec, Limits::default()),
            bodies: BodyReader::new(Limits::default().max_bytes),
            named: Named::default(),
            observer,
        };
        let (mut first, mut rest) = (0, chosen.as_slice());
        for (input, total) in self.inputs.iter().zip(totals) {
            let (here, later) = rest.split_at(rest.partition_point(|&place| place < first + total));
            let places: Vec<usize> = here.iter().map(|place| place - first).collect();
            match input {
                One::Dataset(path) => reader.rows(path, &places)?,
                One::Encoded(input) => reader.encoded(input, &places)?,
            }
            (first, rest) = (first + total, later);
        }
        match reader.named.names.is_empty() {
            true => Err(TrainError::Mismatch("the input holds no image that can be read; name another".into())),
            false => Ok(reader.named),
        }
    }
}

fn check_size(count: usize, spec: ImageSpec) -> Result<(), TrainError> {
    let bytes = count.saturating_mul(spec.bytes());
    match bytes > MOST_BYTES {
        true => Err(TrainError::Setting(format!(
            "{} images of {} x {} pixels would take {}, more than {}; explain fewer at a time with --count",
            human::count(count as u64),
            spec.width,
            spec.height,
            human::bytes(bytes as u64),
            human::bytes(MOST_BYTES as u64)
        ))),
        false => Ok(()),
    }
}

fn is_dataset(path: &Path) -> bool {
    let named = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("h5") || e.eq_ignore_ascii_case("hdf5"));
    path.is_file() && (named || dtkc_source::read_head(path, 8).is_ok_and(|head| head == b"\x89HDF\r\n\x1a\n"))
}

impl One {
    fn count(&self, observer: &dyn Observer) -> Result<usize, TrainError> {
        match self {
            Self::Dataset(path) => Ok(Dataset::open(path)?.len()),
            Self::Encoded(input) => {
                let mut count = 0;
                let mut visitor = Each(|_| {
                    count += 1;
                    if observer.stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                match input.visit(Limits::default().max_bytes, &mut visitor)? {
                    ControlFlow::Break(()) => Err(TrainError::Stopped),
                    ControlFlow::Continue(()) => Ok(count),
                }
            }
        }
    }
}

/// A visitor that is a function.
struct Each<F>(F);

impl<F: FnMut(Found) -> ControlFlow<()>> dtkc_source::Visitor for Each<F> {
    fn found(&mut self, found: Found) -> ControlFlow<()> {
        (self.0)(found)
    }
}

struct Reader<'a> {
    preparer: Preparer,
    bodies: BodyReader,
    named: Named,
    observer: &'a dyn Observer,
}

impl Reader<'_> {
    /// Rows of a dataset, whose images may have another size.
    fn rows(&mut self, path: &Path, rows: &[usize]) -> Result<(), TrainError> {
        let dataset = Dataset::open(path)?;
        let shape = dataset.require_images()?;
        for &row in rows {
            self.check_stop()?;
            let pixels = dataset.read(&[row])?;
            let known = dataset.paths(row..row + 1)?.and_then(|mut paths| paths.pop());
            let name = known.unwrap_or_else(|| format!("{}#{row}", path.display()));
            self.keep(name, |preparer, out| match shape == preparer.spec().shape() {
                true => {
                    out.copy_from_slice(&pixels);
                    Ok(())
                }
                false => preparer.resize_pixels(&pixels, shape, out),
            });
        }
        Ok(())
    }

    fn encoded(&mut self, input: &Input, places: &[usize]) -> Result<(), TrainError> {
        let (mut place, mut wanted) = (0, places.iter().copied().peekable());
        let mut stopped = false;
        let mut visitor = Each(|mut found: Found| {
            if wanted.next_if_eq(&place).is_some() {
                let bytes = self.bodies.read(&mut found.body);
                self.keep(found.path, |preparer, out| preparer.prepare_into(&bytes?, out));
            }
            place += 1;
            stopped = self.observer.stop();
            if stopped || wanted.peek().is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let _ = input.visit(Limits::default().max_bytes, &mut visitor)?;
        if stopped { Err(TrainError::Stopped) } else { Ok(()) }
    }

    fn keep(&mut self, name: String, read: impl FnOnce(&mut Preparer, &mut [u8]) -> Result<(), ItemError>) {
        let pixels = &mut self.named.pixels;
        let (length, more) = (pixels.len(), self.preparer.spec().bytes());
        pixels.resize(length + more, 0);
        match read(&mut self.preparer, &mut pixels[length..]) {
            Ok(()) => self.named.names.push(name),
            Err(error) => {
                pixels.truncate(length);
                self.observer.warn(&format!("{name} is left out: {}", error.message));
            }
        }
    }

    fn check_stop(&self) -> Result<(), TrainError> {
        if self.observer.stop() { Err(TrainError::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use dtkc_item::{Color, ImageShape, Resize};
    use dtkc_observe::Silent;
    use dtkc_testing::Set;

    use super::*;

    const SPEC: ImageSpec = ImageSpec { height: 4, width: 5, color: Color::Gray, resize: Resize::Stretch };

    #[test]
    fn a_sample_is_in_order_and_goes_through_all_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let text = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let same = Set::new(SPEC.shape(), 30).with_paths().write(Path::new(&text("a.h5")));
        let large = ImageShape { height: 8, width: 10, channels: 3 };
        Set::new(large, 5).write(Path::new(&text("b.h5")));
        image::GrayImage::from_pixel(9, 9, image::Luma([7])).save(text("c.png")).unwrap();
        let inputs = [text("a.h5"), text("b.h5"), text("c.png")];
        let pictures = Pictures::open(&inputs, SPEC).unwrap();
        let all = pictures.sample(100, 1, &Silent).unwrap();
        assert_eq!((all.names.len(), all.pixels.len()), (36, 36 * SPEC.bytes()));
        assert_eq!(all.names[29], "folder/29.png");
        assert_eq!(
            all.names[30..],
            [
                format!("{}#0", inputs[1]),
                format!("{}#1", inputs[1]),
                format!("{}#2", inputs[1]),
                format!("{}#3", inputs[1]),
                format!("{}#4", inputs[1]),
                inputs[2].clone()
            ]
        );
        assert_eq!(all.pixels[29 * SPEC.bytes()..30 * SPEC.bytes()], dtkc_testing::image(SPEC.shape(), 29));
        assert_eq!(all.pixels[35 * SPEC.bytes()..], [7; 20]);
        let some = pictures.sample(12, 1, &Silent).unwrap();
        let places: Vec<usize> =
            some.names.iter().map(|name| all.names.iter().position(|n| n == name).unwrap()).collect();
        assert!(places.len() == 12 && places.is_sorted(), "{places:?}");
        assert!(some.pixels == places.iter().flat_map(|p| &all.pixels[p * 20..][..20]).copied().collect::<Vec<_>>());
        assert!(pictures.sources().has_file(&same));
    }

    #[test]
    fn what_would_not_fit_into_memory_is_refused() {
        let large = ImageSpec { height: 1024, width: 1024, color: Color::Rgb, resize: Resize::Fit };
        check_size(341, large).unwrap();
        let text = check_size(342, large).unwrap_err().to_string();
        assert!(text.contains("342 images of 1024 x 1024 pixels") && text.contains("--count"), "{text}");
    }
}
