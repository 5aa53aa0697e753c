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

/// Where a size is missing, at most so many bytes of free results of other sizes are kept. Steps of small images with a
/// last partial batch stay below it; those of large ones would hold twice what they use.
const MOST_FREE: usize = 128 << 20;

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
        let found = self.kept.iter().position(|(_, tensor)| tensor.is_unique() && len == tensor.bytes().len() / 4);
        if found.is_none() {
            self.trim(MOST_FREE.saturating_sub(4 * len));
        }
        found.map(|found| self.kept.swap_remove(found).1)
    }

    /// Drops free results, the oldest first, until no more than `most` bytes of them are left.
    fn trim(&mut self, most: usize) {
        let free = |(_, tensor): &(u64, FlexTensor)| if tensor.is_unique() { tensor.bytes().len() } else { 0 };
        let mut bytes: usize = self.kept.iter().map(free).sum();
        if bytes <= most {
            return;
        }
        self.kept.sort_by_key(|(made, _)| *made);
        self.kept.retain(|one| {
            let size = free(one);
            let is_dropped = size > 0 && bytes > most;
            bytes -= if is_dropped { size } else { 0 };
            !is_dropped
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_results_of_other_sizes_are_bounded_and_those_in_use_stay() {
        let mut results = Results { clock: 7, kept: Vec::new() };
        let made = |len: usize| tensor(vec![0.0; len], [len]);
        let in_use = made(50);
        results.kept = vec![(3, made(30)), (1, made(20)), (2, in_use.clone()), (4, made(40))];
        results.trim(4 * 90);
        assert_eq!(results.kept.len(), 4, "90 free values are allowed");
        results.trim(4 * 75);
        let left: Vec<u64> = results.kept.iter().map(|(made, _)| *made).collect();
        assert_eq!(left, [2, 3, 4], "the oldest free one goes");
        results.trim(0);
        assert_eq!((results.kept.len(), in_use.bytes().len()), (1, 200));
    }

    #[test]
    fn a_result_of_the_right_size_is_used_again() {
        let mut results =
            Results { clock: 0, kept: vec![(0, tensor(vec![1.0; 8], [8])), (0, tensor(vec![2.0; 9], [9]))] };
        assert_eq!(results.take(9).map(|found| found.bytes().len()), Some(36));
        assert!(results.take(9).is_none() && results.kept.len() == 1);
    }
}
