//! No code: see scripts/features.py.
