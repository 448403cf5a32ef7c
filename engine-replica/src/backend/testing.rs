//! Random tensors for the tests of backends and models.

use half::{bf16, f16};

use crate::loader::tensor::{DType, QUANT_BLOCK, TensorView};

/// Every storage type.
pub(crate) const DTYPES: [DType; 6] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::Q8_0,
    DType::Q4_0,
    DType::Q4_1,
];

/// A small generator (splitmix64): the same seed gives the same numbers everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is at least 1.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// From −1 to 1.
    pub(crate) fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }

    /// A tensor with numbers of about `scale`.
    pub(crate) fn tensor(&mut self, dtype: DType, rows: usize, cols: usize, scale: f32) -> Tensor {
        let count = rows * cols;
        let mut data = Vec::with_capacity(dtype.bytes(count));
        let quantised =
            |data: &mut Vec<u8>, random: &mut Self, bytes: usize, d: f32, m: Option<f32>| {
                for _ in 0..count / QUANT_BLOCK {
                    let d = f16::from_f32(d * random.float());
                    data.extend(d.to_le_bytes());
                    data.extend(
                        m.map(|m| f16::from_f32(m * random.float()))
                            .iter()
                            .flat_map(|m| m.to_le_bytes()),
                    );
                    data.extend((0..bytes).map(|_| random.bits() as u8));
                }
            };
        match dtype {
            DType::F32 => {
                (0..count).for_each(|_| data.extend((scale * self.float()).to_le_bytes()))
            }
            DType::F16 => (0..count)
                .for_each(|_| data.extend(f16::from_f32(scale * self.float()).to_le_bytes())),
            DType::Bf16 => (0..count)
                .for_each(|_| data.extend(bf16::from_f32(scale * self.float()).to_le_bytes())),
            DType::Q8_0 => quantised(&mut data, self, 32, scale / 127.0, None),
            DType::Q4_0 => quantised(&mut data, self, 16, scale / 8.0, None),
            DType::Q4_1 => quantised(&mut data, self, 16, scale / 15.0, Some(scale / 2.0)),
        }
        Tensor {
            dtype,
            rows,
            cols,
            data,
        }
    }
}

/// A tensor that owns its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) dtype: DType,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<u8>,
}

impl Tensor {
    pub(crate) fn view(&self) -> TensorView<'_> {
        let Self {
            dtype,
            rows,
            cols,
            ref data,
        } = *self;
        TensorView {
            dtype,
            rows,
            cols,
            data,
        }
    }
}

/// Whether all floats have the same bits; one NaN counts as any other.
#[track_caller]
pub(crate) fn assert_same_bits(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan());
        assert!(same, "{what}: element {i} is {g:?}, expected {w:?}");
    }
}
