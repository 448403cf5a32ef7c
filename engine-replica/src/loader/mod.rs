//! Model files to typed values: what a checkpoint holds, wherever it came from.
//!
//! Tensor names are Hugging Face's (`model.layers.0.self_attn.q_proj.weight`) for every format; `gguf` maps its own.

pub mod tensor;
