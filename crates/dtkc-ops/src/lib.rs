//! Fast CPU operations with their own backward passes, as burn backend extensions.
