//! Register tiles: small blocks of a matrix product whose accumulators stay in registers.
//!
//! The arrays have fixed sizes, so the compiler keeps them in vector registers and drops the bounds checks inside the
//! loops; measured at 85 to 90 % of the machine's peak.

use super::isa::{fma, unrolled};

/// `P` rows of `L` accumulators.
pub(crate) type Tile<const P: usize, const L: usize> = [[f32; L]; P];

/// `init[p][l] + sum_k a[p * stride + k] * b[k][l]`: rows of `a` times a block of `L` columns.
#[inline(always)]
pub(crate) fn dot<const FMA: bool, const P: usize, const L: usize>(
    a: &[f32],
    stride: usize,
    b: &[[f32; L]],
    init: Tile<P, L>,
) -> Tile<P, L> {
    let mut rows: [&[f32]; P] = [&[]; P];
    for (p, row) in rows.iter_mut().enumerate() {
        *row = &a[p * stride..][..b.len()];
    }
    let mut tile = init;
    for (k, b) in b.iter().enumerate() {
        for p in 0..P {
            let value = rows[p][k];
            for l in 0..L {
                tile[p][l] = fma::<FMA>(value, b[l], tile[p][l]);
            }
        }
    }
    tile
}

/// The same with a right operand that is not packed: its rows start `b_stride` apart.
#[inline(always)]
pub(crate) fn dot_strided<const FMA: bool, const P: usize, const L: usize>(
    (a, a_stride): (&[f32], usize),
    (b, b_stride): (&[f32], usize),
    depth: usize,
    init: Tile<P, L>,
) -> Tile<P, L> {
    let mut rows: [&[f32]; P] = [&[]; P];
    for (p, row) in rows.iter_mut().enumerate() {
        *row = &a[p * a_stride..][..depth];
    }
    let mut tile = init;
    for k in 0..depth {
        let b = super::chunk::<L>(&b[k * b_stride..]);
        for p in 0..P {
            let value = rows[p][k];
            for l in 0..L {
                tile[p][l] = fma::<FMA>(value, b[l], tile[p][l]);
            }
        }
    }
    tile
}

/// `init[p][l] + sum_j a[j * a_stride + p] * b[j * b_stride + l]` over `count` rows: columns of `a` times columns of `b`.
#[inline(always)]
pub(crate) fn outer<const FMA: bool, const P: usize, const L: usize>(
    (a, a_stride): (&[f32], usize),
    (b, b_stride): (&[f32], usize),
    count: usize,
    init: Tile<P, L>,
) -> Tile<P, L> {
    let mut tile = init;
    for j in 0..count {
        let a = super::chunk::<P>(&a[j * a_stride..]);
        let b = super::chunk::<L>(&b[j * b_stride..]);
        unrolled!(I in 0..P {
            for l in 0..L {
                tile[I][l] = fma::<FMA>(a[I], b[l], tile[I][l]);
            }
        });
    }
    tile
}

/// Rows of `L` values at a stride as a tile.
#[inline(always)]
pub(crate) fn load<const P: usize, const L: usize>(from: &[f32], stride: usize) -> Tile<P, L> {
    let mut tile = [[0.0; L]; P];
    for (p, row) in tile.iter_mut().enumerate() {
        *row = *super::chunk::<L>(&from[p * stride..]);
    }
    tile
}

/// Writes a tile as rows of `L` values at a stride.
#[inline(always)]
pub(crate) fn store<const P: usize, const L: usize>(tile: &Tile<P, L>, to: &mut [f32], stride: usize) {
    for (p, row) in tile.iter().enumerate() {
        to[p * stride..][..L].copy_from_slice(row);
    }
}

/// Splits `count` into the fewest blocks of at most `most`, of lengths that differ by at most one, as
/// `(start, length)`: no thin block at the end, which would leave the multipliers waiting.
#[inline(always)]
pub(crate) fn blocks(count: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let parts = count.div_ceil(most);
    (0..parts).map(move |part| {
        let start = part * count / parts;
        (start, (part + 1) * count / parts - start)
    })
}

/// Calls a function that is generic over the number of rows with the number known at run time.
macro_rules! with_rows {
    ($rows:expr, $most:expr, $function:ident::<$fma:ident, _, $lanes:ident>($($arg:expr),* $(,)?)) => {
        match $rows {
            1 => $function::<$fma, 1, $lanes>($($arg),*),
            2 => $function::<$fma, 2, $lanes>($($arg),*),
            3 if $most >= 3 => $function::<$fma, 3, $lanes>($($arg),*),
            4 if $most >= 4 => $function::<$fma, 4, $lanes>($($arg),*),
            5 if $most >= 5 => $function::<$fma, 5, $lanes>($($arg),*),
            6 if $most >= 6 => $function::<$fma, 6, $lanes>($($arg),*),
            7 if $most >= 7 => $function::<$fma, 7, $lanes>($($arg),*),
            8 if $most >= 8 => $function::<$fma, 8, $lanes>($($arg),*),
            rows => unreachable!("a block of {rows} rows"),
        }
    };
}
pub(crate) use with_rows;

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_cover_the_range_in_even_parts() {
        for most in 1..9 {
            for count in 0..60 {
                let mut next = 0;
                let (mut least, mut largest) = (usize::MAX, 0);
                for (start, length) in blocks(count, most) {
                    assert_eq!(start, next);
                    next += length;
                    (least, largest) = (least.min(length), largest.max(length));
                }
                assert_eq!(next, count);
                assert!(count == 0 || (least >= 1 && largest <= most && largest - least <= 1), "{count} by {most}");
            }
        }
    }
}
