//! One HDF5 dataset from any image collection, and minibatches from it.
