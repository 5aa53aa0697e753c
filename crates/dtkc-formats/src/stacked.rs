//! NumPy files of sequences: `values` and `offsets` in a .npz, as our own files have them, or arrays `[n, time, dim]`.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use super::ReadError;
use super::arrays::layout::{Layout, Order, resolve, show};
use super::arrays::numeric::Block;
use super::arrays::{ArrayReader, BLOCK_VALUES, MAX_WHOLE};
use super::npy::{Entry, NpyReader, read_header};
use super::record::{Classes, Content, ContentForm, Description, Importer, Record, Sink};
use super::sequences::{MAX_DIM, MAX_VALUES, without_padding};
use super::stream::read_exactly;
use super::words::{Given, settle};

/// More sequences than this are not in one file.
const MAX_SEQUENCES: usize = 1 << 26;

/// Arrays of sequences with their labels, one after the other.
pub struct StackImporter {
    parts: Vec<Part>,
    description: Description,
}

/// One array.
struct Part {
    name: String,
    reader: NpyReader,
    shape: Shape,
    labels: Option<Vec<i64>>,
}

/// How sequences lie in an array.
enum Shape {
    /// All of one length.
    Stacked(Layout),
    /// One after the other; where each begins, and the end.
    Packed { dim: usize, offsets: Vec<usize> },
}

impl Shape {
    fn dim(&self) -> usize {
        match self {
            Self::Stacked(layout) => layout.width,
            Self::Packed { dim, .. } => *dim,
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Stacked(layout) => layout.count,
            Self::Packed { offsets, .. } => offsets.len() - 1,
        }
    }
}

/// An array that was chosen, and its labels.
pub struct Chosen {
    /// The array.
    pub entry: Entry,
    /// Its labels.
    pub labels: Option<Given>,
}

impl StackImporter {
    /// Arrays `[n, time, dim]`, or `[n, time]` of one dimension.
    pub fn stacked(path: &Path, chosen: Vec<Chosen>) -> Result<Self, ReadError> {
        let parts = chosen.into_iter().map(|Chosen { entry, labels }| Ok((stacked(entry)?, labels)));
        Self::new(path, parts.collect::<Result<_, ReadError>>()?)
    }

    /// The arrays `values` and `offsets`.
    pub fn packed(path: &Path, chosen: Chosen, offsets: &Entry) -> Result<Self, ReadError> {
        let part = packed(path, chosen.entry, offsets)?;
        Self::new(path, vec![(part, chosen.labels)])
    }

    fn new(path: &Path, parts: Vec<(Part, Option<Given>)>) -> Result<Self, ReadError> {
        let (mut parts, given): (Vec<Part>, Vec<Option<Given>>) = parts.into_iter().unzip();
        let Some(dim) = parts.first().map(|part| part.shape.dim()) else {
            return Err(ReadError::file(path, "there are no sequences"));
        };
        if let Some(other) = parts.iter().find(|part| part.shape.dim() != dim) {
            let reason = format!("it has {} values a step, {} has {dim}", other.shape.dim(), parts[0].name);
            return Err(ReadError::source(&other.name, reason));
        }
        let (labels, names) = settle(given).map_err(|e| ReadError::file(path, e))?;
        for (part, labels) in parts.iter_mut().zip(labels) {
            let found = labels.as_ref().map_or(part.shape.count(), Vec::len);
            if found != part.shape.count() {
                let reason = format!("there are {found} labels for {} sequences", part.shape.count());
                return Err(ReadError::source(&part.name, reason));
            }
            part.labels = labels;
        }
        let description = Description {
            count: Some(parts.iter().map(|part| part.shape.count() as u64).sum()),
            classes: classes(&mut parts, names),
            origin: path.file_name().map(|name| name.to_string_lossy().into_owned()),
            ..Description::new("NumPy sequences", ContentForm::Sequences { dim })
        };
        Ok(Self { parts, description })
    }
}

/// The classes of all parts; none where a part has no labels.
fn classes(parts: &mut [Part], names: Option<Vec<String>>) -> Classes {
    if parts.iter().any(|part| part.labels.is_none()) {
        parts.iter_mut().for_each(|part| part.labels = None);
        return Classes::None;
    }
    let all = parts.iter().filter_map(|part| part.labels.as_ref()).flatten().copied();
    names.map_or_else(|| Classes::Numbers(all.filter(|&label| label >= 0).collect::<BTreeSet<_>>()), Classes::Names)
}

fn stacked((name, place, header): Entry) -> Result<Part, ReadError> {
    let bad = |reason: String| ReadError::source(&name, reason);
    let dims = match header.dims[..] {
        [n, time] => [n, time, 1],
        [n, time, dim] => [n, time, dim],
        _ => {
            let shown = show(&header.dims);
            return Err(bad(format!(
                "an array of shape {shown} cannot hold sequences; save [n, time, dim] or [n, time]"
            )));
        }
    };
    let values = dims[1].saturating_mul(dims[2]);
    if !(1..=MAX_VALUES).contains(&values) || dims[2] > MAX_DIM {
        let shown = show(&header.dims);
        return Err(bad(format!(
            "an array of shape {shown} has sequences of {values} values; 1 to {MAX_VALUES} are read"
        )));
    }
    let layout = resolve(&dims, header.order, None, None).map_err(bad)?;
    let reader = NpyReader::new(place, &header, &name)?;
    Ok(Part { name, reader, shape: Shape::Stacked(layout), labels: None })
}

