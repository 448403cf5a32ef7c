//! Weights in strips of sixteen outputs, interleaved along k so that one vector holds one k of all sixteen.
//!
//! Quantised numbers stay quantised. A strip is a run of units; a unit holds `K` consecutive k of its sixteen
//! outputs, with their scales, in the order in which the kernels read them.

use half::{bf16, f16};

use super::super::numeric::LANES;
use super::lanes::Lanes;
use crate::loader::tensor::QUANT_BLOCK;

/// Words of eight nibbles in a block of 32.
const WORDS: usize = QUANT_BLOCK / 8;

/// One unit of a strip.
pub(super) trait Unit: Copy + Send + Sync {
    /// Consecutive k in one unit.
    const K: usize;
    /// Bytes of one output's share of a unit, as the file has them.
    const FILE_BYTES: usize;
    /// What the kernels keep in registers while they walk through a unit.
    type Open<L: Lanes>: Copy;

    /// All outputs zero.
    fn zero() -> Self;
    /// Puts one output's share, as the file has it, into place.
    fn put(&mut self, lane: usize, bytes: &[u8]);
    /// The weight of one output at one k; for reading single rows back.
    fn get(&self, lane: usize, k: usize) -> f32;
    /// Loads what all k of the unit share.
    fn open<L: Lanes>(&self, lanes: L) -> Self::Open<L>;
    /// The sixteen weights at `k`; called in ascending k.
    fn at<L: Lanes>(&self, lanes: L, open: &mut Self::Open<L>, k: usize) -> L::F;
}

/// One k in IEEE binary16.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct F16([u16; LANES]);

/// One k in bfloat16.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Bf16([u16; LANES]);

/// 32 k of `Q8_0`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Q8 {
    /// f16 scale of each output.
    d: [u16; LANES],
    /// (k, output)
    q: [[i8; LANES]; QUANT_BLOCK],
}

/// 32 k of `Q4_0`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Q4Centred {
    /// f16 scale of each output.
    d: [u16; LANES],
    /// (k / 8, output); nibble j of a word, lowest first, is k mod 8 = j.
    q: [[u32; LANES]; WORDS],
}

/// 32 k of `Q4_1`: five cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Q4Offset {
    /// f16 scale of each output.
    d: [u16; LANES],
    /// f16 minimum of each output.
    m: [u16; LANES],
    /// (k / 8, output); nibble j of a word, lowest first, is k mod 8 = j.
    q: [[u32; LANES]; WORDS],
}

/// One k in f32: also what panels and KV blocks are made of.
impl Unit for [f32; LANES] {
    const K: usize = 1;
    const FILE_BYTES: usize = 4;
    type Open<L: Lanes> = ();

    fn zero() -> Self {
        [0.0; LANES]
    }

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self[lane] = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }

    fn get(&self, lane: usize, _: usize) -> f32 {
        self[lane]
    }

    #[inline(always)]
    fn open<L: Lanes>(&self, _: L) {}

    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, (): &mut (), _: usize) -> L::F {
        lanes.load(self)
    }
}

/// The 16-bit number at `at`.
fn half_bits(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

impl Unit for F16 {
    const K: usize = 1;
    const FILE_BYTES: usize = 2;
    type Open<L: Lanes> = ();

    fn zero() -> Self {
        Self([0; LANES])
    }

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.0[lane] = half_bits(bytes, 0);
    }

    fn get(&self, lane: usize, _: usize) -> f32 {
        f16::from_bits(self.0[lane]).to_f32()
    }

    #[inline(always)]
    fn open<L: Lanes>(&self, _: L) {}

    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, (): &mut (), _: usize) -> L::F {
        lanes.load_f16(&self.0)
    }
}

impl Unit for Bf16 {
    const K: usize = 1;
    const FILE_BYTES: usize = 2;
    type Open<L: Lanes> = ();

    fn zero() -> Self {
        Self([0; LANES])
    }

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.0[lane] = half_bits(bytes, 0);
    }

    fn get(&self, lane: usize, _: usize) -> f32 {
        bf16::from_bits(self.0[lane]).to_f32()
    }

    #[inline(always)]
    fn open<L: Lanes>(&self, _: L) {}

    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, (): &mut (), _: usize) -> L::F {
        lanes.load_bf16(&self.0)
    }
}

impl Unit for Q8 {
    const K: usize = QUANT_BLOCK;
    const FILE_BYTES: usize = 34;
    /// The scales.
    type Open<L: Lanes> = L::F;

