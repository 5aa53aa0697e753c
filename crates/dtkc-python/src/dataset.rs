//! The dataset file, read and written.

use std::path::PathBuf;
use std::sync::Mutex;

use dtkc_dataset::{DataError, WriterOptions};
use dtkc_item::{ImageShape, ItemShape, Items};
use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray4, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::error::raised;

/// A dataset file, opened and checked.
#[pyclass(frozen, module = "dtkc._dtkc")]
pub struct Dataset {
    inner: dtkc_dataset::Dataset,
}

#[pymethods]
impl Dataset {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let inner = py.detach(|| dtkc_dataset::Dataset::open(path)).map_err(raised)?;
        Ok(Self { inner })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// `images`, `sequences` or `features`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind().name()
    }

    /// The set's name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Where it came from.
    #[getter]
    fn source(&self) -> &str {
        self.inner.source()
    }

    /// Of one item: `(height, width, channels)`, `(dim,)`, or `(vectors, dim)`.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        match self.inner.shape() {
            ItemShape::Image(ImageShape { height, width, channels }) => vec![height, width, channels],
            ItemShape::Sequence { dim } => vec![dim],
            ItemShape::Features(shape) => vec![shape.rows(), shape.dim],
        }
    }

    /// SHA-256 of what it holds.
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.fingerprint()).map_err(raised)
    }

    /// The labels, -1 where an item has none; nothing where the set has none.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let labels = py.detach(|| self.inner.labels()).map_err(raised)?;
        Ok(labels.map(|labels| labels.into_pyarray(py).into_any()))
    }

    /// The class names by label.
    fn label_names(&self) -> PyResult<Option<Vec<String>>> {
        self.inner.label_names().map_err(raised)
    }

    /// The names that items had, from one place to another.
    fn paths(&self, py: Python<'_>, start: usize, stop: usize) -> PyResult<Option<Vec<String>>> {
        let stop = stop.min(self.inner.len());
        py.detach(|| self.inner.paths(start.min(stop)..stop)).map_err(raised)
    }

    /// The items at these places: their values one after the other, and the number of steps of each where they are sequences.
    fn read<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let len = self.inner.len();
        let place = |&place: &i64| usize::try_from(place).ok().filter(|&place| place < len);
        let places: Option<Vec<usize>> = places.as_array().iter().map(place).collect();
        let places = places.ok_or_else(|| pyo3::exceptions::PyIndexError::new_err(format!("there are {len} items")))?;
        let items = py.detach(|| self.inner.items(&places)).map_err(raised)?;
        match items {
            Items::Images { shape, pixels } => {
                let size = [places.len(), shape.height, shape.width, shape.channels];
                Ok((pixels.into_pyarray(py).reshape(size)?.into_any(), None))
            }
            Items::Sequences { dim, values, offsets } => {
                let steps = values.len() / dim.max(1);
                let offsets: Vec<i64> = offsets.into_iter().map(|end| end as i64).collect();
                Ok((
                    values.into_pyarray(py).reshape([steps, dim])?.into_any(),
                    Some(offsets.into_pyarray(py).into_any()),
                ))
            }
            Items::Features { values, .. } => {
                let each = values.len().checked_div(places.len()).unwrap_or(0);
                Ok((values.into_pyarray(py).reshape([places.len(), each])?.into_any(), None))
            }
        }
    }
}