fn packed(path: &Path, (name, place, header): Entry, offsets: &Entry) -> Result<Part, ReadError> {
    let bad = |reason: String| ReadError::file(path, reason);
    let (steps, dim) = match (&header.dims[..], header.order) {
        ([steps], _) => (*steps, 1),
        ([steps, dim], Order::RowMajor) => (*steps, *dim),
        ([_, _], _) => return Err(bad("'values' is in Fortran order; save numpy.ascontiguousarray of it".to_owned())),
        (dims, _) => return Err(bad(format!("'values' has the shape {}, not [all steps, dim]", show(dims)))),
    };
    if !(1..=MAX_DIM).contains(&dim) {
        return Err(bad(format!("'values' has {dim} values a step; 1 to {MAX_DIM} are read")));
    }
    let offsets = read_offsets(path, offsets)?;
    let ordered = offsets.first() == Some(&0) && offsets.is_sorted() && offsets.last() == Some(&steps);
    if offsets.len() < 2 || !ordered {
        return Err(bad(format!(
            "'offsets' must lead from 0 to the {steps} rows of 'values' and never fall; make it with \
             numpy.cumsum([0] + [len(s) for s in sequences])"
        )));
    }
    if let Some(long) = offsets.windows(2).position(|w| (w[1] - w[0]).saturating_mul(dim) > MAX_VALUES) {
        return Err(bad(format!("sequence {} has more than {MAX_VALUES} values", long + 1)));
    }
    let reader = NpyReader::new(place, &header, &name)?;
    Ok(Part { name, reader, shape: Shape::Packed { dim, offsets }, labels: None })
}

fn read_offsets(path: &Path, (_, place, _): &Entry) -> Result<Vec<usize>, ReadError> {
    let (header, mut stream) = read_header(place)?;
    let whole = || ReadError::file(path, "'offsets' must be a list of whole numbers");
    let (&[count], Some(number)) = (&header.dims[..], header.number) else { return Err(whole()) };
    if count > MAX_SEQUENCES {
        return Err(ReadError::file(path, format!("'offsets' has {count} numbers; at most {MAX_SEQUENCES} are read")));
    }
    let bytes = read_exactly(&mut stream as &mut dyn Read, count * number.kind.size());
    let numbers = number.integers(&bytes.map_err(|e| ReadError::read(path, e))?).ok_or_else(whole)?;
    numbers.into_iter().map(|offset| usize::try_from(offset).map_err(|_| whole())).collect()
}

impl Importer for StackImporter {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        for part in &mut self.parts {
            part.reader.rewind()?;
            let flow = match &part.shape {
                Shape::Stacked(_) => part.stream_stacked(sink)?,
                Shape::Packed { .. } => part.stream_packed(sink)?,
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Part {
    fn record(labels: Option<&Vec<i64>>, index: usize, values: Vec<f32>) -> Record {
        let label = labels.and_then(|labels| labels.get(index)).copied();
        Record { content: Content::Sequence(values), label, path: None }
    }

    fn cut_off(name: &str, index: usize, count: usize) -> ReadError {
        let reason = format!("the data ends after {index} of {count} sequences; copy or save the file again");
        ReadError::source(name, reason)
    }

    fn stream_stacked(&mut self, sink: &mut Sink<'_>) -> Result<ControlFlow<()>, ReadError> {
        let Self { name, reader, shape: Shape::Stacked(layout), labels } = self else {
            return Ok(ControlFlow::Continue(()));
        };
        let (each, count) = (layout.values(), layout.count);
        let step = match layout.streams() {
            true => each * (BLOCK_VALUES / each).max(1),
            false => each.saturating_mul(count),
        };
        if !layout.streams() && step > MAX_WHOLE {
            let reason =
                "the array is in Fortran order and too large to turn in memory; save numpy.ascontiguousarray of it";
            return Err(ReadError::source(&*name, reason));
        }
        let mut index = 0;
        while index < count {
            let block = floats(reader.read(step)?);
            let held = if layout.streams() { block.len() / each } else { count };
            if held == 0 || (!layout.streams() && block.len() < step) {
                return Err(Self::cut_off(name, index, count));
            }
            for k in 0..held.min(count - index) {
                let mut values = Vec::with_capacity(each);
                layout.gather(k * if count == 1 { 0 } else { layout.image }, &block, |value| values.push(value));
                // Shorter sequences are filled up with NaN, as many programs do.
                without_padding(&mut values, layout.width);
                if sink(Self::record(labels.as_ref(), index, values)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                index += 1;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn stream_packed(&mut self, sink: &mut Sink<'_>) -> Result<ControlFlow<()>, ReadError> {
        let Self { name, reader, shape: Shape::Packed { dim, offsets }, labels } = self else {
            return Ok(ControlFlow::Continue(()));
        };
        for (index, ends) in offsets.windows(2).enumerate() {
            let wanted = (ends[1] - ends[0]) * *dim;
            let values = if wanted == 0 { Vec::new() } else { floats(reader.read(wanted)?) };
            if values.len() < wanted {
                return Err(Self::cut_off(name, index, offsets.len() - 1));
            }
            if sink(Self::record(labels.as_ref(), index, values)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn floats(block: Block) -> Vec<f32> {
    match block {
        Block::Floats(values) => values,
        Block::Bytes(values) => values.into_iter().map(f32::from).collect(),
    }
}
