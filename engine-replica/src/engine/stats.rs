//! What the engine counts about itself.

use replica_core::budget::BudgetCounts;

/// One consistent snapshot, published at the end of every step and before the step's events are sent, so that a
/// client which has seen its answer end finds it counted. Gauges first, then counters since start.
///
/// `prompt_tokens` and `cached_tokens` are the prefix cache's queries and hits: a miss is their difference. Both count
/// once per job, at its first admission, so they add up to what clients were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Sequences that hold KV blocks.
    pub running: usize,
    /// Jobs accepted and not yet admitted for the first time.
    pub waiting: usize,
    /// Running or preempted sequences whose client reads too slowly to be given another token.
    pub paused: usize,
    /// KV blocks leased to sequences.
    pub kv_blocks_used: usize,
    /// KV blocks that nobody leases and whose content can still be reused.
    pub kv_blocks_cached: usize,
    /// Those of them that a hint keeps.
    pub kv_blocks_kept: usize,
    /// Sessions that own cached KV or have a job here.
    pub sessions: usize,
    /// KV blocks in all.
    pub kv_blocks_total: usize,
    /// Model steps that succeeded.
    pub steps: u64,
    /// Tokens computed by those steps, recomputation after preemption among them.
    pub computed_tokens: u64,
    /// Prompt tokens of admitted jobs.
    pub prompt_tokens: u64,
    /// Those of `prompt_tokens` whose KV came from the prefix cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
    /// What has come of budgets of thinking.
    pub budgets: BudgetCounts,
    /// Times that a running sequence gave its blocks back to make room.
    pub preemptions: u64,
    /// Cached blocks that were reused for others, by what was known of their session: see `Standing`.
    pub evicted: [u64; 4],
    /// Jobs that ended with `Finished`.
    pub finished: u64,
    /// Jobs that ended with `Failed`.
    pub failed: u64,
    /// Jobs whose client went away first.
    pub cancelled: u64,
}