/// A dataset file that is being written; it appears whole, with [`Writer::finish`], or not at all.
#[pyclass(frozen, module = "dtkc._dtkc")]
pub struct Writer {
    inner: Mutex<Option<dtkc_dataset::Writer>>,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (path, shape, name, source, paths = false, label_names = None))]
    fn new(
        path: PathBuf,
        shape: Vec<usize>,
        name: String,
        source: String,
        paths: bool,
        label_names: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let shape: ItemShape = match *shape.as_slice() {
            [height, width, channels] => ImageShape { height, width, channels }.into(),
            [dim] => ItemShape::Sequence { dim },
            _ => return Err(raised("a shape has three numbers (images) or one (sequences)")),
        };
        let options = WriterOptions { paths, label_names, ..WriterOptions::new(shape, name, source) };
        let writer = dtkc_dataset::Writer::create(&path, options).map_err(raised)?;
        Ok(Self { inner: Mutex::new(Some(writer)) })
    }

    /// Adds images `[n, h, w, c]`.
    #[pyo3(signature = (images, labels = None, paths = None))]
    fn images(
        &self,
        py: Python<'_>,
        images: PyReadonlyArray4<'_, u8>,
        labels: Option<PyReadonlyArray1<'_, i64>>,
        paths: Option<Vec<String>>,
    ) -> PyResult<()> {
        let count = images.shape()[0];
        let pixels =
            images.as_slice().map_err(|_| raised("the array is not contiguous; use numpy.ascontiguousarray"))?;
        let each = pixels.len().checked_div(count).unwrap_or(0).max(1);
        let beside = Beside::new(count, labels.as_ref(), paths)?;
        self.add(py, |writer| {
            for (place, pixels) in pixels.chunks_exact(each).enumerate() {
                writer.push_image(pixels, beside.label(place), beside.path(place))?;
            }
            Ok(())
        })
    }

    /// Adds sequences that lie one after the other in `values` `[steps, dim]`.
    #[pyo3(signature = (values, offsets, labels = None, paths = None))]
    fn sequences(
        &self,
        py: Python<'_>,
        values: PyReadonlyArray2<'_, f32>,
        offsets: PyReadonlyArray1<'_, i64>,
        labels: Option<PyReadonlyArray1<'_, i64>>,
        paths: Option<Vec<String>>,
    ) -> PyResult<()> {
        let items = crate::item::sequences(&values, &offsets)?;
        let beside = Beside::new(items.len(), labels.as_ref(), paths)?;
        self.add(py, |writer| {
            for (place, item) in items.iter().enumerate() {
                if let crate::item::Item::Steps { values, .. } = item {
                    writer.push_sequence(values, beside.label(place), beside.path(place))?;
                }
            }
            Ok(())
        })
    }

    /// Ends the file, which is there from now on; says how many items it holds.
    fn finish(&self, py: Python<'_>) -> PyResult<usize> {
        let writer = self.lock().take().ok_or_else(finished)?;
        py.detach(|| writer.finish()).map_err(raised)
    }
}

impl Writer {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<dtkc_dataset::Writer>> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn add(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut dtkc_dataset::Writer) -> Result<(), DataError> + Send,
    ) -> PyResult<()> {
        py.detach(|| match &mut *self.lock() {
            Some(writer) => add(writer).map_err(raised),
            None => Err(finished()),
        })
    }
}

fn finished() -> PyErr {
    raised("the dataset was finished already; make another writer")
}

/// What items have beside their values.
struct Beside {
    labels: Option<Vec<i64>>,
    paths: Option<Vec<String>>,
}

impl Beside {
    fn new(count: usize, labels: Option<&PyReadonlyArray1<'_, i64>>, paths: Option<Vec<String>>) -> PyResult<Self> {
        let labels: Option<Vec<i64>> = labels.map(|labels| labels.as_array().to_vec());
        for (what, len) in [("labels", labels.as_ref().map(Vec::len)), ("paths", paths.as_ref().map(Vec::len))] {
            if let Some(len) = len.filter(|&len| len != count) {
                return Err(raised(format!("{count} items have {len} {what}; give as many")));
            }
        }
        Ok(Self { labels, paths })
    }

    fn label(&self, place: usize) -> Option<i64> {
        self.labels.as_ref().map(|labels| labels[place])
    }

    fn path(&self, place: usize) -> Option<&str> {
        self.paths.as_ref().map(|paths| paths[place].as_str())
    }
}
