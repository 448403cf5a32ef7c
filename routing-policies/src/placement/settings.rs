//! The numbers in the rule.

/// What the rule weighs by. One set for all workloads; the defaults were chosen on the first halves of four public traces (BENCH.md), but for
/// `stay`, which they hardly tell: there engines keep no answers, while real ones do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How many requests are taken to come to a replica while it works on one of mean size, and so to be delayed by extra work
    /// there. 0 looks at the request's own first token only.
    pub crowding: f64,
    /// What a request in flight counts as waiting work, as a share of a request of mean size. It places sessions evenly while queues are
    /// empty, and stands for decode.
    pub in_flight: f64,
    /// The share of new conversations from which on a block counts as common: at it, lacking the block costs half, above it next to
    /// nothing, and from two and a half times that on nothing. Over 0.
    pub common_share: f64,
    /// By how much another replica must be cheaper than the one that served the session last, as a share of a request of mean size.
    pub stay: f64,
    /// A session is not moved to save less than this, in seconds, whatever `stay` says: nobody notices, and each move leaves a prefix
    /// behind that nobody reads again.
    pub leave_s_min: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            crowding: 2.0,
            in_flight: 0.1,
            common_share: 0.2,
            stay: 1.0,
            leave_s_min: 0.25,
        }
    }
}
