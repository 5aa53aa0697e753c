//! Encoded images: folders, zip and tar archives, files that were named one by one. What is an image, and in which order
//! they come, `dtkc-source` says.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dtkc_image::{Limits, probe};
use dtkc_item::ItemError;
use dtkc_source::{Body, BodyReader, Found, Input, Passed, Reason, Sought, Visitor, classes, read_head, remote};

use super::ReadError;
use super::labels::{self, Labels, LabelsFrom};
use super::record::{Content, ContentForm, Description, Importer, Record, Sample, Sink};

/// Enough of a file for nearly every header.
const HEAD: usize = 64 << 10;
/// Headers of a packed archive are looked at while it is listed; more than these tell nothing new.
const SAMPLES: usize = 256;
/// Objects of a store that are fetched side by side, and their bytes.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: u64 = 16 << 20;

/// What was found in a folder or an archive.
#[derive(Debug)]
pub struct Listing {
    input: Input,
    found: Vec<Found>,
    passed: Vec<(String, Reason)>,
    /// Sizes of the first images of a tar.
    samples: Vec<Sample>,
    /// Whether images passed through memory, so that the archive must be read again.
    again: bool,
    /// Which files were looked for.
    sought: Sought,
    /// What one image may cost.
    limits: Limits,
}

impl Listing {
    /// Lists a folder or an archive. One that is damaged is an error: a part of a dataset is not what was asked for.
    pub fn of(input: Input, limits: Limits) -> Result<Self, ReadError> {
        Self::seek(input, Sought::Images, limits)
    }

    /// The same for other files than images.
    pub fn seek(input: Input, sought: Sought, limits: Limits) -> Result<Self, ReadError> {
        let mut lister = Lister {
            sought,
            found: Vec::new(),
            passed: Vec::new(),
            samples: Vec::new(),
            again: false,
            problem: None,
            reader: BodyReader::new(limits.max_bytes),
            limits,
        };
        // Whether the visit ended early says nothing beside the reason.
        let _ = input.visit(limits.max_bytes, &mut lister)?;
        let Lister { found, passed, samples, again, problem, .. } = lister;
        // What a store did not give is no damage of what lies in it.
        if let Some(trouble) = remote::trouble() {
            return Err(trouble.into());
        }
        match (problem, &input) {
            (None, _) => Ok(Self { input, found, passed, samples, again, sought, limits }),
            (Some(error), Input::Folder(path) | Input::Zip(path) | Input::Tar(path)) => {
                Err(ReadError::file(path, error))
            }
            (Some(error), _) => Err(ReadError::source("the source", error)),
        }
    }

    /// Files that were named one by one, in that order.
    pub fn of_files(files: Vec<PathBuf>, sought: Sought, limits: Limits) -> Self {
        let found = files.iter().map(|path| Found::file(path)).collect();
        let input = Input::File(files.into_iter().next().unwrap_or_default());
        Self { input, found, passed: Vec::new(), samples: Vec::new(), again: false, sought, limits }
    }

    /// The names of all items, below the folder or archive.
    pub fn names(&self) -> Vec<&str> {
        self.found.iter().map(Found::name).collect()
    }

    /// Which files were looked for.
    pub fn sought(&self) -> Sought {
        self.sought
    }

    /// What was passed over, and why.
    pub fn passed(&self) -> &[(String, Reason)] {
        &self.passed
    }

    /// The name of the folder or archive, and whether it is a folder.
    pub fn origin(&self) -> (Option<String>, bool) {
        match &self.input {
            Input::Folder(path) => (classes::own_name(&path.to_string_lossy()), true),
            Input::Zip(path) | Input::Tar(path) => (file_name(path), false),
            _ => (None, false),
        }
    }

    /// Shows the bytes of every item, in order, one at a time; those of a packed archive are read from it once more.
    pub fn each(&mut self, seen: &mut Bodies<'_>) -> Result<(), ReadError> {
        let mut reader = BodyReader::new(self.limits.max_bytes);
        if self.again {
            let visited = self.input.visit(self.limits.max_bytes, &mut Again { seen, reader, sought: self.sought });
            // Whether the visit ended early says nothing more.
            return visited.map(drop).map_err(ReadError::from);
        }
        each_found(&mut self.found, &mut reader, &mut |found, reader| {
            let bytes = reader.read(&mut found.body);
            seen(found.name(), bytes)
        })
    }

