//! Labels whole image collections with a model file.
