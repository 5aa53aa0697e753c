//! Maps and images as arrays: two NumPy files, or one HDF5 file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use dtkc_dataset::h5;
use dtkc_files::Pending;
use hdf5::H5Type;
use ndarray::{ArrayView4, s};

use super::Explanation;
use crate::error::TrainError;

/// The form of arrays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ArrayFormat {
    /// maps.npy and images.npy.
    #[default]
    Npy,
    /// maps.h5 with the datasets maps, images, assigned, cluster, value and expected.
    Hdf5,
}

/// Images, rows, columns, channels.
pub(super) type Dims = [usize; 4];

const NPY: [&str; 2] = ["maps.npy", "images.npy"];
const HDF5: &str = "maps.h5";

/// Arrays on their way. They get their names at the end.
pub(super) enum Arrays {
    Npy { maps: Npy, images: Npy },
    Hdf5(Hdf5),
}

impl Arrays {
    pub(super) fn create(root: &Path, format: ArrayFormat, dims: Dims) -> Result<Self, TrainError> {
        match format {
            ArrayFormat::Npy => {
                let [maps, images] = NPY.map(|name| root.join(name));
                Ok(Self::Npy { maps: Npy::create(&maps, "<f4", dims)?, images: Npy::create(&images, "|u1", dims)? })
            }
            ArrayFormat::Hdf5 => Ok(Self::Hdf5(Hdf5::create(&root.join(HDF5), dims)?)),
        }
    }

    /// Adds image number `index`.
    pub(super) fn add(&mut self, index: usize, image: &[u8], explanation: &Explanation) -> Result<(), TrainError> {
        match self {
            Self::Npy { maps, images } => {
                let bytes: Vec<u8> = explanation.map.iter().flat_map(|value| value.to_le_bytes()).collect();
                maps.write(&bytes)?;
                images.write(image)
            }
            Self::Hdf5(file) => file.add(index, image, explanation).map_err(|error| file.failed(&error)),
        }
    }

    pub(super) fn finish(self) -> Result<(), TrainError> {
        match self {
            Self::Npy { maps, images } => maps.finish().and_then(|()| images.finish()),
            Self::Hdf5(file) => file.finish(),
        }
    }
}

/// Removes arrays of the other form, which an earlier run may have left: they would be taken for this one's.
pub(super) fn remove_others(root: &Path, format: ArrayFormat) -> Result<(), TrainError> {
    let others: &[&str] = if format == ArrayFormat::Npy { &[HDF5] } else { &NPY };
    for path in others.iter().map(|name| root.join(name)).filter(|path| path.exists()) {
        dtkc_files::remove(&path)?;
    }
    Ok(())
}

/// A NumPy file on its way.
pub(super) struct Npy {
    file: BufWriter<std::fs::File>,
    pending: Pending,
}

impl Npy {
    fn create(path: &Path, kind: &str, dims: Dims) -> Result<Self, TrainError> {
        let pending = Pending::beside(path)?;
        let mut array = Self { file: BufWriter::new(pending.open()?), pending };
        array.write(&header(kind, dims))?;
        Ok(array)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), TrainError> {
        Ok(self.file.write_all(bytes).map_err(|error| self.pending.failed(&error))?)
    }

    fn finish(self) -> Result<(), TrainError> {
        let Self { mut file, pending } = self;
        file.flush().map_err(|error| pending.failed(&error))?;
        drop(file);
        Ok(pending.commit()?)
    }
}

/// The head of a NumPy file, version 1.0: a whole number of 64 bytes, ending with a line end.
fn header(kind: &str, [a, b, c, d]: Dims) -> Vec<u8> {
    let about = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({a}, {b}, {c}, {d}), }}");
    let length = (10 + about.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{about:<width$}\n", width = length - 1).into_bytes());
    bytes
}

/// An HDF5 file on its way.
pub(super) struct Hdf5 {
    file: hdf5::File,
    maps: hdf5::Dataset,
    images: hdf5::Dataset,
    dims: Dims,
    facts: Facts,
    pending: Pending,
    target: PathBuf,
}

/// What is said about every image.
#[derive(Default)]
struct Facts {
    assigned: Vec<u64>,
    cluster: Vec<u64>,
    value: Vec<f64>,
    expected: Vec<f64>,
}

