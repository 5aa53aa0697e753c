//! NumPy's .npy (one array) and .npz (a zip of them).

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use dtkc_source::order;
use dtkc_source::zip::ZipProblem;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::ReadError;
use super::arrays::layout::{FlatShape, Order, resolve};
use super::arrays::numeric::{Block, Number, NumberKind};
use super::arrays::pair::{self, Keys, Named, Pair};
use super::arrays::{ArrayReader, Arrays, Part, labels_from, read_block};
use super::stacked::{Chosen, StackImporter};
use super::stream;
use super::words::{Given, Words, settle};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longer headers than this are not written by anything.
const MAX_HEADER: usize = 1 << 20;
/// More labels than this are not labels.
const MAX_LABELS: usize = 1 << 28;
/// Nor are so many bytes of words.
const MAX_WORDS: usize = 1 << 30;

/// Whether the first bytes are those of a .npy file.
pub fn matches(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// What an array's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The type, where it is one of numbers.
    pub number: Option<Number>,
    words: Option<Words>,
    /// Whether it holds Python objects.
    objects: bool,
    /// Which axis varies fastest.
    pub order: Order,
    /// The shape.
    pub dims: Vec<usize>,
}

/// Where an array is: a file of its own, or an entry of a zip.
#[derive(Debug, Clone)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// An entry of a zip.
    #[allow(missing_docs)]
    Entry { path: PathBuf, start: u64, packed: u64, deflated: bool },
}

impl Place {
    fn open(&self) -> Result<Box<dyn Read + Send>, ReadError> {
        match self {
            Self::File(path) => Ok(Box::new(BufReader::with_capacity(256 << 10, fs_err::File::open(path)?))),
            Self::Entry { path, start, packed, deflated } => {
                let mut file = fs_err::File::open(path)?;
                file.seek(SeekFrom::Start(*start))?;
                let packed = BufReader::with_capacity(256 << 10, file).take(*packed);
                Ok(if *deflated { Box::new(DeflateDecoder::new(packed)) } else { Box::new(packed) })
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Entry { path, .. } => path,
        }
    }
}

/// Opens a .npy file of images. Labels come from a file beside it whose name says so: `x_train.npy` and
/// `y_train.npy`, `images.npy` and `labels.npy`.
pub fn open_npy(path: &Path, flat: Option<FlatShape>) -> Result<Arrays, ReadError> {
    let (header, _) = read_header(&Place::File(path.to_owned()))?;
    let labels = read_labels_beside(path)?;
    let (labels, names) = settle(vec![labels]).map_err(|e| ReadError::file(path, e))?;
    let labels = labels.into_iter().next().flatten();
    let part = part(Place::File(path.to_owned()), path.display().to_string(), &header, flat, labels)?;
    Ok(Arrays { names, ..Arrays::new("NumPy array", vec![part]) })
}

/// Opens a .npy file of sequences; labels as with images.
pub fn open_npy_sequences(path: &Path) -> Result<StackImporter, ReadError> {
    let place = Place::File(path.to_owned());
    let (header, _) = read_header(&place)?;
    let entry = (path.display().to_string(), place, header);
    StackImporter::stacked(path, vec![Chosen { entry, labels: read_labels_beside(path)? }])
}

fn read_labels_beside(path: &Path) -> Result<Option<Given>, ReadError> {
    let beside = labels_beside(path);
    beside.map(|labels| read_labels(&Place::File(labels.clone()), &labels.display().to_string())).transpose()
}

/// Whether a .npy file is named as the labels of another that lies beside it.
pub fn is_labels(path: &Path) -> bool {
    siblings(path).is_some_and(|(names, me)| {
        pair::find(&names, &Keys::default()).is_ok_and(|p| p.iter().any(|p| p.labels == Some(me)))
    })
}

/// The file of labels for a file of images, by their names.
pub fn labels_beside(path: &Path) -> Option<PathBuf> {
    let (names, me) = siblings(path)?;
    let pairs = pair::find(&names, &Keys::default()).ok()?;
    let labels = pairs.iter().find(|p| p.images == me)?.labels?;
    Some(path.with_file_name(format!("{}.npy", names[labels].name)))
}

/// The .npy files of a folder as named arrays, and which of them `path` is.
fn siblings(path: &Path) -> Option<(Vec<Named>, usize)> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "npy"));
    files.sort();
    let mut names = Vec::new();
    let mut me = None;
    for file in files {
        let Ok((header, _)) = read_header(&Place::File(file.clone())) else { continue };
        if file.file_name() == path.file_name() {
            me = Some(names.len());
        }
        names.push(Named { name: file.file_stem()?.to_str()?.to_owned(), dims: header.dims });
    }
    Some((names, me?))
}