    /// The images that are files of their own.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.found
            .iter()
            .filter_map(|found| if let Body::File(path) = &found.body { Some(path.as_path()) } else { None })
    }

    /// Whether there is no image. Folders that could not be read are none.
    pub fn is_empty(&self) -> bool {
        self.found.iter().all(|found| found.name().ends_with('/'))
    }

    /// Why there is no image.
    pub fn nothing(&self) -> String {
        let unreadable = self.found.iter().find_map(|found| match &found.body {
            Body::Broken(error) => Some((found.name(), error)),
            _ => None,
        });
        let others = self.passed.iter().filter(|(_, reason)| *reason != Reason::Hidden).count();
        let (items, formats) = match self.sought {
            Sought::Images => ("images", "PNG, JPEG, GIF, BMP, WebP, TIFF, PNM are read"),
            Sought::Tables => ("tables", ".csv and .tsv are read"),
            Sought::Sounds => ("sounds", ".wav is read"),
        };
        match (unreadable, &self.input) {
            (Some((name, error)), _) => format!("no {items} found; {name} is not readable ({error})"),
            (None, Input::Folder(_)) if others == 0 => format!("no {items} found; the folder is empty"),
            (None, Input::Folder(_)) => format!("no {items} found among {others} files ({formats})"),
            _ => format!("no {items} found among {others} entries; unpack it to import other data"),
        }
    }
}

/// Shows items in order, objects of stores after they were fetched, some at a time side by side.
fn each_found(
    all: &mut [Found],
    reader: &mut BodyReader,
    seen: &mut dyn FnMut(&mut Found, &mut BodyReader) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut at = 0;
    while at < all.len() {
        let count = together(&all[at..]);
        let mut flow = ControlFlow::Continue(());
        if count == 0 {
            flow = seen(&mut all[at], reader);
        } else {
            // Copies: what was fetched does not stay in memory.
            let mut fetched = all[at..at + count].to_vec();
            reader.fetch(fetched.iter_mut().map(|found| &mut found.body));
            if let Some(trouble) = remote::trouble() {
                return Err(trouble.into());
            }
            for found in &mut fetched {
                flow = seen(found, reader);
                if flow.is_break() {
                    break;
                }
            }
        }
        if flow.is_break() {
            break;
        }
        at += count.max(1);
    }
    Ok(())
}

/// How many of the next items are objects that are fetched together.
fn together(found: &[Found]) -> usize {
    let mut bytes = 0;
    let fits = |found: &&Found| {
        bytes += found.body.size();
        matches!(found.body, Body::Object { .. }) && bytes <= TOGETHER_BYTES
    };
    let objects = found.iter().take(TOGETHER).take_while(fits).count();
    let is_object = found.first().is_some_and(|found| matches!(found.body, Body::Object { .. }));
    objects.max(usize::from(is_object))
}

/// Is shown the names and bytes of items.
pub type Bodies<'a> = dyn FnMut(&str, Result<Vec<u8>, ItemError>) -> ControlFlow<()> + 'a;

/// Reads a packed archive once more.
struct Again<'a, 'b> {
    seen: &'a mut Bodies<'b>,
    reader: BodyReader,
    sought: Sought,
}

impl Visitor for Again<'_, '_> {
    fn sought(&self) -> Sought {
        self.sought
    }

    fn found(&mut self, mut found: Found) -> ControlFlow<()> {
        let bytes = self.reader.read(&mut found.body);
        (self.seen)(found.name(), bytes)
    }
}

/// Collects what a visit shows.
struct Lister {
    sought: Sought,
    found: Vec<Found>,
    passed: Vec<(String, Reason)>,
    samples: Vec<Sample>,
    again: bool,
    problem: Option<ItemError>,
    reader: BodyReader,
    limits: Limits,
}

impl Lister {
    /// Looks at an image of a tar. One that is in memory does not stay there.
    fn look(&mut self, body: &mut Body) {
        let in_memory = matches!(body, Body::Bytes(_));
        self.again |= in_memory;
        if self.samples.len() < SAMPLES {
            self.samples.extend(self.reader.read(body).ok().and_then(|bytes| sample(&bytes, &self.limits)));
        } else if in_memory {
            *body = Body::Bytes(Vec::new());
        }
    }
}

