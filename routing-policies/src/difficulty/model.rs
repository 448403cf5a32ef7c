//! The weights: one file with a header that says what they fit, checked before any is used.
//!
//! Little endian: `PINIONDF`, u32 version, u64 [`fingerprint`] of the features, u32 counts of dense weights, words and buckets, f32 bias,
//! f32 step of words, f32 step of runs, dense weights (f32 each), word hashes (u32 each, ascending), word weights (i8 each, in steps), bucket
//! weights (i8 each, in steps), u64 XXH3 of everything before.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use super::{concepts, features, grams};

/// Largest weights file, in bytes.
pub const WEIGHTS_BYTES_MAX: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"PINIONDF";
const VERSION: u32 = 1;
/// Goes up when features come out otherwise than before under the same names.
const FEATURES_VERSION: u32 = 1;

/// Why a weights file is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsError {
    /// More than [`WEIGHTS_BYTES_MAX`].
    TooLarge,
    /// It does not begin as such a file does.
    NoWeights,
    /// A version that this build does not read.
    Version(u32),
    /// Trained on other features than this build has.
    OtherFeatures,
    /// It ends early or late, its sum is wrong, or something in it cannot be.
    Damaged,
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "is larger than {WEIGHTS_BYTES_MAX} bytes, which no weights file is"),
            Self::NoWeights => f.write_str("is no weights file; expected one made by routing-policies/train/train.py"),
            Self::Version(version) => write!(f, "is of version {version}, expected {VERSION}; train it anew with this version's tool"),
            Self::OtherFeatures => f.write_str("was trained on other features than this version has; train it anew with this version's tool"),
            Self::Damaged => f.write_str("is damaged; copy or train it anew"),
        }
    }
}

impl std::error::Error for WeightsError {}

/// A hash of what features there are. Weights fit one such set only.
#[must_use]
pub fn fingerprint() -> u64 {
    let names = features::names().join(",");
    xxh3_64(format!("{FEATURES_VERSION} {names} {}", concepts::WORDS).as_bytes())
}

/// Weights, ready to use.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Weights {
    pub(super) bias: f64,
    pub(super) dense: Vec<f64>,
    words: Words,
    pub(super) word_step: f64,
    runs: Vec<i8>,
    pub(super) run_step: f64,
}

impl Weights {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, WeightsError> {
        if bytes.len() > WEIGHTS_BYTES_MAX {
            return Err(WeightsError::TooLarge);
        }
        let mut cut = Cut(bytes.strip_prefix(MAGIC).ok_or(WeightsError::NoWeights)?);
        let version = cut.u32().ok_or(WeightsError::Damaged)?;
        if version != VERSION {
            return Err(WeightsError::Version(version));
        }
        let of = cut.u64().ok_or(WeightsError::Damaged)?;
        let whole = bytes.split_last_chunk::<8>();
        let sound = whole.is_some_and(|(body, sum)| xxh3_64(body) == u64::from_le_bytes(*sum));
        if !sound {
            return Err(WeightsError::Damaged);
        }
        if of != fingerprint() {
            return Err(WeightsError::OtherFeatures);
        }
        Self::body(&mut cut).ok_or(WeightsError::Damaged)
    }

    /// What follows the header; `None` where it is not as it should be.
    fn body(cut: &mut Cut<'_>) -> Option<Self> {
        let [dense, words, runs] = [cut.u32()?, cut.u32()?, cut.u32()?];
        let [dense, words, runs] =
            [dense, words, runs].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        if dense != features::names().len() || runs != grams::BUCKETS as usize {
            return None;
        }
        let [bias, word_step, run_step] = [cut.f32()?, cut.f32()?, cut.f32()?];
        let dense = (0..dense)
            .map(|_| cut.f32())
            .collect::<Option<Vec<f64>>>()?;
        let ids = cut.take(words.checked_mul(4)?)?;
        let ids: Vec<u32> = ids
            .as_chunks::<4>()
            .0
            .iter()
            .map(|id| u32::from_le_bytes(*id))
            .collect();
        if !ids.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let weights = cut.take(words)?;
        let runs = cut
            .take(runs)?
            .iter()
            .map(|byte| byte.cast_signed())
            .collect();
        if cut.0.len() != size_of::<u64>() {
            return None;
        }
        let weights = weights.iter().map(|byte| byte.cast_signed());
        Some(Self {
            bias,
            dense,
            words: Words::new(ids.into_iter().zip(weights)),
            word_step,
            runs,
            run_step,
        })
    }

    /// A word's weight in steps; 0 for an unknown one.
    pub(super) fn word(&self, id: u32) -> i32 {
        i32::from(self.words.get(id))
    }

    /// A bucket's weight in steps.
    pub(super) fn run(&self, bucket: u32) -> i32 {
        self.runs.get(bucket as usize).copied().map_or(0, i32::from)
    }
}

/// A hash table with open addressing; a weight of 0 marks a free place.
#[derive(Clone, Debug, PartialEq)]
struct Words {
    slots: Vec<(u32, i8)>,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            slots: vec![(0, 0)],
        }
    }
}

impl Words {
    fn new(words: impl ExactSizeIterator<Item = (u32, i8)>) -> Self {
        let mut slots = vec![(0, 0); (2 * words.len() + 1).next_power_of_two()];
        let mask = slots.len() - 1;
        for (id, weight) in words.filter(|(_, weight)| *weight != 0) {
            let mut at = id as usize & mask;
            while slots[at].1 != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = (id, weight);
        }
        Self { slots }
    }

    fn get(&self, id: u32) -> i8 {
        let mask = self.slots.len() - 1;
        let mut at = id as usize & mask;
        // Half of the places are free, so this ends.
        loop {
            match self.slots[at] {
                (_, 0) => return 0,
                (found, weight) if found == id => return weight,
                _ => at = (at + 1) & mask,
            }
        }
    }
}

/// What is left to read.
struct Cut<'b>(&'b [u8]);

impl<'b> Cut<'b> {
    fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn f32(&mut self) -> Option<f64> {
        let number = f32::from_le_bytes(self.array()?);
        number.is_finite().then_some(f64::from(number))
    }
}
