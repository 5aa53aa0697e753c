//! The loss: named terms over what a network says about a batch.
//!
//! | term | formula | where |
//! |---|---|---|
//! | `separation` | L1 = d_cs(U, K_z) | paper |
//! | `orthogonality` | L2 = sum (or mean) over i < j of u_i . u_j | paper |
//! | `simplex` | L3 = d_cs(M, K_z), m_ij = exp(-\|\|u_i - e_j\|\|^2) | paper |
//! | `companion_l` | Lco_l = d_cs(U, K_l), K_l the kernel of block l's output | paper |
//! | `contrast_l` | views of an image nearer than other images in the tensor kernel's distance at block l | optional |
//! | `consistency` | symmetric cross-entropy of the memberships of two views | `plus` |
//! | `mutual_information` | log k - I(u, u') of the memberships of two views | optional |
//! | `overclustering` | the same for the fine clusters of a second output layer | with `network.fine` |
//! | `balance` | log k - H(mean u) | optional |
//! | `certainty` | mean H(u_i) | optional |
//! | `given` | cross-entropy with clusters that are given, before any others are learnt | `plus` |
//! | `self_label` | cross-entropy of the second view with confident labels of the first | optional |

mod centres;
mod companion;
mod config;
mod divergence;
mod objective;
mod paired;
mod terms;

pub use centres::{distances_to_centres, divergence_from, student_t};
pub use companion::{CompanionConfig, CompanionKernel, CompanionRule, Companions};
pub use config::{LossConfig, MembershipSum};
pub use divergence::{d_cs, orthogonality, simplex_closeness};
pub use objective::{Moment, Objective, Views};
pub use paired::{balance, certainty, consistency, cross_entropy_with, mutual_information, self_label};
pub use terms::{Collector, LossTerms, LossValues, Term};
