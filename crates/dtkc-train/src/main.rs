//! Training: restarts, checkpoints, resume, run directories.
fn main() {}
