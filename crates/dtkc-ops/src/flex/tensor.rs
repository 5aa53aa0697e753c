//! Flex tensors as slices and back.

use std::borrow::Cow;

use burn::backend::{DType, TensorData, flex::FlexTensor};
use burn::tensor::Shape;

/// Whether the fast bodies take this tensor: they know f32 only.
pub(super) fn is_f32(tensor: &FlexTensor) -> bool {
    tensor.dtype() == DType::F32
}

/// The values in row-major order, copied only where the tensor is a strided view.
pub(super) fn values(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    match tensor.as_slice::<f32>() {
        Some(values) => Cow::Borrowed(values),
        None => {
            let copy = tensor.to_contiguous();
            match copy.as_slice::<f32>() {
                Some(values) => Cow::Owned(values.to_vec()),
                None => panic!("a {:?} tensor where f32 is needed", tensor.dtype()),
            }
        }
    }
}

/// The shape as an array.
pub(super) fn dims<const N: usize>(tensor: &FlexTensor) -> [usize; N] {
    tensor.layout().shape().dims()
}

/// A tensor that owns these values.
pub(super) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}
