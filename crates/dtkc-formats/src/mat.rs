//! MAT v5 (MATLAB 5 to 7.2): a header of 128 bytes, then elements, each with a type and a length; an
//! element may be a zlib stream that holds one. Only numeric arrays are of interest here, and they are
//! read as a stream: SVHN's `X` of shape (32, 32, 3, n) has one image after the other.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::ZlibDecoder;

use super::ReadError;
use super::arrays::layout::{FlatShape, Order, resolve, show};
use super::arrays::numeric::{Block, Number, NumberKind};
use super::arrays::pair::{self, Keys, Named};
use super::arrays::{ArrayReader, Part};
use super::stream;

const HEADER: usize = 128;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// The complex flag of an array's flags word.
const COMPLEX: u32 = 1 << 11;
/// More labels than this are not labels.
const MAX_LABELS: usize = 1 << 28;

/// Whether the first bytes are those of a MAT v5 file.
pub fn matches(head: &[u8]) -> bool {
    head.len() >= HEADER && matches!(&head[124..128], [0, 1, b'I', b'M'] | [1, 0, b'M', b'I'])
}

/// Whether the first bytes are those of a MAT v7.3 file, which is HDF5 with a MATLAB header.
pub fn matches_v73(head: &[u8]) -> bool {
    head.starts_with(b"MATLAB 7.3")
}

/// Where an array is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    start: u64,
    compressed: bool,
    big_endian: bool,
}

/// A numeric array of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Array {
    name: String,
    dims: Vec<usize>,
    number: Number,
    bytes: usize,
    place: Place,
}

/// Opens the arrays of images of a MAT file, with their labels.
pub fn open(path: &Path, keys: &Keys, flat: Option<FlatShape>) -> Result<Vec<Part>, ReadError> {
    let arrays = scan(path)?;
    let named: Vec<Named> = arrays.iter().map(|a| Named { name: a.name.clone(), dims: a.dims.clone() }).collect();
    let pairs = pair::find(&named, keys).map_err(|e| ReadError::file(path, e))?;
    let mut parts = Vec::new();
    for pair in pairs {
        let array = &arrays[pair.images];
        let name = format!("{} in {}", array.name, path.display());
        let labels = match pair.labels {
            Some(i) => Some(read_labels(path, &arrays[i])?),
            None => None,
        };
        let layout = resolve(&array.dims, Order::Matlab, flat, labels.as_ref().map(Vec::len))
            .map_err(|e| ReadError::source(&name, e))?;
        let reader = Box::new(MatReader { path: path.to_owned(), array: array.clone(), stream: None, left: 0 });
        parts.push(Part { name, layout, reader, labels });
    }
    Ok(parts)
}

fn read_labels(path: &Path, array: &Array) -> Result<Vec<i64>, ReadError> {
    let bad = |reason: String| ReadError::source(format!("{} in {}", array.name, path.display()), reason);
    if array.dims.iter().filter(|&&d| d != 1).count() > 1 {
        return Err(bad(format!("labels of shape {} are not one number per image", show(&array.dims))));
    }
    if array.bytes > MAX_LABELS {
        return Err(bad("there are too many labels".to_owned()));
    }
    let (_, mut stream) = open_array(path, array.place)?;
    let bytes = stream::read_exactly(&mut stream, array.bytes).map_err(|e| ReadError::read(path, e))?;
    array.number.integers(&bytes).ok_or_else(|| bad("labels must be whole numbers".to_owned()))
}

