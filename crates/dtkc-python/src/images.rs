//! Images of any kind and size to pixels of one size, as the programs make them ready.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dtkc_image::{Limits, Preparer};
use dtkc_infer::Prepare;
use dtkc_item::{ImageSpec, ItemError};
use ndarray::{Array4, s};
use numpy::{IntoPyArray, PyArray4, PyReadonlyArray1, PyReadonlyArray4};
use pyo3::prelude::*;

use crate::error::raised;
use crate::item::{Given, Item, column, pixels};
use crate::threads::share;

/// Which items could not be used: place, code and reason.
pub type Failures = Vec<(usize, String, String)>;

/// What makes images ready: all get one size and colour.
#[pyclass(frozen, module = "dtkc._dtkc")]
pub struct Images {
    spec: ImageSpec,
    threads: usize,
}

#[pymethods]
impl Images {
    #[new]
    #[pyo3(signature = (height, width, color, resize = "fit", threads = 0))]
    fn new(height: usize, width: usize, color: &str, resize: &str, threads: usize) -> PyResult<Self> {
        let (color, resize) = (color.parse().map_err(raised)?, resize.parse().map_err(raised)?);
        let spec = ImageSpec { height, width, color, resize };
        spec.shape().check().map_err(raised)?;
        Ok(Self { spec, threads: thread_count(threads) })
    }

    /// Files, by content or path.
    fn files<'py>(&self, py: Python<'py>, files: Vec<Given>) -> PyResult<(Bound<'py, PyArray4<u8>>, Failures)> {
        self.make(py, &files.iter().map(Given::item).collect::<Vec<_>>())
    }

    /// A column of a table.
    #[pyo3(signature = (data, offsets, missing = None))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<'py, u8>,
        offsets: PyReadonlyArray1<'py, i64>,
        missing: Option<PyReadonlyArray1<'py, bool>>,
    ) -> PyResult<(Bound<'py, PyArray4<u8>>, Failures)> {
        self.make(py, &column(&data, &offsets, missing.as_ref())?)
    }

    /// Pixels of another size.
    fn pixels<'py>(
        &self,
        py: Python<'py>,
        images: PyReadonlyArray4<'py, u8>,
    ) -> PyResult<(Bound<'py, PyArray4<u8>>, Failures)> {
        self.make(py, &pixels(&images)?)
    }
}

impl Images {
    /// Pixels of all; those that failed are black.
    fn make<'py>(&self, py: Python<'py>, items: &[Item<'_>]) -> PyResult<(Bound<'py, PyArray4<u8>>, Failures)> {
        let (spec, each) = (self.spec, self.spec.bytes());
        let shape = spec.shape();
        let mut made = Array4::zeros((items.len(), shape.height, shape.width, shape.channels));
        let mut failures = Failures::new();
        let mut preparers: Vec<Preparer> = (0..self.threads).map(|_| Preparer::new(spec, Limits::default())).collect();
        share(
            py,
            items.len(),
            &mut preparers,
            |preparer, piece| {
                let mut bytes = vec![0; piece.len() * each];
                let one = |(item, out): (&Item<'_>, &mut [u8])| prepare(item, preparer, out).err();
                let failed: Vec<Option<ItemError>> =
                    items[piece].iter().zip(bytes.chunks_exact_mut(each)).map(one).collect();
                (bytes, failed)
            },
            |piece, (bytes, failed)| {
                let failed = failed.into_iter().enumerate().filter_map(|(i, error)| Some((piece.start + i, error?)));
                failures
                    .extend(failed.map(|(place, error)| (place, error.code.to_string(), error.message.to_string())));
                let rows = Array4::from_shape_vec((piece.len(), shape.height, shape.width, shape.channels), bytes);
                made.slice_mut(s![piece, .., .., ..]).assign(&rows.map_err(raised)?);
                Ok(())
            },
        )?;
        failures.sort();
        Ok((made.into_pyarray(py), failures))
    }
}

/// A panic becomes the item's error, and what made it starts afresh.
fn prepare(item: &Item<'_>, preparer: &mut Preparer, out: &mut [u8]) -> Result<(), ItemError> {
    let made = catch_unwind(AssertUnwindSafe(|| item.prepare(preparer, out)));
    let made = made.unwrap_or_else(|_| {
        *preparer = preparer.afresh();
        Err(ItemError::panicked())
    });
    if made.is_err() {
        out.fill(0);
    }
    made
}

/// As many threads as were asked for; 0 means one per core.
pub fn thread_count(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}
