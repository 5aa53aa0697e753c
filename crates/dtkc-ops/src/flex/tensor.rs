//! Flex tensors as slices and back.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use burn::backend::{
    DType, TensorData,
    flex::{FlexTensor, Layout},
};
use burn::tensor::Shape;

/// Results that were handed out before. One that nobody else holds any more is written again instead of allocating:
/// fresh memory for the activations and gradients of a step would cost page faults and zeroing every time.
static RESULTS: Mutex<Results> = Mutex::new(Results { clock: 0, kept: Vec::new() });

/// Results with fewer values are left to the allocator.
const LEAST: usize = 1 << 15;

/// A free result is given back to the system when so many others were made since it was last used; a training step
/// makes about twenty.
const PATIENCE: u64 = 200;

struct Results {
    clock: u64,
    /// When it was made, and a handle to it.
    kept: Vec<(u64, FlexTensor)>,
}

impl Results {
    /// A free result of this size, and what became too old is dropped.
    fn take(&mut self, len: usize) -> Option<FlexTensor> {
        self.clock += 1;
        let clock = self.clock;
        self.kept.retain(|(made, tensor)| !tensor.is_unique() || made + PATIENCE > clock);
        let found = self.kept.iter().position(|(_, tensor)| tensor.is_unique() && len == tensor.bytes().len() / 4)?;
        Some(self.kept.swap_remove(found).1)
    }
}

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

/// A tensor whose values `fill` writes, all of them: it starts with any content.
pub(super) fn result<const N: usize>(shape: [usize; N], fill: impl FnOnce(&mut [f32])) -> FlexTensor {
    let len: usize = shape.iter().product();
    if len < LEAST {
        let mut values = vec![0.0; len];
        fill(&mut values);
        return tensor(values, shape);
    }
    let lock = || RESULTS.lock().unwrap_or_else(PoisonError::into_inner);
    let free = lock().take(len);
    let mut result = match free {
        Some(free) => free.with_layout(Layout::contiguous(shape.into())),
        None => tensor(vec![0.0; len], shape),
    };
    fill(result.storage_mut::<f32>());
    let mut results = lock();
    let clock = results.clock;
    results.kept.push((clock, result.clone()));
    result
}
