//! HDF5 files of another origin: any array of images with labels beside it, in any group. MAT v7.3 files
//! are HDF5 too, with their axes in reverse order.

use std::path::{Path, PathBuf};

use dtkc_dataset::{Dataset, h5, schema, trial};
use hdf5::types::TypeDescriptor;
use hdf5::{Group, Hyperslab, LinkType, SliceOrIndex};
use ndarray::IxDyn;

use dtkc_formats::arrays::layout::{FlatShape, Order, resolve};
use dtkc_formats::arrays::numeric::{Block, whole};
use dtkc_formats::arrays::pair::{self, Keys, Named, Pair};
use dtkc_formats::arrays::{ArrayReader, Arrays, Part, labels_from};
use dtkc_formats::words::{Given, settle};
use dtkc_formats::{ReadError, mat, stream};

/// Deeper than any real file; also ends a loop of groups.
const MAX_DEPTH: usize = 8;
/// More arrays than this are not parts of one set of images.
const MAX_ARRAYS: usize = 10_000;
/// More labels than this are not labels.
const MAX_LABELS: usize = 1 << 28;
/// Nor are more words than this, which take more room.
const MAX_WORDS: usize = 1 << 24;
/// More names than this are not those of classes.
const MAX_NAMES: usize = 1 << 20;

/// Opens a file and finds its images, labels and class names.
pub fn open(path: &Path, keys: &Keys, flat: Option<FlatShape>) -> Result<Arrays, ReadError> {
    trial::check(path).map_err(ReadError::other)?;
    let order = if mat::matches_v73(&stream::head(path, 16)?) { Order::Matlab } else { Order::RowMajor };
    let file = open_file(path)?;
    if file.link_exists(schema::VALUES) && file.link_exists(schema::OFFSETS) {
        let reason = "this is a dataset of sequences already; 'dtkc-data subset' and 'merge' work on it";
        return Err(ReadError::file(path, reason));
    }
    let mut arrays = Vec::new();
    collect(&file, "", 0, &mut arrays).map_err(|e| ReadError::other(h5::read_failed(path, &e)))?;
    let axes = |dims: Vec<usize>| if order == Order::Matlab { dims.into_iter().rev().collect() } else { dims };
    let named = |arrays: &[Array]| -> Vec<Named> {
        arrays.iter().map(|(name, d)| Named { name: name.clone(), dims: axes(d.shape()) }).collect()
    };
    let (arrays, pairs) =
        find_pairs(arrays, |arrays| pair::find(&named(arrays), keys)).map_err(|e| ReadError::file(path, e))?;
    let named = named(&arrays);
    let read = |i: usize| read_labels(path, &arrays[i].0, &arrays[i].1);
    let given = pairs.iter().map(|pair| pair.labels.map(read).transpose()).collect::<Result<Vec<_>, _>>()?;
    let (all_labels, words) = settle(given).map_err(|e| ReadError::file(path, e))?;
    let mut parts = Vec::new();
    for (pair, labels) in pairs.iter().zip(all_labels) {
        let (name, dataset) = &arrays[pair.images];
        let name = format!("{name} in {}", path.display());
        let layout = resolve(&named[pair.images].dims, order, flat, labels.as_ref().map(Vec::len))
            .map_err(|e| ReadError::source(&name, e))?;
        parts.push(Part { name, layout, reader: Box::new(ForeignReader::new(path, dataset.clone())), labels });
    }
    let names = words.or_else(|| label_names(path, &file));
    // One of our own says how its images were brought to their size, and means unlabelled where labels are negative.
    let own = Dataset::open(path).ok();
    let resize = own.as_ref().and_then(Dataset::resize);
    Ok(Arrays { names, resize, ours: own.is_some(), ..Arrays::new("HDF5", parts) })
}

fn open_file(path: &Path) -> Result<hdf5::File, ReadError> {
    // HDF5's own message about a file without permission is of no use to anybody.
    drop(fs_err::File::open(path)?);
    let file = hdf5::File::with_options().with_fapl(|p| p.file_locking(false)).open(path);
    file.map_err(|e| match h5::cause(&e) {
        cause if cause.contains("truncated") => ReadError::cut_off(path),
        _ => ReadError::other(h5::read_failed(path, &e)),
    })
}

