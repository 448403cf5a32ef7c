//! A tensor's numbers as f32, whatever their storage.

use half::{bf16, f16};

use crate::loader::tensor::{DType, QUANT_BLOCK, TensorView};

/// All elements of `view`, row by row. Each is exact, or its exact value rounded once (`Q4_1`).
pub fn dequantise(view: &TensorView<'_>) -> Vec<f32> {
    let mut values = Vec::with_capacity(view.rows * view.cols);
    match view.dtype {
        DType::F32 => values.extend(
            view.data
                .as_chunks()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b)),
        ),
        DType::F16 => values.extend(halves(view.data).map(|h| f16::from_bits(h).to_f32())),
        DType::Bf16 => values.extend(halves(view.data).map(|h| bf16::from_bits(h).to_f32())),
        DType::Q8_0 => view.data.as_chunks::<34>().0.iter().for_each(|block| {
            let d = half_at(block, 0);
            values.extend(block[2..].iter().map(|&q| d * f32::from(q.cast_signed())));
        }),
        DType::Q4_0 => view.data.as_chunks::<18>().0.iter().for_each(|block| {
            let d = half_at(block, 0);
            values.extend(nibbles(&block[2..]).map(|q| d * (q - 8.0)));
        }),
        DType::Q4_1 => view.data.as_chunks::<20>().0.iter().for_each(|block| {
            let (d, m) = (half_at(block, 0), half_at(block, 2));
            values.extend(nibbles(&block[4..]).map(|q| d * q + m));
        }),
    }
    values
}

/// Little-endian 16-bit numbers.
fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b))
}

/// The f16 at `at`.
fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// The low nibbles of all bytes, then the high ones.
fn nibbles(bytes: &[u8]) -> impl Iterator<Item = f32> {
    debug_assert_eq!(bytes.len(), QUANT_BLOCK / 2);
    let low = bytes.iter().map(|&b| f32::from(b & 15));
    low.chain(bytes.iter().map(|&b| f32::from(b >> 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(dtype: DType, data: &[u8], expect: &[f32]) {
        let view = TensorView {
            dtype,
            rows: 1,
            cols: expect.len(),
            data,
        };
        assert_eq!(dequantise(&view), expect);
    }

    /// f16 0.5 and −1.0, little endian.
    const HALF: [u8; 2] = [0x00, 0x38];
    const MINUS_ONE: [u8; 2] = [0x00, 0xbc];

    #[test]
    fn plain_types_are_read_little_endian() {
        check(DType::F32, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], &[1.0, -2.0]);
        check(DType::F16, &[HALF, MINUS_ONE].concat(), &[0.5, -1.0]);
        check(DType::Bf16, &[0x80, 0x3f, 0x00, 0xc0], &[1.0, -2.0]);
    }

    #[test]
    fn q8_0_is_scale_times_signed_byte() {
        let quants: Vec<u8> = (0..32u8).map(|i| i.wrapping_sub(16)).collect();
        let expect: Vec<f32> = (0..32).map(|i| 0.5 * (i as f32 - 16.0)).collect();
        check(DType::Q8_0, &[&HALF[..], &quants].concat(), &expect);
    }

    #[test]
    fn q4_elements_come_from_the_low_nibbles_first() {
        // Byte i: low nibble i, high nibble 15 − i.
        let quants: Vec<u8> = (0..16u8).map(|i| i | (15 - i) << 4).collect();
        let q = (0..16)
            .map(|i| i as f32)
            .chain((0..16).map(|i| 15.0 - i as f32));
        let q4_0: Vec<f32> = q.clone().map(|q| 0.5 * (q - 8.0)).collect();
        let q4_1: Vec<f32> = q.map(|q| 0.5 * q - 1.0).collect();
        check(DType::Q4_0, &[&HALF[..], &quants].concat(), &q4_0);
        check(
            DType::Q4_1,
            &[&HALF[..], &MINUS_ONE, &quants].concat(),
            &q4_1,
        );
    }
}
