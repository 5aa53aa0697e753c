//! How a convolution treats the border.

/// Border of a convolution of stride 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// No border: the result is smaller by `kernel - 1`.
    Valid,
    /// Zeros around the image so that the result has its size; an even kernel puts the odd one at the end.
    Same,
}

impl Padding {
    /// Zeros before and after one axis for a kernel of this length.
    pub fn amounts(self, kernel: usize) -> (usize, usize) {
        match self {
            Padding::Valid => (0, 0),
            Padding::Same => ((kernel - 1) / 2, kernel / 2),
        }
    }

    /// Length of one axis after the convolution, or `None` when the kernel does not fit.
    pub fn output(self, length: usize, kernel: usize) -> Option<usize> {
        let (before, after) = self.amounts(kernel);
        (length + before + after + 1).checked_sub(kernel).filter(|&output| output > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_keeps_the_length_for_odd_and_even_kernels() {
        for kernel in 1..8 {
            assert_eq!(Padding::Same.output(9, kernel), Some(9), "kernel {kernel}");
        }
        assert_eq!(Padding::Same.amounts(4), (1, 2));
    }

    #[test]
    fn valid_shrinks_and_refuses_what_does_not_fit() {
        assert_eq!(Padding::Valid.output(9, 4), Some(6));
        assert_eq!(Padding::Valid.output(3, 4), None);
    }
}
