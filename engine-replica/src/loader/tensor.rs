//! A tensor as it lies in the file.

/// How a tensor's numbers are stored. Quantised types come in blocks of 32 along a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DType {
    /// 4-byte IEEE float.
    F32,
    /// 2-byte IEEE float.
    F16,
    /// Upper half of an IEEE float.
    Bf16,
    /// 34 bytes a block: f16 scale `d`, then 32 × i8 `q`; value `d·q`.
    Q8_0,
    /// 18 bytes a block: f16 scale `d`, then 16 bytes; byte `i` holds element `i` (low nibble) and `i+16` (high);
    /// value `d·(q−8)`.
    Q4_0,
    /// 20 bytes a block: f16 scale `d`, f16 minimum `m`, then 16 bytes as in `Q4_0`; value `d·q + m`.
    Q4_1,
}

/// Elements in one block of a quantised type.
pub const QUANT_BLOCK: usize = 32;

impl DType {
    /// Bytes that `elements` take; `elements` is a multiple of `QUANT_BLOCK` for quantised types.
    pub fn bytes(self, elements: usize) -> usize {
        match self {
            DType::F32 => elements * 4,
            DType::F16 | DType::Bf16 => elements * 2,
            DType::Q8_0 => elements / QUANT_BLOCK * 34,
            DType::Q4_0 => elements / QUANT_BLOCK * 18,
            DType::Q4_1 => elements / QUANT_BLOCK * 20,
        }
    }
}

/// A tensor in place in its file, outermost dimension first: a weight is `[out, in]`, each output's row contiguous.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Storage type of `data`.
    pub dtype: DType,
    /// `(1, n)` for vectors.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// Exactly `dtype.bytes(rows * cols)` bytes, little endian, at any alignment.
    pub data: &'a [u8],
}

/// Where a model's tensors come from: one open checkpoint, whatever its format.
pub trait TensorSource {
    /// The tensor of this Hugging Face name (`model.layers.0.self_attn.q_proj.weight`), or `None` where the
    /// checkpoint has none. Vectors have `rows == 1`.
    fn tensor(&self, name: &str) -> Option<TensorView<'_>>;
}
