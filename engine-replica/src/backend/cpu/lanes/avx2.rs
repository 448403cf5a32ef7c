//! `Lanes` in two 256-bit registers.
#![expect(
    unsafe_code,
    reason = "vector instructions; A4 allows them in backend/cpu"
)]

use std::arch::x86_64::*;
use std::mem::transmute;

use super::super::super::numeric::LANES;
use super::{Kernel, Lanes};

/// Proof that this machine has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx2(());

impl Avx2 {
    pub(in super::super) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

/// Lanes 0–7 and 8–15.
type F = [__m256; 2];

type Words = [__m256i; 2];

impl Lanes for Avx2 {
    type F = F;
    type Words = Words;

    const TILE_HEIGHTS: &'static [usize] = &[1, 2, 4, 6];
    const WIDE: bool = false;

    fn enter<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx2,fma,f16c")]
        #[inline(never)]
        fn compiled<K: Kernel>(lanes: Avx2, kernel: K) {
            kernel.run(lanes);
        }
        // SAFETY: `self` proves that the machine has the features.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn zero(self) -> F {
        self.splat(0.0)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        let half = unsafe { _mm256_set1_ps(x) };
        [half, half]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> F {
        // SAFETY: both types are 64 bytes that may hold anything.
        unsafe { transmute::<[f32; LANES], F>(*from) }
    }

    #[inline(always)]
    fn store(self, x: F, to: &mut [f32; LANES]) {
        // SAFETY: both types are 64 bytes that may hold anything.
        *to = unsafe { transmute::<F, [f32; LANES]>(x) };
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> F {
        // SAFETY: both types are 32 bytes that may hold anything; `self` proves F16C.
        unsafe {
            let [low, high] = transmute::<[u16; LANES], [__m128i; 2]>(*from);
            [_mm256_cvtph_ps(low), _mm256_cvtph_ps(high)]
        }
    }

    #[inline(always)]
    fn load_bf16(self, from: &[u16; LANES]) -> F {
        // SAFETY: both types are 32 bytes that may hold anything; `self` proves AVX2.
        unsafe {
            let [low, high] = transmute::<[u16; LANES], [__m128i; 2]>(*from);
            let low = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(low));
            let high = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(high));
            [_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)]
        }
    }

    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> F {
        // SAFETY: both types are 16 bytes that may hold anything; `self` proves AVX2.
        unsafe {
            let bytes = transmute::<[i8; LANES], __m128i>(*from);
            let low = _mm256_cvtepi8_epi32(bytes);
            let high = _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes));
            [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)]
        }
    }

    #[inline(always)]
    fn load_words(self, from: &[u32; LANES]) -> Words {
        // SAFETY: both types are 64 bytes that may hold anything.
        unsafe { transmute::<[u32; LANES], Words>(*from) }
    }

    #[inline(always)]
    fn next_nibble(self, words: Words) -> (F, Words) {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe {
            let mask = _mm256_set1_epi32(15);
            let low = _mm256_cvtepi32_ps(_mm256_and_si256(words[0], mask));
            let high = _mm256_cvtepi32_ps(_mm256_and_si256(words[1], mask));
            let rest = [
                _mm256_srli_epi32::<4>(words[0]),
                _mm256_srli_epi32::<4>(words[1]),
            ];
            ([low, high], rest)
        }
    }

    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        // SAFETY: `self` proves that the machine has FMA.
        unsafe {
            [
                _mm256_fmadd_ps(a[0], b[0], c[0]),
                _mm256_fmadd_ps(a[1], b[1], c[1]),
            ]
        }
    }

    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn greater(self, a: F, b: F) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn lesser(self, a: F, b: F) -> F {
        // SAFETY: `self` proves that the machine has AVX2.
        unsafe { [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])] }
    }

    #[inline(always)]
    fn power_of_two(self, x: F) -> F {
        #[inline(always)]
        fn half(x: __m256) -> __m256 {
            // SAFETY: only called from here, where `self` proves that the machine has AVX2.
            unsafe {
                let shifted = _mm256_slli_epi32::<23>(_mm256_castps_si256(x));
                let one = _mm256_castps_si256(_mm256_set1_ps(1.0));
                _mm256_castsi256_ps(_mm256_add_epi32(shifted, one))
            }
        }
        [half(x[0]), half(x[1])]
    }
}
