//! Downloads of the known sets, with resume and checks.
