//! The one exception that this package raises of its own.

use std::fmt::Display;

use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, create_exception};

create_exception!(
    dtkc,
    Error,
    PyValueError,
    "Something that was given cannot be used; the text names it, the cause and the remedy."
);

/// Any error of the libraries, in its own words.
pub fn raised(error: impl Display) -> PyErr {
    Error::new_err(error.to_string())
}