/// Opens the arrays of images of a .npz file; parts such as train and test are joined.
pub fn open_npz(path: &Path, keys: &Keys, flat: Option<FlatShape>) -> Result<Arrays, ReadError> {
    let (entries, pairs) = find_pairs(path, keys)?;
    let shown = |name: &str| format!("{} in {}", name, path.display());
    let read = |i: usize| read_labels(&entries[i].1, &shown(&entries[i].0));
    let given = pairs.iter().map(|pair| pair.labels.map(read).transpose()).collect::<Result<Vec<_>, _>>()?;
    let (labels, names) = settle(given).map_err(|e| ReadError::file(path, e))?;
    let mut parts = Vec::new();
    for (pair, labels) in pairs.iter().zip(labels) {
        let (name, place, header) = &entries[pair.images];
        parts.push(part(place.clone(), shown(name), header, flat, labels)?);
    }
    Ok(Arrays { names, ..Arrays::new("NumPy arrays", parts) })
}

/// Opens a .npz file of sequences: `values` and `offsets`, or, where `wanted` says so, arrays `[n, time, dim]`. `None` where
/// there are none of the first kind.
pub fn open_npz_sequences(path: &Path, keys: &Keys, wanted: bool) -> Result<Option<StackImporter>, ReadError> {
    let (all, _) = entries(path)?;
    let named = |name: &str| all.iter().find(|entry| entry.0 == name).cloned();
    let shown = |(name, place, header): Entry| (format!("{} in {}", name, path.display()), place, header);
    if let (Some(values), Some(offsets)) = (named("values"), named("offsets")) {
        let labels = named(keys.labels.as_deref().unwrap_or("labels"));
        let labels = labels.map(|labels| read_labels(&labels.1, &shown(labels.clone()).0)).transpose()?;
        return StackImporter::packed(path, Chosen { entry: shown(values), labels }, &offsets).map(Some);
    }
    if !wanted {
        return Ok(None);
    }
    let (entries, pairs) = find_pairs(path, keys)?;
    let mut chosen = Vec::new();
    for Pair { images, labels } in pairs {
        let labels = labels.map(|i| read_labels(&entries[i].1, &shown(entries[i].clone()).0)).transpose()?;
        chosen.push(Chosen { entry: shown(entries[images].clone()), labels });
    }
    StackImporter::stacked(path, chosen).map(Some)
}

/// An array of a .npz file: its name, where it is, what it holds.
pub type Entry = (String, Place, Header);

/// Python objects are stored as programs that make them.
fn pickled() -> &'static str {
    "it holds Python objects (a pickle), which are not read because they can run any program; for sequences save \
     numpy.savez('x.npz', values=numpy.concatenate(sequences), offsets=numpy.cumsum([0] + [len(s) for s in sequences]), \
     labels=labels)"
}

/// What are images and what are labels.
fn find_pairs(path: &Path, keys: &Keys) -> Result<(Vec<Entry>, Vec<Pair>), ReadError> {
    let (entries, objects) = entries(path)?;
    pairs_of(entries, keys).map_err(|reason| match objects {
        Some(name) => ReadError::source(format!("{name} in {}", path.display()), pickled()),
        None => ReadError::file(path, reason),
    })
}

