//! GGML's type numbers.

use crate::loader::tensor::DType;

pub(super) const READABLE: &str = "F32, F16, BF16, Q8_0, Q4_0, Q4_1";

/// The storage type of a GGML type number; for one that cannot be read, its name.
pub(super) fn dtype(kind: u32) -> Result<DType, String> {
    match kind {
        0 => Ok(DType::F32),
        1 => Ok(DType::F16),
        2 => Ok(DType::Q4_0),
        3 => Ok(DType::Q4_1),
        8 => Ok(DType::Q8_0),
        30 => Ok(DType::Bf16),
        other => Err(unreadable_name(other).map_or_else(|| format!("type {other}"), str::to_owned)),
    }
}

fn unreadable_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        12 => "Q4_K",
        13 => "Q5_K",
        14 => "Q6_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => return None,
    })
}
