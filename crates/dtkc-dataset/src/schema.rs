//! Names and sizes of schema 1.

/// The version that this crate reads and writes.
pub const VERSION: i64 = 1;

/// Root attribute: the schema's version.
pub const SCHEMA: &str = "dtkc_schema";
/// Root attribute: "images", "sequences" or "features".
pub const KIND: &str = "kind";
/// Root attribute: the set's name.
pub const NAME: &str = "name";
/// Root attribute: where the set came from.
pub const SOURCE: &str = "source";
/// Root attribute, optional: how images were brought to their size, "fit", "stretch" or "crop".
pub const RESIZE: &str = "resize";

/// u8 `[n, h, w, c]`.
pub const IMAGES: &str = "images";
/// f32 `[n, 1 + views, dim]`: what a network gave for an image and for views of it.
pub const FEATURES: &str = "features";
/// Group of features, optional: f32 `[n, channels, height, width]` or `[n, size]` under the names 0, 1, ..; what lies inside
/// the network for the image itself.
pub const TAPS: &str = "taps";
/// Root attribute of features: what they were made of and how, for the program that made them.
pub const ORIGIN: &str = "origin";
/// u8 `[bytes]`: the network that made features, as an ONNX file.
pub const NETWORK: &str = "network";
/// f32 `[sum of lengths, dim]`.
pub const VALUES: &str = "values";
/// u64 `[n + 1]`: where each sequence begins, and the end.
pub const OFFSETS: &str = "offsets";
/// i64 `[n]`.
pub const LABELS: &str = "labels";
/// str `[classes]`.
pub const LABEL_NAMES: &str = "label_names";
/// str `[n]`.
pub const PATHS: &str = "paths";

/// Bytes per chunk that the writer aims at, inside the 64 KiB to 1 MiB of the schema. Small enough for a
/// shuffle window to mix many of them, large enough for one read each to cost next to nothing.
const CHUNK_BYTES: usize = 256 << 10;

/// Whole rows per chunk: as many as fit `CHUNK_BYTES`, at least one.
pub(crate) fn chunk_rows(row_bytes: usize) -> usize {
    (CHUNK_BYTES / row_bytes.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_whole_images_of_64_kib_to_1_mib() {
        for row in [1, 3, 256, 784, 3072, 12288, 65_536, 150_528, 200_000, 300_000, 1 << 20] {
            let bytes = chunk_rows(row) * row;
            assert!((64 << 10..=1 << 20).contains(&bytes), "{row}: {bytes}");
        }
        // A larger image is a chunk of its own.
        assert_eq!(chunk_rows(3 << 20), 1);
    }
}
