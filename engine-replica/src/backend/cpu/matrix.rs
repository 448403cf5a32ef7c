//! A weight, packed.

use super::super::numeric::LANES;
use super::strips::{Bf16, F16, Q4Centred, Q4Offset, Q8, Unit};
use crate::loader::tensor::{DType, TensorView};

/// A weight `(out, in)` of one or more parts, each with its own storage type.
#[derive(Debug)]
pub struct Matrix {
    /// Inputs.
    pub(super) cols: usize,
    /// In order of outputs.
    pub(super) parts: Vec<Part>,
}

/// Some consecutive outputs of a matrix.
#[derive(Debug)]
pub(super) struct Part {
    /// Number of the first output in the whole matrix.
    pub(super) first: usize,
    /// Outputs.
    pub(super) rows: usize,
    pub(super) strips: Strips,
}

/// The units of all strips of a part, strip after strip; the last strip is filled up with zeros.
#[derive(Debug)]
pub(super) enum Strips {
    F32(Vec<[f32; LANES]>),
    F16(Vec<F16>),
    Bf16(Vec<Bf16>),
    Q8(Vec<Q8>),
    Q4Centred(Vec<Q4Centred>),
    Q4Offset(Vec<Q4Offset>),
}

/// Runs `$body` with `$units` bound to the typed units of `$strips`.
macro_rules! for_units {
    ($strips:expr, $units:ident => $body:expr) => {
        match $strips {
            Strips::F32($units) => $body,
            Strips::F16($units) => $body,
            Strips::Bf16($units) => $body,
            Strips::Q8($units) => $body,
            Strips::Q4Centred($units) => $body,
            Strips::Q4Offset($units) => $body,
        }
    };
}
pub(super) use for_units;

impl Matrix {
    /// Packs straight from the file's bytes.
    pub(super) fn pack(views: &[TensorView<'_>]) -> Self {
        let cols = views.first().map_or(0, |view| view.cols);
        let mut first = 0;
        let parts = views.iter().map(|view| {
            let part = Part {
                first,
                rows: view.rows,
                strips: pack(view),
            };
            first += view.rows;
            part
        });
        Self {
            cols,
            parts: parts.collect(),
        }
    }

    /// Writes row `row` (cols) in f32 to `out`.
    pub(super) fn read_row(&self, row: usize, out: &mut [f32]) {
        let Some(part) = self
            .parts
            .iter()
            .find(|p| (p.first..p.first + p.rows).contains(&row))
        else {
            return;
        };
        let row = row - part.first;
        for_units!(&part.strips, units => read(units, self.cols, row, out));
    }
}

fn pack(view: &TensorView<'_>) -> Strips {
    match view.dtype {
        DType::F32 => Strips::F32(units(view)),
        DType::F16 => Strips::F16(units(view)),
        DType::Bf16 => Strips::Bf16(units(view)),
        DType::Q8_0 => Strips::Q8(units(view)),
        DType::Q4_0 => Strips::Q4Centred(units(view)),
        DType::Q4_1 => Strips::Q4Offset(units(view)),
    }
}

fn units<U: Unit>(view: &TensorView<'_>) -> Vec<U> {
    let per_strip = view.cols / U::K;
    let mut units = vec![U::zero(); view.rows.div_ceil(LANES) * per_strip];
    let rows = view.data.chunks_exact(per_strip * U::FILE_BYTES);
    for (row, bytes) in rows.enumerate() {
        let strip = &mut units[row / LANES * per_strip..][..per_strip];
        for (unit, bytes) in strip.iter_mut().zip(bytes.chunks_exact(U::FILE_BYTES)) {
            unit.put(row % LANES, bytes);
        }
    }
    units
}

fn read<U: Unit>(units: &[U], cols: usize, row: usize, out: &mut [f32]) {
    let per_strip = cols / U::K;
    let strip = &units[row / LANES * per_strip..][..per_strip];
    for (unit, out) in strip.iter().zip(out.chunks_exact_mut(U::K)) {
        for (k, out) in out.iter_mut().enumerate() {
            *out = unit.get(row % LANES, k);
        }
    }
}
