//! `Lanes` in plain Rust, for machines without a kernel of their own; the compiler vectorises it where it can.

use half::{bf16, f16};

use super::super::super::numeric::{self, LANES};
use super::{Kernel, Lanes};

/// Any machine.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Portable;

type F = [f32; LANES];

#[inline(always)]
fn zip(a: F, b: F, f: impl Fn(f32, f32) -> f32) -> F {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Lanes for Portable {
    type F = F;
    type Words = [u32; LANES];

    const TILE_HEIGHTS: &'static [usize] = &[1, 4];
    const WIDE: bool = false;

    #[inline(never)]
    fn enter<K: Kernel>(self, kernel: K) {
        kernel.run(self);
    }

    #[inline(always)]
    fn zero(self) -> F {
        [0.0; LANES]
    }

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> F {
        *from
    }

    #[inline(always)]
    fn store(self, x: F, to: &mut [f32; LANES]) {
        *to = x;
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> F {
        from.map(|bits| f16::from_bits(bits).to_f32())
    }

    #[inline(always)]
    fn load_bf16(self, from: &[u16; LANES]) -> F {
        from.map(|bits| bf16::from_bits(bits).to_f32())
    }

    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> F {
        from.map(f32::from)
    }

    #[inline(always)]
    fn load_words(self, from: &[u32; LANES]) -> [u32; LANES] {
        *from
    }

    #[inline(always)]
    fn next_nibble(self, words: [u32; LANES]) -> (F, [u32; LANES]) {
        (words.map(|w| (w & 15) as f32), words.map(|w| w >> 4))
    }

    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn greater(self, a: F, b: F) -> F {
        zip(a, b, numeric::greater)
    }

    #[inline(always)]
    fn lesser(self, a: F, b: F) -> F {
        zip(a, b, numeric::lesser)
    }

    #[inline(always)]
    fn power_of_two(self, x: F) -> F {
        x.map(|x| f32::from_bits((x.to_bits() << 23).wrapping_add(1.0f32.to_bits())))
    }
}