/// An array and its full name.
type Array = (String, hdf5::Dataset);

/// What are images and what are labels. Words are labels only where no numbers are, and there is one for each image.
fn find_pairs(
    arrays: Vec<Array>,
    find: impl Fn(&[Array]) -> Result<Vec<Pair>, String>,
) -> Result<(Vec<Array>, Vec<Pair>), String> {
    let numbers: Vec<Array> = arrays.iter().filter(|(_, dataset)| !is_words(dataset)).cloned().collect();
    match find(&numbers) {
        Ok(pairs) if numbers.len() == arrays.len() || pairs.iter().any(|pair| pair.labels.is_some()) => {
            Ok((numbers, pairs))
        }
        Err(error) if numbers.len() == arrays.len() => Err(error),
        _ => {
            let ends = |dataset: &hdf5::Dataset| [dataset.shape().first().copied(), dataset.shape().last().copied()];
            let counts: Vec<_> = numbers.iter().filter(|(_, d)| d.ndim() > 1).flat_map(|(_, d)| ends(d)).collect();
            let fits = |(_, dataset): &Array| !is_words(dataset) || counts.contains(&Some(dataset.size()));
            let arrays: Vec<Array> = arrays.into_iter().filter(fits).collect();
            find(&arrays).map(|pairs| (arrays, pairs))
        }
    }
}

fn is_words(dataset: &hdf5::Dataset) -> bool {
    use TypeDescriptor::{FixedAscii, FixedUnicode, VarLenAscii, VarLenUnicode};
    matches!(h5::type_of(dataset), Some(FixedAscii(_) | FixedUnicode(_) | VarLenAscii | VarLenUnicode))
}

/// Every array of numbers, and every list of words, of the file. Links to other files are not followed.
fn collect(group: &Group, prefix: &str, depth: usize, out: &mut Vec<Array>) -> hdf5::Result<()> {
    for (name, info) in group.links(Default::default(), Default::default())? {
        if out.len() >= MAX_ARRAYS || info.link_type == LinkType::External {
            continue;
        }
        let full = format!("{prefix}{name}");
        if let Ok(dataset) = group.dataset(&name) {
            let numbers = h5::type_of(&dataset).as_ref().and_then(stored).is_some();
            if numbers || (is_words(&dataset) && dataset.ndim() == 1) {
                out.push((full, dataset));
            }
        } else if let Ok(inner) = group.group(&name)
            && depth < MAX_DEPTH
        {
            collect(&inner, &format!("{full}/"), depth + 1, out)?;
        }
    }
    Ok(())
}

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Bytes,
    Bools,
    Integers,
    Floats,
}

fn stored(descriptor: &TypeDescriptor) -> Option<Stored> {
    match descriptor {
        TypeDescriptor::Unsigned(size) if *size == hdf5::types::IntSize::U1 => Some(Stored::Bytes),
        TypeDescriptor::Unsigned(_) | TypeDescriptor::Integer(_) => Some(Stored::Integers),
        TypeDescriptor::Float(_) => Some(Stored::Floats),
        TypeDescriptor::Boolean => Some(Stored::Bools),
        _ => None,
    }
}

