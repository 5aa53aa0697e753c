//! Model files run on ONNX Runtime: decoding, batching, assignment in order.
