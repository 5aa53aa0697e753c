//! Image bytes to pixels of one size: limits, decoding, orientation, colour, resizing.