/// Lists the numeric arrays without reading their values.
fn scan(path: &Path) -> Result<Vec<Array>, ReadError> {
    let read = |e| ReadError::read(path, e);
    let mut file = BufReader::new(fs_err::File::open(path)?);
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).map_err(read)?;
    if !matches(&header) {
        return Err(ReadError::file(path, "this is not a MAT v5 file; save it in MATLAB with save(..., '-v7')"));
    }
    let big_endian = header[126] == b'M';
    let mut at = HEADER as u64;
    let mut arrays = Vec::new();
    while at + 8 <= length {
        file.seek(SeekFrom::Start(at))?;
        let (kind, size) = read_tag(&mut file, big_endian).map_err(read)?;
        if at + 8 + size as u64 > length {
            return Err(read(io::ErrorKind::UnexpectedEof.into()));
        }
        if matches!(kind, MATRIX | COMPRESSED) {
            let place = Place { start: at, compressed: kind == COMPRESSED, big_endian };
            if let (Some(array), _) = open_array(path, place)? {
                arrays.push(array);
            }
        }
        // Compressed elements are not padded; the others are multiples of eight by themselves.
        at += 8 + size as u64;
    }
    Ok(arrays)
}

/// Reads an array's description; the stream then stands at its values. `None` for anything that is not
/// a real numeric array.
fn open_array(path: &Path, place: Place) -> Result<(Option<Array>, Box<dyn Read + Send>), ReadError> {
    let mut file = BufReader::with_capacity(256 << 10, fs_err::File::open(path)?);
    file.seek(SeekFrom::Start(place.start))?;
    let (_, size) = read_tag(&mut file, place.big_endian).map_err(|e| ReadError::read(path, e))?;
    let content = file.take(size as u64);
    let mut stream: Box<dyn Read + Send> = if place.compressed {
        let mut unpacked = ZlibDecoder::new(content);
        // The packed element repeats the tag of the matrix that it holds.
        read_tag(&mut unpacked, place.big_endian).map_err(|e| ReadError::read(path, e))?;
        Box::new(BufReader::with_capacity(64 << 10, unpacked))
    } else {
        Box::new(content)
    };
    let array = describe(&mut stream, place).map_err(|e| ReadError::read(path, e))?;
    Ok((array, stream))
}

fn describe(stream: &mut dyn Read, place: Place) -> io::Result<Option<Array>> {
    let word = |bytes: &[u8], i: usize| -> u32 {
        let raw = [bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]];
        if place.big_endian { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
    };
    let (_, flags) = read_element(stream, place.big_endian)?;
    if flags.len() < 8 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an array without flags"));
    }
    let flags = word(&flags, 0);
    let class = flags & 0xff;
    // 6 to 15 are the numeric classes: double, single, and the integers.
    if !(6..=15).contains(&class) || flags & COMPLEX != 0 {
        return Ok(None);
    }
    let (_, dims) = read_element(stream, place.big_endian)?;
    let dims: Vec<usize> = (0..dims.len() / 4).map(|i| word(&dims, i * 4) as usize).collect();
    let (_, name) = read_element(stream, place.big_endian)?;
    let (kind, bytes, _) = read_any_tag(stream, place.big_endian)?;
    let Some(number) = number(kind, place.big_endian) else { return Ok(None) };
    let expected = dims.iter().try_fold(number.kind.size(), |n, &d| n.checked_mul(d));
    if expected != Some(bytes) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an array's size differs from its shape"));
    }
    let name = String::from_utf8_lossy(&name).into_owned();
    Ok(Some(Array { name, dims, number, bytes, place }))
}

/// A small element with its content, and the padding after it.
fn read_element(stream: &mut dyn Read, big_endian: bool) -> io::Result<(u32, Vec<u8>)> {
    let (kind, size, padding) = read_any_tag(stream, big_endian)?;
    if size > 1 << 16 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an array's description is too long"));
    }
    let bytes = stream::read_exactly(stream, size)?;
    stream::read_exactly(stream, padding)?;
    Ok((kind, bytes))
}

fn read_tag(stream: &mut dyn Read, big_endian: bool) -> io::Result<(u32, usize)> {
    let mut tag = [0; 8];
    stream.read_exact(&mut tag)?;
    let word = |b: [u8; 4]| if big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
    Ok((word([tag[0], tag[1], tag[2], tag[3]]), word([tag[4], tag[5], tag[6], tag[7]]) as usize))
}

