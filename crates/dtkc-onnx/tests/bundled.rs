//! Model files that earlier versions of this crate wrote.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use dtkc_item::{Color, ImageSpec, Resize};
use dtkc_onnx::ImageInput;

#[test]
fn a_bundled_model_is_read_and_its_metadata_written_again_to_the_same_bytes() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    for (name, side) in [("mnist", 28), ("glyphs", 28)] {
        let bytes = std::fs::read(models.join(format!("{name}.onnx"))).unwrap();
        let metadata = dtkc_onnx::read_metadata(&bytes).unwrap();
        let expected = ImageSpec { height: side, width: side, color: Color::Gray, resize: Resize::Fit };
        let filter = "triangle".into();
        assert_eq!(metadata.input, ImageInput { image: expected, filter }.into(), "{name}");
        assert!(dtkc_onnx::with_metadata(&bytes, &metadata).unwrap() == bytes, "{name}");
    }
}
