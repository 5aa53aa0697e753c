//! A frozen network as one ONNX file with preprocessing and metadata, and that metadata read back.