impl Visitor for Lister {
    fn sought(&self) -> Sought {
        self.sought
    }

    fn wants_classes(&self) -> bool {
        self.sought == Sought::Images
    }

    fn found(&mut self, mut found: Found) -> ControlFlow<()> {
        match &mut found.body {
            Body::Broken(error) if found.place == 0 => {
                self.problem = Some(error.clone());
                return ControlFlow::Break(());
            }
            body @ (Body::Bytes(_) | Body::Slice { .. }) => self.look(body),
            _ => {}
        }
        self.found.push(found);
        ControlFlow::Continue(())
    }

    fn passed(&mut self, passed: Passed<'_>) {
        self.passed.push((passed.name.to_owned(), passed.reason));
    }

    fn damaged(&mut self, found: Found) -> ControlFlow<()> {
        if let Body::Broken(error) = found.body {
            self.problem = Some(error);
        }
        ControlFlow::Break(())
    }
}

/// Imports what was listed.
pub struct ImageImporter {
    listing: Listing,
    labels: Vec<Option<i64>>,
    description: Description,
}

impl ImageImporter {
    /// An importer of what was listed; `several` where other sources are beside it.
    pub fn new(listing: Listing, from: LabelsFrom, several: bool) -> Self {
        let (format, coil_format, origin) = match &listing.input {
            Input::Folder(path) => ("folder of images", "COIL folder", classes::own_name(&path.to_string_lossy())),
            Input::Zip(path) => ("zip of images", "COIL zip", file_name(path)),
            Input::Tar(path) => ("tar of images", "COIL tar", file_name(path)),
            _ => ("folder of images", "COIL folder", None),
        };
        let own = origin.as_deref().filter(|_| several && matches!(listing.input, Input::Folder(_)));
        let names: Vec<&str> = listing.found.iter().map(Found::name).collect();
        let given: Vec<Option<&str>> = listing.found.iter().map(|found| found.class.as_deref()).collect();
        let Labels { classes, labels, coil, notes } = labels::label(&names, &given, from, own);
        let description = Description {
            count: Some(listing.found.len() as u64),
            classes,
            paths: true,
            origin,
            notes,
            ..Description::new(if coil { coil_format } else { format }, ContentForm::Encoded)
        };
        Self { listing, labels, description }
    }

    /// Reads a packed archive once more. Its images come as they came before.
    fn stream_again(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut reader = BodyReader::new(self.listing.limits.max_bytes);
        let mut labels = self.labels.iter();
        let visited = self.listing.input.visit(self.listing.limits.max_bytes, &mut |mut found: Found| {
            sink(record(&mut found, labels.next().copied().flatten(), &mut reader))
        });
        // Whether the visit ended early says nothing more.
        visited.map(drop).map_err(ReadError::from)
    }

    fn sample(&mut self, place: usize, reader: &mut BodyReader) -> Option<Sample> {
        let limits = self.listing.limits;
        let body = &mut self.listing.found[place].body;
        let head = match body {
            Body::File(path) => sample(&read_head(path, HEAD).ok()?, &limits),
            _ => None,
        };
        head.or_else(|| sample(&reader.read(body).ok()?, &limits))
    }
}

/// An item on its way. Files are left to the workers; archives are read here, in their order.
fn record(found: &mut Found, label: Option<i64>, reader: &mut BodyReader) -> Record {
    let path = Some(found.name().to_owned());
    let content = match &mut found.body {
        Body::File(path) => Content::File(path.clone()),
        body => reader.read(body).map_or_else(Content::Unreadable, Content::Encoded),
    };
    Record { content, label, path }
}