/// Words are labels only where no numbers are.
fn pairs_of(entries: Vec<Entry>, keys: &Keys) -> Result<(Vec<Entry>, Vec<Pair>), String> {
    let find = |entries: &[Entry]| {
        let named = |(name, _, header): &Entry| Named { name: name.clone(), dims: header.dims.clone() };
        pair::find(&entries.iter().map(named).collect::<Vec<_>>(), keys)
    };
    let numbers: Vec<Entry> = entries.iter().filter(|(_, _, header)| header.number.is_some()).cloned().collect();
    match find(&numbers) {
        Ok(pairs) if pairs.iter().any(|pair| pair.labels.is_some()) => Ok((numbers, pairs)),
        _ => find(&entries).map(|pairs| (entries, pairs)),
    }
}

fn damaged(path: &Path, error: &zip::result::ZipError) -> ReadError {
    ReadError::file(path, ZipProblem::Damaged(error.to_string()))
}

/// The names of the arrays of a zip, without reading them; empty where it holds none.
pub fn array_names(path: &Path) -> Result<Vec<String>, ReadError> {
    let file = dtkc_source::remote::File::open(path).map_err(|e| ReadError::file(path, e))?;
    let archive = ZipArchive::new(std::io::BufReader::new(file)).map_err(|e| damaged(path, &e))?;
    let names = archive.file_names().filter_map(Result::ok);
    Ok(names.filter_map(|n| n.strip_suffix(".npy").map(str::to_owned)).collect())
}

/// The arrays that we may read, and the name of one that holds objects.
fn entries(path: &Path) -> Result<(Vec<Entry>, Option<String>), ReadError> {
    let mut archive = ZipArchive::new(fs_err::File::open(path)?).map_err(|e| damaged(path, &e))?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut objects = None;
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(|e| damaged(path, &e))?;
        let Some(name) = entry.name().ok().and_then(|n| n.strip_suffix(".npy").map(str::to_owned)) else { continue };
        let deflated = match entry.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => {
                let reason = format!("array {name} is packed with {other}; save the file with numpy.savez_compressed");
                return Err(ReadError::file(path, reason));
            }
        };
        let Some(start) = entry.data_start() else { continue };
        let place = Place::Entry { path: path.to_owned(), start, packed: entry.compressed_size(), deflated };
        let (header, _) = read_header(&place)?;
        // Words can be labels; objects, and tables of words, are nothing that we read.
        let list_of_words = header.words.is_some() && header.dims.iter().filter(|&&d| d != 1).count() <= 1;
        if header.objects {
            objects = Some(name);
        } else if header.number.is_some() || list_of_words {
            entries.push((name, place, header));
        }
    }
    // As many words as there are classes are their names, not labels.
    let counts: Vec<usize> = entries.iter().filter(|e| e.2.dims.len() > 1).map(|e| e.2.dims[0]).collect();
    let packed = entries.iter().any(|e| e.0 == "offsets");
    let total = |header: &Header| header.dims.iter().fold(1usize, |n, &d| n.saturating_mul(d));
    entries.retain(|(_, _, header)| header.number.is_some() || packed || counts.contains(&total(header)));
    entries.sort_by(|a, b| order::natural(&a.0, &b.0));
    Ok((entries, objects))
}

fn part(
    place: Place,
    name: String,
    header: &Header,
    flat: Option<FlatShape>,
    labels: Option<Vec<i64>>,
) -> Result<Part, ReadError> {
    let reader = NpyReader::new(place, header, &name)?;
    let layout = resolve(&header.dims, header.order, flat, labels.as_ref().map(Vec::len))
        .map_err(|e| ReadError::source(&name, e))?;
    Ok(Part { name, layout, reader: Box::new(reader), labels })
}