/// A tag in the long form (8 bytes, then content padded to 8) or the short one (4 bytes, then 4 of content).
fn read_any_tag(stream: &mut dyn Read, big_endian: bool) -> io::Result<(u32, usize, usize)> {
    let word = |b: [u8; 4]| if big_endian { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
    let mut half = [0; 4];
    stream.read_exact(&mut half)?;
    let first = word(half);
    if first >> 16 != 0 {
        let size = (first >> 16) as usize;
        return Ok((first & 0xffff, size, 4usize.saturating_sub(size)));
    }
    stream.read_exact(&mut half)?;
    let size = word(half) as usize;
    Ok((first, size, (8 - size % 8) % 8))
}

fn number(kind: u32, big_endian: bool) -> Option<Number> {
    let kind = match kind {
        1 => NumberKind::I8,
        2 => NumberKind::U8,
        3 => NumberKind::I16,
        4 => NumberKind::U16,
        5 => NumberKind::I32,
        6 => NumberKind::U32,
        7 => NumberKind::F32,
        9 => NumberKind::F64,
        12 => NumberKind::I64,
        13 => NumberKind::U64,
        _ => return None,
    };
    Some(Number { kind, big_endian })
}

struct MatReader {
    path: PathBuf,
    array: Array,
    stream: Option<Box<dyn Read + Send>>,
    left: usize,
}

impl ArrayReader for MatReader {
    fn read(&mut self, values: usize) -> Result<Block, ReadError> {
        if self.stream.is_none() {
            self.rewind()?;
        }
        let wanted = (values * self.array.number.kind.size()).min(self.left);
        let bytes = match &mut self.stream {
            Some(stream) => stream::read_exactly(stream, wanted).map_err(|e| ReadError::read(&self.path, e))?,
            None => Vec::new(),
        };
        self.left -= wanted;
        Ok(self.array.number.block(bytes))
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.stream = Some(open_array(&self.path, self.array.place)?.1);
        self.left = self.array.bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written with scipy.io.savemat (do_compression as named): X is
    /// `numpy.arange(2 * 3 * 3 * 4).reshape(2, 3, 3, 4).astype("uint8")`, y is `[[1], [10], [2], [10]]` in f64,
    /// and there is a text and a complex array that must be passed over.
    const PLAIN: &[u8] = include_bytes!("../tests/fixtures/scipy_plain.mat");
    const PACKED: &[u8] = include_bytes!("../tests/fixtures/scipy_packed.mat");

    fn file(folder: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
        let path = folder.path().join("a.mat");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn scipy_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [PLAIN, PACKED] {
            let mut parts = open(&file(&folder, bytes), &Keys::default(), None).unwrap();
            let part = &mut parts[0];
            assert_eq!(part.labels, Some(vec![1, 10, 2, 10]));
            let layout = part.layout;
            assert_eq!((layout.count, layout.height, layout.width, layout.channels), (4, 2, 3, 3));
            part.reader.rewind().unwrap();
            let Block::Bytes(values) = part.reader.read(18).unwrap() else { panic!("not bytes") };
            let mut pixels = Vec::new();
            layout.gather(0, &values, |v| pixels.push(v));
            // X[:, :, :, 0] row by row.
            assert_eq!(pixels, (0..72).step_by(4).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn a_cut_file_is_reported_at_every_length() {
        let folder = tempfile::tempdir().unwrap();
        for bytes in [PLAIN, PACKED] {
            for end in (0..bytes.len()).step_by(7) {
                let path = file(&folder, &bytes[..end]);
                let result = open(&path, &Keys::default(), None).and_then(|mut p| p[0].reader.read(1000));
                // Behind the last array that matters the file is complete enough.
                if let Ok(block) = result {
                    assert_eq!(block.len(), 72, "cut at {end}");
                }
            }
        }
    }
}