impl Hdf5 {
    fn create(path: &Path, dims: Dims) -> Result<Self, TrainError> {
        let (pending, target) = (Pending::beside(path)?, path.to_owned());
        let failed = |error: hdf5::Error| h5::write_failed(&target, &error);
        let file = h5::create(pending.path()).map_err(failed)?;
        let maps = file.new_dataset::<f32>().shape(dims).create("maps").map_err(failed)?;
        let images = file.new_dataset::<u8>().shape(dims).create("images").map_err(failed)?;
        Ok(Self { file, maps, images, dims, facts: Facts::default(), pending, target })
    }

    fn add(&mut self, index: usize, image: &[u8], explanation: &Explanation) -> hdf5::Result<()> {
        write_row(&self.maps, index, &explanation.map, self.dims)?;
        write_row(&self.images, index, image, self.dims)?;
        self.facts.assigned.push(explanation.assigned as u64);
        self.facts.cluster.push(explanation.cluster as u64);
        self.facts.value.push(explanation.value);
        self.facts.expected.push(explanation.expected);
        Ok(())
    }

    fn failed(&self, error: &hdf5::Error) -> TrainError {
        h5::write_failed(&self.target, error).into()
    }

    fn finish(self) -> Result<(), TrainError> {
        let Self { file, maps, images, facts, pending, target, .. } = self;
        drop((maps, images));
        let written = || {
            column(&file, "assigned", &facts.assigned)?;
            column(&file, "cluster", &facts.cluster)?;
            column(&file, "value", &facts.value)?;
            column(&file, "expected", &facts.expected)?;
            file.flush()
        };
        // What the library has put off until now must not be lost: closing says so, dropping would not.
        written().and_then(|()| file.close()).map_err(|error| h5::write_failed(&target, &error))?;
        Ok(pending.commit()?)
    }
}

fn write_row<T: H5Type>(dataset: &hdf5::Dataset, index: usize, row: &[T], [_, h, w, c]: Dims) -> hdf5::Result<()> {
    let row = ArrayView4::from_shape((1, h, w, c), row).map_err(|error| hdf5::Error::from(error.to_string()))?;
    dataset.write_slice(&row, s![index..index + 1, .., .., ..])
}

fn column<T: H5Type>(file: &hdf5::File, name: &str, values: &[T]) -> hdf5::Result<()> {
    file.new_dataset_builder().with_data(values).create(name).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_as_numpy_writes_it() {
        // numpy.lib.format.write_array_header_1_0 for zeros((3, 28, 28, 1), 'f4').
        let expected = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 28, 28, 1), }";
        let made = header("<f4", [3, 28, 28, 1]);
        assert_eq!(made[..expected.len()], expected[..]);
        assert!(made.len() == 128 && made[expected.len()..127].iter().all(|&byte| byte == b' ') && made[127] == b'\n');
    }

    #[test]
    fn an_hdf5_file_has_what_the_numpy_files_and_the_table_have() {
        let place = tempfile::tempdir().unwrap();
        let explanation =
            |map: f32| Explanation { assigned: 2, cluster: 1, value: 0.75, expected: 0.25, map: vec![map; 6] };
        let mut arrays = Arrays::create(place.path(), ArrayFormat::Hdf5, [2, 2, 3, 1]).unwrap();
        arrays.add(0, &[1, 2, 3, 4, 5, 6], &explanation(0.5)).unwrap();
        arrays.add(1, &[6; 6], &explanation(-0.5)).unwrap();
        let path = place.path().join("maps.h5");
        assert!(!path.exists(), "not before everything is there");
        arrays.finish().unwrap();
        let file = hdf5::File::open(&path).unwrap();
        let maps = file.dataset("maps").unwrap();
        assert_eq!(maps.shape(), [2, 2, 3, 1]);
        assert_eq!(maps.read_raw::<f32>().unwrap(), [[0.5; 6], [-0.5; 6]].concat());
        assert_eq!(file.dataset("images").unwrap().read_raw::<u8>().unwrap()[..7], [1, 2, 3, 4, 5, 6, 6]);
        assert_eq!(file.dataset("assigned").unwrap().read_raw::<u64>().unwrap(), [2, 2]);
        assert_eq!(file.dataset("expected").unwrap().read_raw::<f64>().unwrap(), [0.25, 0.25]);
    }
}