    fn zero() -> Self {
        Self {
            d: [0; LANES],
            q: [[0; LANES]; QUANT_BLOCK],
        }
    }

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.d[lane] = half_bits(bytes, 0);
        for (q, &byte) in self.q.iter_mut().zip(&bytes[2..]) {
            q[lane] = byte.cast_signed();
        }
    }

    fn get(&self, lane: usize, k: usize) -> f32 {
        f16::from_bits(self.d[lane]).to_f32() * f32::from(self.q[k][lane])
    }

    #[inline(always)]
    fn open<L: Lanes>(&self, lanes: L) -> L::F {
        lanes.load_f16(&self.d)
    }

    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, d: &mut L::F, k: usize) -> L::F {
        lanes.mul(*d, lanes.load_i8(&self.q[k]))
    }
}

/// The words of one output from the 16 bytes of a file's block: byte i holds elements i and i + 16.
fn pack_nibbles(bytes: &[u8]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    for (i, &byte) in bytes.iter().enumerate() {
        words[i / 8] |= u32::from(byte & 15) << (4 * (i % 8));
        words[i / 8 + 2] |= u32::from(byte >> 4) << (4 * (i % 8));
    }
    words
}

/// The nibble of output `lane` at `k`.
fn nibble(q: &[[u32; LANES]; WORDS], lane: usize, k: usize) -> f32 {
    ((q[k / 8][lane] >> (4 * (k % 8))) & 15) as f32
}

/// Nibble `k` of all outputs; `words` is kept between calls and reloaded for every eighth k.
#[inline(always)]
fn next_nibble<L: Lanes>(
    lanes: L,
    q: &[[u32; LANES]; WORDS],
    words: &mut L::Words,
    k: usize,
) -> L::F {
    if k.is_multiple_of(8) {
        *words = lanes.load_words(&q[k / 8]);
    }
    let (nibble, rest) = lanes.next_nibble(*words);
    *words = rest;
    nibble
}

impl Unit for Q4Centred {
    const K: usize = QUANT_BLOCK;
    const FILE_BYTES: usize = 18;
    /// The scales, and the words in use.
    type Open<L: Lanes> = (L::F, L::Words);

    fn zero() -> Self {
        Self {
            d: [0; LANES],
            q: [[0; LANES]; WORDS],
        }
    }

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.d[lane] = half_bits(bytes, 0);
        for (q, word) in self.q.iter_mut().zip(pack_nibbles(&bytes[2..])) {
            q[lane] = word;
        }
    }

    fn get(&self, lane: usize, k: usize) -> f32 {
        f16::from_bits(self.d[lane]).to_f32() * (nibble(&self.q, lane, k) - 8.0)
    }

    #[inline(always)]
    fn open<L: Lanes>(&self, lanes: L) -> (L::F, L::Words) {
        (lanes.load_f16(&self.d), lanes.load_words(&self.q[0]))
    }

    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, (d, words): &mut (L::F, L::Words), k: usize) -> L::F {
        let q = next_nibble(lanes, &self.q, words, k);
        lanes.mul(*d, lanes.sub(q, lanes.splat(8.0)))
    }
}

impl Unit for Q4Offset {
    const K: usize = QUANT_BLOCK;
    const FILE_BYTES: usize = 20;
    /// The scales, the minima, and the words in use.
    type Open<L: Lanes> = (L::F, L::F, L::Words);

    fn zero() -> Self {
        Self {
            d: [0; LANES],
            m: [0; LANES],
            q: [[0; LANES]; WORDS],
        }
    }

    fn put(&mut self, lane: usize, bytes: &[u8]) {
        self.d[lane] = half_bits(bytes, 0);
        self.m[lane] = half_bits(bytes, 2);
        for (q, word) in self.q.iter_mut().zip(pack_nibbles(&bytes[4..])) {
            q[lane] = word;
        }
    }

    fn get(&self, lane: usize, k: usize) -> f32 {
        let (d, m) = (
            f16::from_bits(self.d[lane]).to_f32(),
            f16::from_bits(self.m[lane]).to_f32(),
        );
        d * nibble(&self.q, lane, k) + m
    }

    #[inline(always)]
    fn open<L: Lanes>(&self, lanes: L) -> (L::F, L::F, L::Words) {
        (
            lanes.load_f16(&self.d),
            lanes.load_f16(&self.m),
            lanes.load_words(&self.q[0]),
        )
    }

    #[inline(always)]
    fn at<L: Lanes>(&self, lanes: L, (d, m, words): &mut (L::F, L::F, L::Words), k: usize) -> L::F {
        // The product is exact in f32, so one rounding here is the contract's two.
        lanes.fma(*d, next_nibble(lanes, &self.q, words, k), *m)
    }
}
