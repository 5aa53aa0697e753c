//! What methods share that begin with an autoencoder: its settings, its pretraining, the codes of all items.

mod codes;
mod loss;
mod pretraining;
mod refill;
mod start;

pub use loss::CodeLoss;
pub use pretraining::Pretraining;

pub(crate) use codes::{Codes, Images, all_codes, measure_statistics};
pub(crate) use pretraining::Pretrainer;
use pretraining::adopt;
pub(crate) use refill::{has_empty_cluster, refill};
pub(crate) use start::{Start, check_task};
