//! Training: restarts, checkpoints, resume, run directories.
