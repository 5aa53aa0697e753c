//! Named arrays of a state, read back by name, kind and length.

use dtkc_core::{NamedArray, StateError, Values};

/// An array that must be there, of `len` values of the kind that `pick` knows; of any length where `len` is `None`.
fn read<T: Clone>(
    arrays: &[NamedArray],
    name: &str,
    len: Option<usize>,
    pick: fn(&Values) -> Option<&Vec<T>>,
) -> Result<Vec<T>, StateError> {
    let array = NamedArray::find(arrays, name).ok_or_else(|| StateError::Missing(name.to_owned()))?;
    match pick(&array.values) {
        Some(values) if len.is_none_or(|len| len == values.len()) => Ok(values.clone()),
        Some(values) => {
            let expected = vec![len.unwrap_or_default()];
            Err(StateError::Shape { name: name.to_owned(), found: vec![values.len()], expected })
        }
        None => Err(StateError::Missing(name.to_owned())),
    }
}

pub(crate) fn f32s(arrays: &[NamedArray], name: &str, len: Option<usize>) -> Result<Vec<f32>, StateError> {
    read(arrays, name, len, |values| if let Values::F32(values) = values { Some(values) } else { None })
}

pub(crate) fn f64s(arrays: &[NamedArray], name: &str, len: Option<usize>) -> Result<Vec<f64>, StateError> {
    read(arrays, name, len, |values| if let Values::F64(values) = values { Some(values) } else { None })
}

pub(crate) fn u32s(arrays: &[NamedArray], name: &str, len: Option<usize>) -> Result<Vec<u32>, StateError> {
    read(arrays, name, len, |values| if let Values::U32(values) = values { Some(values) } else { None })
}

pub(crate) fn u64s(arrays: &[NamedArray], name: &str, len: Option<usize>) -> Result<Vec<u64>, StateError> {
    read(arrays, name, len, |values| if let Values::U64(values) = values { Some(values) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_and_length_must_fit() {
        let arrays = [NamedArray::list("a", Values::U32(vec![1, 2]))];
        assert_eq!(u32s(&arrays, "a", Some(2)), Ok(vec![1, 2]));
        assert_eq!(u32s(&arrays, "a", None), Ok(vec![1, 2]));
        assert!(matches!(u32s(&arrays, "a", Some(3)), Err(StateError::Shape { .. })));
        assert_eq!(f32s(&arrays, "a", None), Err(StateError::Missing("a".into())));
        assert_eq!(u64s(&arrays, "b", None), Err(StateError::Missing("b".into())));
        assert_eq!(f64s(&arrays, "b", None), Err(StateError::Missing("b".into())));
    }
}
