//! What IDX, MAT, NumPy and foreign HDF5 files have in common: arrays of images, with labels beside them.

pub mod layout;
pub mod numeric;
pub mod pair;
pub mod scale;

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::ControlFlow;

use dtkc_item::{ImageShape, Resize};

use self::layout::{Layout, show};
use self::numeric::{Block, Number};
use self::scale::{Scale, Span};
use super::ReadError;
use super::record::{Classes, Content, ContentForm, Description, Importer, Record, Sink};

/// Values read at a time where an array can be read image by image.
pub const BLOCK_VALUES: usize = 256 << 10;
/// An array that can only be turned as a whole may have this many values.
pub const MAX_WHOLE: usize = 1 << 30;

/// Reads one array from its start to its end.
pub trait ArrayReader: Send {
    /// The next `values` values; fewer only at the end.
    fn read(&mut self, values: usize) -> Result<Block, ReadError>;

    /// Back to the start.
    fn rewind(&mut self) -> Result<(), ReadError>;
}

/// The next values of an array that lies in a stream; fewer than asked for only at its end.
pub fn read_block(stream: &mut dyn Read, number: Number, values: usize) -> io::Result<Block> {
    let size = number.kind.size();
    let mut bytes = Vec::with_capacity(values.min(1 << 22) * size);
    stream.take((values * size) as u64).read_to_end(&mut bytes)?;
    // A number that was cut is none.
    bytes.truncate(bytes.len() / size * size);
    Ok(number.block(bytes))
}

/// One array of images with its labels.
pub struct Part {
    /// The file and the array, for messages.
    pub name: String,
    /// Where the pixels are.
    pub layout: Layout,
    /// The values.
    pub reader: Box<dyn ArrayReader>,
    /// The labels, as many as images.
    pub labels: Option<Vec<i64>>,
}