fn read_labels(path: &Path, name: &str, dataset: &hdf5::Dataset) -> Result<Given, ReadError> {
    let bad = |reason: String| ReadError::source(format!("{name} in {}", path.display()), reason);
    if dataset.size() > MAX_LABELS {
        return Err(bad("there are too many labels".to_owned()));
    }
    if is_words(dataset) {
        let words = h5::strings(path, dataset, MAX_WORDS).map_err(ReadError::other)?;
        return words.map(Given::Words).ok_or_else(|| bad("there are too many labels".to_owned()));
    }
    let failed = |e: hdf5::Error| ReadError::other(h5::read_failed(path, &e));
    let values = match h5::type_of(dataset).as_ref().and_then(stored) {
        Some(Stored::Floats) => {
            let floats = dataset.read_raw::<f64>().map_err(failed)?;
            let whole: Option<Vec<i64>> = floats.into_iter().map(whole).collect();
            whole.ok_or_else(|| bad("labels must be whole numbers".to_owned()))?
        }
        Some(Stored::Bools) => dataset.read_raw::<bool>().map_err(failed)?.into_iter().map(i64::from).collect(),
        _ => dataset.read_raw::<i64>().map_err(failed)?,
    };
    labels_from(&dataset.shape(), values).map(Given::Numbers).map_err(bad)
}

/// Class names as our own files and some others have them.
fn label_names(path: &Path, file: &hdf5::File) -> Option<Vec<String>> {
    let names = [schema::LABEL_NAMES, "class_names"].into_iter().find(|name| file.link_exists(name))?;
    h5::strings(path, &file.dataset(names).ok()?, MAX_NAMES).ok().flatten()
}

/// Reads along the slowest axis, whole rows at a time.
struct ForeignReader {
    path: PathBuf,
    dataset: hdf5::Dataset,
    dims: Vec<usize>,
    at: usize,
}

impl ForeignReader {
    fn new(path: &Path, dataset: hdf5::Dataset) -> Self {
        Self { path: path.to_owned(), dims: dataset.shape(), dataset, at: 0 }
    }

    fn values<T: hdf5::H5Type>(&self, selection: Hyperslab) -> Result<Vec<T>, ReadError> {
        let array = self.dataset.read_slice::<T, _, IxDyn>(selection);
        let array = array.map_err(|e| match h5::cause(&e) {
            cause if cause.contains("filter") => {
                let reason = format!(
                    "the array is compressed in a way that this program cannot read ({cause}); save it with gzip"
                );
                ReadError::file(&self.path, reason)
            }
            _ => ReadError::other(h5::read_failed(&self.path, &e)),
        })?;
        Ok(array.into_raw_vec_and_offset().0)
    }
}

impl ArrayReader for ForeignReader {
    fn read(&mut self, values: usize) -> Result<Block, ReadError> {
        let row: usize = self.dims[1..].iter().product();
        let rows = (values / row.max(1)).max(1).min(self.dims[0] - self.at);
        if rows == 0 {
            return Ok(Block::Bytes(Vec::new()));
        }
        let rest = self.dims[1..].iter().map(|&n| SliceOrIndex::from(0..n));
        let first = SliceOrIndex::from(self.at..self.at + rows);
        let selection: Hyperslab = std::iter::once(first).chain(rest).collect::<Vec<_>>().into();
        self.at += rows;
        let stored = h5::type_of(&self.dataset).as_ref().and_then(stored);
        Ok(match stored {
            Some(Stored::Bytes) => Block::Bytes(self.values(selection)?),
            Some(Stored::Bools) => {
                let bools: Vec<bool> = self.values(selection)?;
                Block::Floats(bools.into_iter().map(|b| f32::from(u8::from(b))).collect())
            }
            _ => Block::Floats(self.values(selection)?),
        })
    }

    fn rewind(&mut self) -> Result<(), ReadError> {
        self.at = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, Array4};

    use super::*;