fn read_labels(place: &Place, name: &str) -> Result<Given, ReadError> {
    let (header, mut stream) = read_header(place)?;
    let count = header.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MAX_LABELS);
    let Some(count) = count else {
        return Err(ReadError::source(name, "there are too many labels"));
    };
    let mut read =
        |size: usize| stream::read_exactly(&mut stream, count * size).map_err(|e| ReadError::read(place.path(), e));
    let neither = || ReadError::source(name, "labels must be whole numbers or words");
    match (header.number, header.words) {
        (Some(number), _) => {
            let values = number.integers(&read(number.kind.size())?).ok_or_else(neither)?;
            labels_from(&header.dims, values).map(Given::Numbers).map_err(|e| ReadError::source(name, e))
        }
        (None, Some(words)) if words.size().saturating_mul(count) <= MAX_WORDS => {
            Ok(Given::Words(words.read(&read(words.size())?, count)))
        }
        (None, Some(_)) => Err(ReadError::source(name, "the labels are too long to be names of classes")),
        (None, None) => Err(neither()),
    }
}

/// What an array's header says, and the stream behind it.
pub fn read_header(place: &Place) -> Result<(Header, Box<dyn Read + Send>), ReadError> {
    let bad = |reason: &str| ReadError::file(place.path(), reason);
    let read = |e| ReadError::read(place.path(), e);
    let mut stream = place.open()?;
    let mut fixed = [0; 8];
    stream.read_exact(&mut fixed).map_err(read)?;
    if !matches(&fixed) {
        return Err(bad("this is not a NumPy array"));
    }
    let mut length = [0; 4];
    let width = if fixed[6] == 1 { 2 } else { 4 };
    stream.read_exact(&mut length[..width]).map_err(read)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(bad("the NumPy header is damaged; save the array again"));
    }
    let text = stream::read_exactly(&mut stream, length).map_err(read)?;
    let text = String::from_utf8_lossy(&text);
    let header = parse_header(&text).ok_or_else(|| bad("the NumPy header is damaged; save the array again"))?;
    Ok((header, stream))
}

/// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 28, 28), }`
fn parse_header(text: &str) -> Option<Header> {
    let value = |key: &str| Some(text.split_once(key)?.1.split_once(':')?.1.trim_start());
    let descr = value("'descr'")?;
    // Anything that is not a quoted string describes a structured array, which holds no images.
    let kind = descr.strip_prefix('\'').and_then(|d| d.split('\'').next());
    let (number, words) = (kind.and_then(parse_number), kind.and_then(Words::parse));
    let objects = kind == Some("|O");
    let order = match value("'fortran_order'")? {
        v if v.starts_with("True") => Order::Fortran,
        v if v.starts_with("False") => Order::RowMajor,
        _ => return None,
    };
    let inside = value("'shape'")?.strip_prefix('(')?.split(')').next()?;
    let dims: Option<Vec<usize>> = inside
        .split(',')
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .map(|d| d.trim_end_matches('L').parse().ok())
        .collect();
    Some(Header { number, words, objects, order, dims: dims? })
}

fn parse_number(descr: &str) -> Option<Number> {
    let mut chars = descr.chars();
    let big_endian = chars.next()? == '>';
    let kind = match chars.as_str() {
        "b1" => NumberKind::Bool,
        "u1" => NumberKind::U8,
        "i1" => NumberKind::I8,
        "u2" => NumberKind::U16,
        "i2" => NumberKind::I16,
        "u4" => NumberKind::U32,
        "i4" => NumberKind::I32,
        "u8" => NumberKind::U64,
        "i8" => NumberKind::I64,
        "f2" => NumberKind::F16,
        "f4" => NumberKind::F32,
        "f8" => NumberKind::F64,
        _ => return None,
    };
    Some(Number { kind, big_endian })
}

/// Reads one array.
pub struct NpyReader {
    place: Place,
    number: Number,
    stream: Option<Box<dyn Read + Send>>,
}

impl NpyReader {
    /// For an array of numbers; others are refused.
    pub fn new(place: Place, header: &Header, name: &str) -> Result<Self, ReadError> {
        match header.number {
            Some(number) => Ok(Self { place, number, stream: None }),
            None if header.objects => Err(ReadError::source(name, pickled())),
            None => Err(ReadError::source(name, "the array does not hold numbers")),
        }
    }
}

