//! A name for exactly this checkpoint, quick to compute.

use sha2::{Digest, Sha256};

/// SHA-256 over headers, small files and sizes. Weights are not read: that would touch gigabytes at every start.
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    /// Takes in the start of a file and the length of the whole.
    pub(super) fn add(&mut self, head: &[u8], file_len: usize) {
        // Lengths first, so that bytes cannot wander from one file to the next unseen.
        self.0.update((head.len() as u64).to_le_bytes());
        self.0.update((file_len as u64).to_le_bytes());
        self.0.update(head);
    }

    pub(super) fn finish(self) -> String {
        self.0
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