    #[test]
    fn usps_like_groups_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usps.h5");
        let file = hdf5::File::create(&path).unwrap();
        for (name, n) in [("test", 2), ("train", 3)] {
            let group = file.create_group(name).unwrap();
            let data = Array2::from_shape_fn((n, 16), |(i, j)| (i * 16 + j) as f32 / 64.0);
            group.new_dataset_builder().with_data(&data).create("data").unwrap();
            let target = Array1::from_shape_fn(n, |i| i as i32 + 5);
            group.new_dataset_builder().with_data(&target).create("target").unwrap();
        }
        drop(file);
        let mut foreign = open(&path, &Keys::default(), None).unwrap();
        let labels: Vec<_> = foreign.parts.iter().map(|p| p.labels.clone().unwrap()).collect();
        assert_eq!(labels, [vec![5, 6, 7], vec![5, 6]]);
        assert_eq!(foreign.parts[0].layout.height, 4);
        let reader = &mut foreign.parts[0].reader;
        assert_eq!(reader.read(32).unwrap(), Block::Floats((0..32).map(|v| v as f32 / 64.0).collect()));
        assert_eq!(reader.read(32).unwrap().len(), 16);
        assert_eq!(reader.read(32).unwrap().len(), 0);
    }

    #[test]
    fn types_are_converted_and_other_arrays_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let file = hdf5::File::create(&path).unwrap();
        let planes = Array4::from_shape_fn((2, 3, 2, 2), |(n, c, y, x)| (n * 12 + c * 4 + y * 2 + x) as u16);
        file.new_dataset_builder().with_data(&planes).create("images").unwrap();
        file.new_dataset_builder().with_data(&Array1::from(vec![1.0f64, 2.0])).create("labels").unwrap();
        let names: Vec<hdf5::types::VarLenUnicode> =
            ["zero", "one", "two"].iter().map(|n| n.parse().unwrap()).collect();
        file.new_dataset_builder().with_data(&Array1::from(names)).create("label_names").unwrap();
        drop(file);
        let mut foreign = open(&path, &Keys::default(), None).unwrap();
        assert_eq!(foreign.names.as_deref().unwrap(), ["zero", "one", "two"]);
        assert_eq!(foreign.parts[0].labels, Some(vec![1, 2]));
        assert_eq!(foreign.parts[0].layout.channel, 4);
        assert_eq!(foreign.parts[0].reader.read(12).unwrap(), Block::Floats((0..12).map(|v| v as f32).collect()));
    }

    #[test]
    fn words_are_labels_where_no_numbers_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let words = |list: &[&str]| -> Array1<hdf5::types::VarLenUnicode> {
            list.iter().map(|word| word.parse().unwrap()).collect()
        };
        let write = |arrays: &[(&str, &[&str])], numbers: bool| {
            let file = hdf5::File::create(&path).unwrap();
            file.new_dataset_builder().with_data(&Array2::<u8>::zeros((3, 16))).create("data").unwrap();
            for (name, list) in arrays {
                file.new_dataset_builder().with_data(&words(list)).create(*name).unwrap();
            }
            if numbers {
                file.new_dataset_builder().with_data(&Array1::from(vec![4i64, 5, 6])).create("labels").unwrap();
            }
            drop(file);
            let mut found = open(&path, &Keys::default(), None).unwrap();
            (found.parts.remove(0).labels, found.names)
        };
        let pets = ["dog", "cat", "dog"];
        let names = Some(vec!["cat".to_owned(), "dog".to_owned()]);
        assert_eq!(write(&[("target", &pets), ("paths", &["a", "b", "c"])], false), (Some(vec![1, 0, 1]), names));
        assert_eq!(write(&[("target", &pets)], true).0, Some(vec![4, 5, 6]));
        // As many words as there are classes are their names.
        assert_eq!(write(&[("classes", &["cat", "dog"])], false), (None, None));
    }

    #[test]
    fn a_file_cut_in_half_is_called_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let file = hdf5::File::create(&path).unwrap();
        file.new_dataset_builder().with_data(&Array2::<u8>::zeros((400, 16))).create("data").unwrap();
        drop(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = open(&path, &Keys::default(), None).err().unwrap().to_string();
        assert!(error.contains("a.h5: the file is cut off"), "{error}");
    }

    #[test]
    fn labels_of_the_wrong_length_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        let file = hdf5::File::create(&path).unwrap();
        file.new_dataset_builder().with_data(&Array2::<u8>::zeros((4, 16))).create("data").unwrap();
        file.new_dataset_builder().with_data(&Array1::<i64>::zeros(3)).create("labels").unwrap();
        drop(file);
        let error = open(&path, &Keys::default(), None).err().unwrap().to_string();
        assert!(error.contains("3 labels for 4 images"), "{error}");
    }
}
