//! What a convolution works on, whichever way it is computed.

/// A few images of the forward pass.
pub(crate) struct Forward<'a> {
    pub(crate) x: &'a [f32],
    /// As the plan's `pack` makes them.
    pub(crate) weights: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) relu: bool,
    pub(crate) y: &'a mut [f32],
    /// As many values as the plan's `scratch_len` says, of any content.
    pub(crate) scratch: &'a mut [f32],
}

/// A few images of the backward pass.
pub(crate) struct Backward<'a> {
    pub(crate) x: &'a [f32],
    /// The forward result where it went through ReLU.
    pub(crate) y: Option<&'a [f32]>,
    pub(crate) dy: &'a [f32],
    /// As the plan's `pack_transposed` makes them; not read when `dx` is `None`.
    pub(crate) weights: &'a [f32],
    /// The gradient in the plan's own order (`gradient` brings it back), added to.
    pub(crate) dw: &'a mut [f32],
    /// Added to.
    pub(crate) db: &'a mut [f32],
    /// Overwritten.
    pub(crate) dx: Option<&'a mut [f32]>,
    /// As many values as the plan's `scratch_len` says, of any content.
    pub(crate) scratch: &'a mut [f32],
}
