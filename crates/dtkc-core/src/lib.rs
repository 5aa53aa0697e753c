//! The method in burn: backbone, clustering module, kernels, losses, presets.