impl Importer for ImageImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn passed_over(&self) -> &[(String, Reason)] {
        &self.listing.passed
    }

    fn samples(&mut self, wanted: usize) -> Result<Vec<Sample>, ReadError> {
        if matches!(self.listing.input, Input::Tar(_)) {
            return Ok(self.listing.samples.iter().copied().take(wanted).collect());
        }
        let mut reader = BodyReader::new(self.listing.limits.max_bytes);
        let places = spread(self.labels.len(), wanted);
        if self.listing.found.iter().any(|found| matches!(found.body, Body::Object { .. })) {
            let mut chosen: Vec<Found> = places.map(|place| self.listing.found[place].clone()).collect();
            let (limits, mut samples) = (self.listing.limits, Vec::new());
            each_found(&mut chosen, &mut reader, &mut |found, reader| {
                samples.extend(reader.read(&mut found.body).ok().and_then(|bytes| sample(&bytes, &limits)));
                ControlFlow::Continue(())
            })?;
            return Ok(samples);
        }
        Ok(places.filter_map(|place| self.sample(place, &mut reader)).collect())
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        if self.listing.again {
            return self.stream_again(sink);
        }
        let mut reader = BodyReader::new(self.listing.limits.max_bytes);
        let mut labels = self.labels.iter();
        each_found(&mut self.listing.found, &mut reader, &mut |found, reader| {
            sink(record(found, labels.next().copied().flatten(), reader))
        })
    }
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Size and colour from the header; `None` where it cannot be read.
pub(super) fn sample(bytes: &[u8], limits: &Limits) -> Option<Sample> {
    let probe = probe(bytes, limits).ok()?;
    Some(Sample { height: probe.height, width: probe.width, rgb: probe.channels >= 3 })
}

/// `wanted` places spread evenly over `count`, the first one included.
fn spread(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let wanted = wanted.min(count);
    (0..wanted).map(move |i| (i as u128 * count as u128 / wanted as u128) as usize)
}

#[cfg(test)]
mod tests {
    use dtkc_testing::files::{gz, tar, zip};

    use super::*;

    fn records(importer: &mut dyn Importer) -> Vec<Record> {
        let mut records = Vec::new();
        importer
            .stream(&mut |record| {
                records.push(record);
                ControlFlow::Continue(())
            })
            .unwrap();
        records
    }

    fn encoded(bytes: &[u8], label: i64, path: &str) -> Record {
        Record { content: Content::Encoded(bytes.to_vec()), label: Some(label), path: Some(path.to_owned()) }
    }

    #[test]
    fn archives_are_read_with_labels_packed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let files: &[(&str, &[u8])] =
            &[("x/obj10__0.png", b"ten"), ("x/obj9__0.png", b"nine"), ("x/readme.txt", b"no"), ("x/.a.png", b"no")];
        let (ten, nine) = (encoded(b"ten", 10, "x/obj10__0.png"), encoded(b"nine", 9, "x/obj9__0.png"));
        for (bytes, input, expected) in [
            (zip(files), Input::Zip(path.clone()), [nine.clone(), ten.clone()]),
            (tar(files), Input::Tar(path.clone()), [ten.clone(), nine.clone()]),
            (gz(&tar(files)), Input::Tar(path.clone()), [ten, nine]),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let mut importer =
                ImageImporter::new(Listing::of(input, Limits::default()).unwrap(), LabelsFrom::Detect, false);
            assert_eq!(importer.describe().count, Some(2));
            assert!(importer.describe().format.starts_with("COIL "));
            for _ in 0..2 {
                assert_eq!(records(&mut importer), expected);
            }
            let reasons = [Reason::OtherExtension, Reason::Hidden];
            assert_eq!(importer.passed_over().iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), reasons);
        }
    }

    #[test]
    fn a_damaged_archive_and_a_missing_folder_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        let files: &[(&str, &[u8])] = &[("1.png", &[1; 2000]), ("2.png", &[2; 2000])];
        for (bytes, input) in [(zip(files), Input::Zip(path.clone())), (tar(files), Input::Tar(path.clone()))] {
            std::fs::write(&path, &bytes[..bytes.len() / 3]).unwrap();
            let error = Listing::of(input, Limits::default()).unwrap_err().to_string();
            assert!(error.contains("a.bin") && error.contains("cut off"), "{error}");
        }
        let error = Listing::of(Input::Folder(folder.path().join("gone")), Limits::default()).unwrap_err().to_string();
        assert!(error.contains("gone") && error.contains("cannot be read"), "{error}");
    }

    #[test]
    fn places_are_spread_evenly() {
        assert_eq!(spread(3, 10).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [0, 25, 50, 75]);
        assert_eq!(spread(0, 4).count(), 0);
    }
}
