//! A reader over the bytes of a GGUF header that knows where it stands and never reads past the end.

/// Bytes of one string: a chat template may have 100 kB, a vocabulary entry a few hundred.
const STRING_BYTES_MAX: usize = 4 << 20;

#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Bytes left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], String> {
        let taken = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.get(..count))
            .ok_or_else(|| {
                format!(
                    "the file ends inside {what} (at byte {}); it is cut short, fetch it again",
                    self.at
                )
            })?;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], String> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, String> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, String> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(super) fn string(&mut self, what: &str) -> Result<&'a str, String> {
        let at = self.at;
        let count = self.u64(what)?;
        let count = usize::try_from(count).ok().filter(|&n| n <= STRING_BYTES_MAX).ok_or_else(|| {
            format!("{what} (at byte {at}) is a string of {count} bytes, expected at most {STRING_BYTES_MAX}")
        })?;
        std::str::from_utf8(self.take(count, what)?)
            .map_err(|_| format!("{what} (at byte {at}) is not valid UTF-8"))
    }
}
