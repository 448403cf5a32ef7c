//! `Lanes` in one 512-bit register.
#![expect(
    unsafe_code,
    reason = "vector instructions; A4 allows them in backend/cpu"
)]

use std::arch::x86_64::*;
use std::mem::transmute;

use super::super::super::numeric::LANES;
use super::{Kernel, Lanes};

/// Proof that this machine has AVX-512F (and the AVX2, FMA and F16C that come with it).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx512(());

impl Avx512 {
    pub(in super::super) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

impl Lanes for Avx512 {
    type F = __m512;
    type Words = __m512i;

    const TILE_HEIGHTS: &'static [usize] = &[1, 2, 4, 8, 12];
    const WIDE: bool = true;

    fn enter<K: Kernel>(self, kernel: K) {
        #[target_feature(enable = "avx512f,avx2,fma,f16c")]
        #[inline(never)]
        fn compiled<K: Kernel>(lanes: Avx512, kernel: K) {
            kernel.run(lanes);
        }
        // SAFETY: `self` proves that the machine has the features.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn zero(self) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> __m512 {
        // SAFETY: both types are 64 bytes that may hold anything.
        unsafe { transmute::<[f32; LANES], __m512>(*from) }
    }

    #[inline(always)]
    fn store(self, x: __m512, to: &mut [f32; LANES]) {
        // SAFETY: both types are 64 bytes that may hold anything.
        *to = unsafe { transmute::<__m512, [f32; LANES]>(x) };
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> __m512 {
        // SAFETY: both types are 32 bytes that may hold anything; `self` proves AVX-512F.
        unsafe { _mm512_cvtph_ps(transmute::<[u16; LANES], __m256i>(*from)) }
    }

    #[inline(always)]
    fn load_bf16(self, from: &[u16; LANES]) -> __m512 {
        // SAFETY: both types are 32 bytes that may hold anything; `self` proves AVX-512F.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(transmute::<[u16; LANES], __m256i>(*from));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }

    #[inline(always)]
    fn load_i8(self, from: &[i8; LANES]) -> __m512 {
        // SAFETY: both types are 16 bytes that may hold anything; `self` proves AVX-512F.
        unsafe {
            let bytes = transmute::<[i8; LANES], __m128i>(*from);
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
        }
    }

    #[inline(always)]
    fn load_words(self, from: &[u32; LANES]) -> __m512i {
        // SAFETY: both types are 64 bytes that may hold anything.
        unsafe { transmute::<[u32; LANES], __m512i>(*from) }
    }

    #[inline(always)]
    fn next_nibble(self, words: __m512i) -> (__m512, __m512i) {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe {
            let nibbles = _mm512_and_si512(words, _mm512_set1_epi32(15));
            (_mm512_cvtepi32_ps(nibbles), _mm512_srli_epi32::<4>(words))
        }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn greater(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn lesser(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn power_of_two(self, x: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe {
            let shifted = _mm512_slli_epi32::<23>(_mm512_castps_si512(x));
            let one = _mm512_castps_si512(_mm512_set1_ps(1.0));
            _mm512_castsi512_ps(_mm512_add_epi32(shifted, one))
        }
    }
}
