//! IDX: the format of MNIST and Fashion-MNIST. Two zero bytes, a type, the number of axes, their lengths
//! (big-endian), then the values. Images and labels are files of their own; gzipped or not.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::ReadError;
use super::arrays::layout::{Order, resolve, show};
use super::arrays::numeric::{Block, Number, NumberKind};
use super::arrays::{ArrayReader, Part, read_block};
use super::stream::{self, Stream};

/// What the first bytes of an IDX file say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    number: Number,
    dims: Vec<usize>,
}

/// Whether the first bytes look like IDX.
pub fn matches(head: &[u8]) -> bool {
    matches!(head, [0, 0, kind, 1..=4, ..] if number(*kind).is_some())
}

/// Whether the first bytes look like IDX labels: one axis.
pub fn matches_labels(head: &[u8]) -> bool {
    matches(head) && head[3] == 1
}

/// Opens a file of images and the file of labels that lies beside it, where there is one.
pub fn open(path: &Path) -> Result<Part, ReadError> {
    let (header, _) = read_header(path)?;
    if header.dims.len() < 2 {
        return Err(ReadError::file(
            path,
            "this IDX file holds labels; name the file of images, labels are found beside it",
        ));
    }
    let labels_path = labels_beside(path);
    let labels = labels_path.as_deref().map(read_labels).transpose()?;
    if let (Some(labels), Some(labels_path)) = (&labels, &labels_path)
        && labels.len() != header.dims[0]
    {
        let reason =
            format!("there are {} labels for the {} images of {}", labels.len(), header.dims[0], path.display());
        return Err(ReadError::file(labels_path, reason));
    }
    let layout = resolve(&header.dims, Order::RowMajor, None, None).map_err(|e| ReadError::file(path, e))?;
    let reader = Box::new(IdxReader { path: path.to_owned(), number: header.number, stream: None });
    Ok(Part { name: path.display().to_string(), layout, reader, labels })
}

/// The file of labels for a file of images: the same name with `labels` for `images` and `idx1` for
/// `idx3`, gzipped or not.
pub fn labels_beside(images: &Path) -> Option<PathBuf> {
    labels_names(images)?.into_iter().find(|path| path.is_file())
}

/// What that file may be called, the likeliest first.
pub fn labels_names(images: &Path) -> Option<[PathBuf; 2]> {
    let name = images.file_name()?.to_str()?;
    let wanted = name.strip_suffix(".gz").unwrap_or(name).replace("images", "labels").replace("Images", "Labels");
    if wanted == name.strip_suffix(".gz").unwrap_or(name) {
        return None;
    }
    let wanted = wanted.replace("idx3", "idx1").replace("idx4", "idx1");
    let same_kind = if name.ends_with(".gz") { [".gz", ""] } else { ["", ".gz"] };
    Some(same_kind.map(|end| images.with_file_name(format!("{wanted}{end}"))))
}

fn read_labels(path: &Path) -> Result<Vec<i64>, ReadError> {
    let (header, mut stream) = read_header(path)?;
    let [count] = header.dims[..] else {
        return Err(ReadError::file(path, format!("labels have one axis, not the shape {}", show(&header.dims))));
    };
    let size = count.saturating_mul(header.number.kind.size());
    let bytes = stream::read_exactly(&mut stream, size).map_err(|e| ReadError::read(path, e))?;
    header.number.integers(&bytes).ok_or_else(|| ReadError::file(path, "the labels are not whole numbers"))
}

fn read_header(path: &Path) -> Result<(Header, Stream), ReadError> {
    let mut stream = stream::open(path)?;
    let mut word = [0; 4];
    let mut next =
        |stream: &mut Stream| stream.read_exact(&mut word).map(|()| word).map_err(|e| ReadError::read(path, e));
    let magic = next(&mut stream)?;
    let kind = if matches(&magic) { number(magic[2]) } else { None };
    let Some(kind) = kind else {
        return Err(ReadError::file(path, "this is not an IDX file"));
    };
    let mut dims = Vec::new();
    for _ in 0..magic[3] {
        dims.push(u32::from_be_bytes(next(&mut stream)?) as usize);
    }
    Ok((Header { number: Number { kind, big_endian: true }, dims }, stream))
}

fn number(code: u8) -> Option<NumberKind> {
    Some(match code {
        0x08 => NumberKind::U8,
        0x09 => NumberKind::I8,
        0x0b => NumberKind::I16,
        0x0c => NumberKind::I32,
        0x0d => NumberKind::F32,
        0x0e => NumberKind::F64,
        _ => return None,
    })
}

struct IdxReader {
    path: PathBuf,
    number: Number,
    stream: Option<Stream>,
}

impl ArrayReader for IdxReader {
    fn read(&mut self, values: usize) -> Result<Block, ReadError> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(read_header(&self.path)?.1),
        };
        read_block(stream, self.number, values).map_err(|e| ReadError::read(&self.path, e))
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.stream = Some(read_header(&self.path)?.1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dtkc_testing::files::{gz, idx};

    use super::*;

    #[test]
    fn images_and_labels_are_read_gzipped_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("train-images-idx3-ubyte.gz");
        std::fs::write(&images, gz(&idx(&[2, 2, 3], &(0..12).collect::<Vec<u8>>()))).unwrap();
        std::fs::write(folder.path().join("train-labels-idx1-ubyte"), idx(&[2], &[7, 3])).unwrap();
        let mut part = open(&images).unwrap();
        assert_eq!(part.labels, Some(vec![7, 3]));
        assert_eq!((part.layout.count, part.layout.height, part.layout.width), (2, 2, 3));
        for _ in 0..2 {
            part.reader.rewind().unwrap();
            assert_eq!(part.reader.read(6).unwrap(), Block::Bytes((0..6).collect()));
            assert_eq!(part.reader.read(100).unwrap(), Block::Bytes((6..12).collect()));
        }
    }

    #[test]
    fn labels_of_the_wrong_length_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let images = folder.path().join("train-images-idx3-ubyte");
        std::fs::write(&images, idx(&[2, 1, 1], &[1, 2])).unwrap();
        std::fs::write(folder.path().join("train-labels-idx1-ubyte"), idx(&[3], &[7, 3, 1])).unwrap();
        let error = open(&images).err().unwrap().to_string();
        assert!(error.contains("3 labels for the 2 images"), "{error}");
        std::fs::write(folder.path().join("train-labels-idx1-ubyte"), idx(&[2], &[7])).unwrap();
        assert!(open(&images).err().unwrap().to_string().contains("cut off"));
    }

    #[test]
    fn heads_are_told_apart() {
        assert!(matches(&idx(&[2, 1, 1], &[])) && !matches_labels(&idx(&[2, 1, 1], &[])));
        assert!(matches_labels(&idx(&[2], &[])));
        for head in [&b""[..], b"\0\0", b"\0\0\x07\x03", b"PK\x03\x04", b"\0\0\x08\x09"] {
            assert!(!matches(head), "{head:?}");
        }
    }
}
