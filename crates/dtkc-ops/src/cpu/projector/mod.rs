//! Orthogonal projectors on the row spaces of small matrices, their overlaps `tr(P_a P_b)` and gradients.

mod dense;
mod double;
mod factor;
mod gram;
mod product;

pub(crate) use dense::{Block, blocks_of, build, fold, from_panels, to_panels};
pub(crate) use factor::{Factor, Finish, RIDGE, RIDGE_FLOOR, factor, finish};
pub(crate) use gram::{Gram, gram};
pub(crate) use product::{Product, pack, product};