/// Arrays of images of one size that belong together.
#[derive(Default)]
pub struct Arrays {
    /// The format's name, for people to read.
    pub format: &'static str,
    /// The arrays.
    pub parts: Vec<Part>,
    /// Class names by label, where the file has them.
    pub names: Option<Vec<String>>,
    /// How the images were brought to their size, where the file says so.
    pub resize: Option<Resize>,
    /// Whether this is a dataset of ours, in which every negative label means unlabelled.
    pub ours: bool,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl Arrays {
    /// Arrays of a format that knows neither names nor rules.
    pub fn new(format: &'static str, parts: Vec<Part>) -> Self {
        Self { format, parts, ..Self::default() }
    }
}

/// Arrays of images of one size, one after the other, scaled alike.
pub struct ArrayImporter {
    parts: Vec<Part>,
    scale: Scale,
    description: Description,
}

impl ArrayImporter {
    /// Checks that the parts fit together, and finds the range of values that are not bytes.
    pub fn new(arrays: Arrays) -> Result<Self, ReadError> {
        let Arrays { format, mut parts, names, resize, ours, mut notes } = arrays;
        let Some(first) = parts.first() else {
            return Err(ReadError::source(format, "there are no images"));
        };
        let size = |l: &Layout| (l.height, l.width, l.channels);
        let (height, width, channels) = size(&first.layout);
        if let Some(other) = parts.iter().find(|p| size(&p.layout) != (height, width, channels)) {
            let found = show(&[other.layout.height, other.layout.width, other.layout.channels]);
            let reason = format!(
                "images are {found}, those of {} are {}; import them one by one, with the same --size",
                first.name,
                show(&[height, width, channels]),
            );
            return Err(ReadError::source(&other.name, reason));
        }
        if height == 0 || width == 0 {
            return Err(ReadError::source(&first.name, "the images have no pixels"));
        }
        let mut range = Span::empty();
        for part in &mut parts {
            range.join(&range_of(part)?);
        }
        let scale = Scale::choose(&range);
        if !range.bytes {
            notes.push(scale.to_string());
        }
        let labelled = parts.iter().filter(|p| p.labels.is_some()).count();
        if labelled > 0 && labelled < parts.len() {
            notes.push("labels were left out because only some parts have them".to_owned());
            parts.iter_mut().for_each(|p| p.labels = None);
        }
        let names = match names {
            None if !ours => two_signs(&mut parts, &mut notes),
            names => names,
        };
        // Transparency is laid over a background.
        let shape = ImageShape { height, width, channels: if channels == 4 { 3 } else { channels } };
        let description = Description {
            count: Some(parts.iter().map(|p| p.layout.count as u64).sum()),
            classes: classes(&parts, names),
            resize,
            notes,
            ..Description::new(format, ContentForm::Pixels(shape))
        };
        Ok(Self { parts, scale, description })
    }
}

impl Importer for ArrayImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        for part in &mut self.parts {
            part.reader.rewind()?;
            if stream_part(part, self.scale, sink)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn classes(parts: &[Part], names: Option<Vec<String>>) -> Classes {
    if parts.iter().all(|p| p.labels.is_none()) {
        return Classes::None;
    }
    let all = parts.iter().filter_map(|p| p.labels.as_ref()).flatten().copied();
    let labels: BTreeSet<i64> = all.filter(|&label| label >= 0).collect();
    let fits = |names: &Vec<String>| labels.iter().all(|&label| (label as usize) < names.len());
    match names.filter(fits) {
        Some(names) => Classes::Names(names),
        None => Classes::Numbers(labels),
    }
}

/// What is said about labels that are -1 and 1.
pub(crate) const TWO_SIGNS: &str = "the labels are -1 and 1 and nothing else, so they are two classes of these names";

/// Labels that are all either -1 or 1 are two classes, as many who work with two have them, and not one class beside
/// unlabelled items. They get these numbers as names.
fn two_signs(parts: &mut [Part], notes: &mut Vec<String>) -> Option<Vec<String>> {
    let all: BTreeSet<i64> = parts.iter().filter_map(|p| p.labels.as_ref()).flatten().copied().collect();
    if !all.into_iter().eq([-1, 1]) {
        return None;
    }
    let labels = parts.iter_mut().filter_map(|part| part.labels.as_mut()).flatten();
    labels.for_each(|label| *label = i64::from(*label > 0));
    notes.push(TWO_SIGNS.to_owned());
    Some(vec!["-1".to_owned(), "1".to_owned()])
}

/// How many values to read at a time: whole images, or everything.
fn step(part: &Part) -> Result<usize, ReadError> {
    let values = part.layout.values();
    if part.layout.streams() {
        return Ok(values * (BLOCK_VALUES / values).max(1));
    }
    let all = values.saturating_mul(part.layout.count);
    if all > MAX_WHOLE {
        let reason = "the images lie crosswise and are too many to turn in memory; save the array with the images along its first axis";
        return Err(ReadError::source(&part.name, reason));
    }
    Ok(all)
}

fn range_of(part: &mut Part) -> Result<Span, ReadError> {
    let mut range = Span::empty();
    let step = step(part)?;
    // Whoever opened the array may have read it to its end already.
    part.reader.rewind()?;
    loop {
        let block = part.reader.read(step)?;
        range.add(&block);
        // Bytes need no look at all of them.
        if block.len() < step || range.bytes {
            break;
        }
    }
    if range.broken {
        return Err(ReadError::source(
            &part.name,
            "some values are not finite numbers; replace them and save the file again",
        ));
    }
    Ok(range)
}

fn stream_part(part: &mut Part, scale: Scale, sink: &mut Sink<'_>) -> Result<ControlFlow<()>, ReadError> {
    let step = step(part)?;
    let layout = part.layout;
    let mut index = 0;
    while index < layout.count {
        let block = part.reader.read(step)?;
        let held = if layout.streams() { block.len() / layout.values() } else { layout.count };
        if held == 0 || (!layout.streams() && block.len() < step) {
            let reason =
                format!("the data ends after {index} of {} images; copy or download the file again", layout.count);
            return Err(ReadError::source(&part.name, reason));
        }
        for k in 0..held.min(layout.count - index) {
            let content = Content::Pixels(image(&block, &layout, k, scale));
            let label = part.labels.as_ref().and_then(|l| l.get(index)).copied();
            if sink(Record { content, label, path: None }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            index += 1;
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The pixels of image `k` of a block, in our order.
fn image(block: &Block, layout: &Layout, k: usize, scale: Scale) -> Vec<u8> {
    let start = k * if layout.count == 1 { 0 } else { layout.image };
    let mut pixels = Vec::with_capacity(layout.values());
    match block {
        Block::Bytes(values) if layout.is_ours() => pixels.extend_from_slice(&values[start..start + layout.values()]),
        Block::Bytes(values) => layout.gather(start, values, |v| pixels.push(v)),
        Block::Floats(values) => layout.gather(start, values, |v| pixels.push(scale.apply(v))),
    }
    // As an image file with transparency would be.
    if layout.channels == 4 { dtkc_image::flatten(pixels) } else { pixels }
}

/// Labels from an array: one whole number per image, or one-hot rows.
pub fn labels_from(dims: &[usize], values: Vec<i64>) -> Result<Vec<i64>, String> {
    let long: Vec<usize> = dims.iter().copied().filter(|&d| d != 1).collect();
    match long[..] {
        [] | [_] => Ok(values),
        [rows, columns] => {
            let hot = |row: &[i64]| -> Option<i64> {
                let ones = row.iter().filter(|&&v| v == 1).count();
                let zeros = row.iter().filter(|&&v| v == 0).count();
                let place = row.iter().position(|&v| v == 1)?;
                (ones == 1 && ones + zeros == columns).then_some(place as i64)
            };
            let labels: Option<Vec<i64>> = values.chunks(columns).map(hot).collect();
            labels
                .filter(|l| l.len() == rows)
                .ok_or_else(|| format!("labels of shape {} are neither one number per image nor one-hot", show(dims)))
        }
        _ => Err(format!("labels of shape {} are not one number per image", show(dims))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::records;
    use super::layout::{Order, resolve};
    use super::*;

    /// An array in memory that counts how often it was started anew.
    struct Memory {
        values: Block,
        at: usize,
    }

    impl ArrayReader for Memory {
        fn read(&mut self, values: usize) -> Result<Block, ReadError> {
            let end = (self.at + values).min(self.values.len());
            let range = self.at..end;
            self.at = end;
            Ok(match &self.values {
                Block::Bytes(v) => Block::Bytes(v[range].to_vec()),
                Block::Floats(v) => Block::Floats(v[range].to_vec()),
            })
        }

        fn rewind(&mut self) -> Result<(), ReadError> {
            self.at = 0;
            Ok(())
        }
    }

    fn part(dims: &[usize], order: Order, values: Block, labels: Option<Vec<i64>>) -> Part {
        let layout = resolve(dims, order, None, labels.as_ref().map(Vec::len)).unwrap();
        Part { name: "test".to_owned(), layout, reader: Box::new(Memory { values, at: 0 }), labels }
    }

    fn collect(source: &mut ArrayImporter) -> Vec<(Vec<u8>, Option<i64>)> {
        let pixels = |record: Record| match record.content {
            Content::Pixels(pixels) => (pixels, record.label),
            other => panic!("not pixels: {other:?}"),
        };
        records(source).unwrap().into_iter().map(pixels).collect()
    }

    #[test]
    fn planes_become_pixels() {
        // Two RGB images of 1 x 2 pixels, stored as planes.
        let values = Block::Bytes(vec![1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16]);
        let part = part(&[2, 3, 1, 2], Order::RowMajor, values, Some(vec![7, 8]));
        let mut source = ArrayImporter::new(Arrays::new("test", vec![part])).unwrap();
        let expected = [(vec![1, 3, 5, 2, 4, 6], Some(7)), (vec![11, 13, 15, 12, 14, 16], Some(8))];
        assert_eq!(collect(&mut source), expected);
        assert_eq!(source.describe().classes, Classes::Numbers([7, 8].into()));
    }

    #[test]
    fn crosswise_arrays_are_turned() {
        // NumPy: np.arange(8).reshape(2, 2, 2, order="F")[0] is [[0, 4], [2, 6]], [..., 0] is [[0, 2], [1, 3]].
        for (order, expected) in [(Order::Fortran, [0, 4, 2, 6]), (Order::Matlab, [0, 2, 1, 3])] {
            let part = part(&[2, 2, 2], order, Block::Bytes((0..8).collect()), None);
            let mut source = ArrayImporter::new(Arrays::new("test", vec![part])).unwrap();
            assert_eq!(collect(&mut source)[0].0, expected);
        }
    }

    #[test]
    fn parts_are_scaled_alike() {
        let floats = |v: &[f32]| Block::Floats(v.to_vec());
        let a = part(&[1, 1, 2], Order::RowMajor, floats(&[-1.0, 0.0]), None);
        let b = part(&[1, 1, 2], Order::RowMajor, floats(&[0.0, 1.0]), None);
        let mut source = ArrayImporter::new(Arrays::new("test", vec![a, b])).unwrap();
        assert_eq!(collect(&mut source), [(vec![0, 128], None), (vec![128, 255], None)]);
        assert!(source.describe().notes[0].contains("from -1 to 1"));
    }

    #[test]
    fn two_signs_are_two_classes_and_other_negative_labels_are_none() {
        let numbers = |labels: &[i64], names: Option<Vec<String>>, ours: bool| {
            let part = part(
                &[labels.len(), 1, 1],
                Order::RowMajor,
                Block::Bytes(vec![0; labels.len()]),
                Some(labels.to_vec()),
            );
            let arrays = Arrays { names, ours, ..Arrays::new("test", vec![part]) };
            let mut source = ArrayImporter::new(arrays).unwrap();
            let labels: Vec<i64> = collect(&mut source).into_iter().map(|(_, label)| label.unwrap()).collect();
            (labels, source.description.classes, source.description.notes.len())
        };
        let both = vec!["-1".to_owned(), "1".to_owned()];
        assert_eq!(numbers(&[1, -1, 1], None, false), (vec![1, 0, 1], Classes::Names(both), 1));
        assert_eq!(numbers(&[1, -1, 1], None, true), (vec![1, -1, 1], Classes::Numbers([1].into()), 0));
        assert_eq!(numbers(&[0, -1, 1], None, false), (vec![0, -1, 1], Classes::Numbers([0, 1].into()), 0));
        assert_eq!(numbers(&[-1, -1], None, false), (vec![-1, -1], Classes::Numbers([].into()), 0));
        let named = vec!["cat".to_owned(), "dog".to_owned()];
        assert_eq!(numbers(&[1, -1], Some(named.clone()), false), (vec![1, -1], Classes::Names(named), 0));
    }

    #[test]
    fn a_short_array_is_reported_with_its_place() {
        let part = part(&[3, 1, 2], Order::RowMajor, Block::Bytes(vec![1, 2, 3, 4]), None);
        let mut source = ArrayImporter::new(Arrays::new("test", vec![part])).unwrap();
        let error = records(&mut source).unwrap_err();
        assert!(error.to_string().contains("after 2 of 3 images"), "{error}");
    }

    #[test]
    fn nan_and_different_sizes_are_refused() {
        let nan = part(&[1, 1, 2], Order::RowMajor, Block::Floats(vec![f32::NAN, 0.0]), None);
        assert!(ArrayImporter::new(Arrays::new("test", vec![nan])).err().unwrap().to_string().contains("finite"));
        let a = part(&[1, 1, 2], Order::RowMajor, Block::Bytes(vec![0; 2]), None);
        let b = part(&[1, 2, 2], Order::RowMajor, Block::Bytes(vec![0; 4]), None);
        assert!(ArrayImporter::new(Arrays::new("test", vec![a, b])).err().unwrap().to_string().contains("--size"));
    }

    #[test]
    fn labels_may_be_columns_or_one_hot() {
        assert_eq!(labels_from(&[3, 1], vec![4, 5, 6]), Ok(vec![4, 5, 6]));
        assert_eq!(labels_from(&[2, 3], vec![0, 1, 0, 1, 0, 0]), Ok(vec![1, 0]));
        assert!(labels_from(&[2, 3], vec![0, 2, 0, 1, 0, 0]).is_err());
        assert!(labels_from(&[2, 3, 4], vec![0; 24]).is_err());
    }

    #[test]
    fn transparency_is_laid_over_white() {
        let layout = resolve(&[1, 1, 1, 4], Order::RowMajor, None, None).unwrap();
        let block = Block::Bytes(vec![0, 100, 255, 128]);
        // Pillow: Image.alpha_composite(white, (0, 100, 255, 128)) is (127, 177, 255).
        assert_eq!(image(&block, &layout, 0, Scale::Keep), [127, 177, 255]);
    }
}