impl ArrayReader for NpyReader {
    fn read(&mut self, values: usize) -> Result<Block, ReadError> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(read_header(&self.place)?.1),
        };
        read_block(stream, self.number, values).map_err(|e| ReadError::read(self.place.path(), e))
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.stream = Some(read_header(&self.place)?.1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array3, ShapeBuilder};
    use ndarray_npy::{WriteNpyExt, write_npy};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn headers_of_all_kinds() {
        let header = parse_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 28, 28), }   \n").unwrap();
        assert_eq!(header.dims, [3, 28, 28]);
        assert_eq!(header.number, Some(Number { kind: NumberKind::F32, big_endian: false }));
        assert_eq!(header.order, Order::RowMajor);
        let one = parse_header("{'descr': '>i8', 'fortran_order': True, 'shape': (3,), }").unwrap();
        assert_eq!((one.dims, one.order), (vec![3], Order::Fortran));
        assert_eq!(parse_header("{'descr': '<U10', 'fortran_order': False, 'shape': (3,), }").unwrap().number, None);
        assert_eq!(
            parse_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }").unwrap().number,
            None
        );
        for text in [
            "",
            "{}",
            "{'descr': '<f4', 'fortran_order': 1, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        ] {
            assert_eq!(parse_header(text), None, "{text}");
        }
    }

    #[test]
    fn files_written_by_another_program_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let images = Array3::from_shape_fn((2, 2, 3), |(n, y, x)| (n * 6 + y * 3 + x) as u8);
        write_npy(folder.path().join("x_train.npy"), &images).unwrap();
        write_npy(folder.path().join("y_train.npy"), &Array1::from(vec![4i64, 9])).unwrap();
        let path = folder.path().join("x_train.npy");
        let mut part = open_npy(&path, None).unwrap().parts.remove(0);
        assert_eq!(part.labels, Some(vec![4, 9]));
        assert_eq!(part.reader.read(6).unwrap(), Block::Bytes((0..6).collect()));
        assert!(is_labels(&folder.path().join("y_train.npy")) && !is_labels(&path));
    }

    #[test]
    fn fortran_order_is_turned() {
        let folder = tempfile::tempdir().unwrap();
        let images = Array3::from_shape_fn((2, 2, 3).f(), |(n, y, x)| (n * 6 + y * 3 + x) as f32);
        let path = folder.path().join("images.npy");
        write_npy(&path, &images).unwrap();
        write_npy(folder.path().join("labels.npy"), &Array1::from(vec![4i32, 9])).unwrap();
        let part = open_npy(&path, None).unwrap().parts.remove(0);
        assert_eq!((part.layout.count, part.layout.height, part.layout.width, part.layout.image), (2, 2, 3, 1));
    }

    #[test]
    fn npz_parts_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mnist.npz");
        let mut npz = ZipWriter::new(std::fs::File::create(&path).unwrap());
        let packed = SimpleFileOptions::default();
        npz.start_file("x_test.npy", packed).unwrap();
        Array3::<u8>::ones((1, 2, 2)).write_npy(&mut npz).unwrap();
        npz.start_file("x_train.npy", packed).unwrap();
        Array3::<u8>::zeros((2, 2, 2)).write_npy(&mut npz).unwrap();
        npz.start_file("y_test.npy", packed).unwrap();
        Array1::from(vec![5u8]).write_npy(&mut npz).unwrap();
        npz.start_file("y_train.npy", packed).unwrap();
        Array1::from(vec![6u8, 7]).write_npy(&mut npz).unwrap();
        npz.finish().unwrap();
        let mut parts = open_npz(&path, &Keys::default(), None).unwrap().parts;
        let labels: Vec<_> = parts.iter().map(|p| p.labels.clone().unwrap()).collect();
        assert_eq!(labels, [vec![6, 7], vec![5]]);
        assert_eq!(parts[1].reader.read(9).unwrap(), Block::Bytes(vec![1; 4]));
        assert_eq!(array_names(&path).unwrap().len(), 4);
    }
}
