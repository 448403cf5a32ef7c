//! Sixteen floats at a time, whatever the machine.
//!
//! Kernels are written once over `Lanes` and compiled once for every instruction set. Each operation below rounds as
//! the scalar one does, lane by lane, so a kernel gives the same bits on all of them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use super::super::numeric::{self, LANES};

/// Operations on 16 f32 lanes. A value of an implementing type is proof that this machine has its instructions.
///
/// Implementations mark every method `inline(always)`: only so does the body end up inside a function that is
/// compiled for the instruction set.
pub(super) trait Lanes: Copy {
    /// Sixteen f32.
    type F: Copy;
    /// Sixteen u32, each holding eight nibbles.
    type Words: Copy;

    /// Heights of matmul tiles in activation rows, ascending: those whose sums fit the registers.
    const TILE_HEIGHTS: &'static [usize];
    /// Whether there are registers for four strips beside one another, rather than one or two.
    const WIDE: bool;

    /// Runs `kernel` in a function of its own that is compiled for these instructions.
    fn enter<K: Kernel>(self, kernel: K);
    fn zero(self) -> Self::F;
    fn splat(self, x: f32) -> Self::F;
    fn load(self, from: &[f32; LANES]) -> Self::F;
    fn store(self, x: Self::F, to: &mut [f32; LANES]);
    /// IEEE binary16 to f32, exact.
    fn load_f16(self, from: &[u16; LANES]) -> Self::F;
    /// bfloat16 to f32, exact.
    fn load_bf16(self, from: &[u16; LANES]) -> Self::F;
    /// Signed bytes to f32, exact.
    fn load_i8(self, from: &[i8; LANES]) -> Self::F;
    fn load_words(self, from: &[u32; LANES]) -> Self::Words;
    /// The lowest nibble of every word as 0.0 ..= 15.0, and the words moved on to their next nibble.
    fn next_nibble(self, words: Self::Words) -> (Self::F, Self::Words);
    /// a·b + c, rounded once.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `numeric::greater`, lane by lane.
    fn greater(self, a: Self::F, b: Self::F) -> Self::F;
    /// `numeric::lesser`, lane by lane.
    fn lesser(self, a: Self::F, b: Self::F) -> Self::F;
    /// 2^n where `x` is `numeric::ROUND_MAGIC + n` for an integer n from −126 to 127.
    fn power_of_two(self, x: Self::F) -> Self::F;

    /// All lanes in an array.
    #[inline(always)]
    fn to_array(self, x: Self::F) -> [f32; LANES] {
        let mut array = [0.0; LANES];
        self.store(x, &mut array);
        array
    }

    /// `numeric::exp`, lane by lane.
    #[inline(always)]
    fn exp(self, x: Self::F) -> Self::F {
        let x = self.greater(self.splat(numeric::EXP_MIN), x);
        let x = self.lesser(self.splat(numeric::EXP_MAX), x);
        let magic = self.splat(numeric::ROUND_MAGIC);
        let rounded = self.fma(x, self.splat(std::f32::consts::LOG2_E), magic);
        let n = self.sub(rounded, magic);
        let r = self.fma(n, self.splat(-numeric::LN2_HIGH), x);
        let r = self.fma(n, self.splat(-numeric::LN2_LOW), r);
        let mut value = self.splat(numeric::EXP_COEFFICIENTS[0]);
        for &coefficient in &numeric::EXP_COEFFICIENTS[1..] {
            value = self.fma(value, r, self.splat(coefficient));
        }
        self.mul(value, self.power_of_two(rounded))
    }
}

/// Work that runs on any `Lanes`. Implementations mark `run` and all that it calls `inline(always)`.
pub(super) trait Kernel {
    /// Does it.
    fn run<L: Lanes>(self, lanes: L);
}

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Isa {
    /// Plain Rust.
    Portable(portable::Portable),
    /// AVX2 with FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

impl Isa {
    /// All that this machine has, the fastest first; never empty.
    pub(super) fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            found.extend(avx512::Avx512::detect().map(Self::Avx512));
            found.extend(avx2::Avx2::detect().map(Self::Avx2));
        }
        found.push(Self::Portable(portable::Portable));
        found
    }

    /// The fastest that this machine has.
    pub(super) fn best() -> Self {
        Self::available()
            .first()
            .copied()
            .unwrap_or(Self::Portable(portable::Portable))
    }

    /// `Lanes::TILE_HEIGHTS`.
    pub(super) fn tile_heights(self) -> &'static [usize] {
        match self {
            Self::Portable(_) => portable::Portable::TILE_HEIGHTS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => avx2::Avx2::TILE_HEIGHTS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => avx512::Avx512::TILE_HEIGHTS,
        }
    }

    /// Runs a kernel compiled for this instruction set.
    pub(super) fn run<K: Kernel>(self, kernel: K) {
        match self {
            Self::Portable(lanes) => lanes.enter(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lanes) => lanes.enter(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lanes) => lanes.enter(kernel),
        }
    }
}

#[cfg(test)]
mod tests;
