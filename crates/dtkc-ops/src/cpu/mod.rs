//! The numeric loops, on plain slices: nothing here knows burn or threads.

// Loops over the lanes of several fixed-size arrays at once read best by index.
#![allow(clippy::needless_range_loop)]

pub(crate) mod direct;
pub(crate) mod geometry;
pub(crate) mod gru;
pub(crate) mod isa;
pub(crate) mod job;
mod lane;
pub(crate) mod pool;
pub(crate) mod projector;
pub(crate) mod rows;
mod tile;
pub(crate) mod winograd;

/// The first `N` values of a slice as an array; the caller made sure that they are there.
#[inline(always)]
fn chunk<const N: usize>(slice: &[f32]) -> &[f32; N] {
    match slice.first_chunk::<N>() {
        Some(chunk) => chunk,
        None => panic!("a slice of {} values where {N} are needed", slice.len()),
    }
}
