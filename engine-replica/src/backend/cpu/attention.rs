//! Attention over paged K and V.
//!
//! Query vectors that read the same key head (the heads of a group, and neighbouring rows) go in tiles, so that each
//! key and value loaded serves all of them. Scores come from the matmul's own kernel, a block of keys being a strip
//! of sixteen outputs. A query's numbers never depend on the others in its tile.
#![expect(
    unsafe_code,
    reason = "threads write disjoint columns; A4 allows it in backend/cpu"
)]
#![expect(
    clippy::needless_range_loop,
    reason = "loops over register arrays have constant bounds, and plain indices unroll best"
)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use replica_core::BLOCK_TOKENS;

use super::super::host::{HostBuffer, HostSequence, HostStep};
use super::super::numeric::{self, LANES};
use super::kv::KvPool;
use super::lanes::{Isa, Kernel, Lanes};
use super::pool::Pool;
use super::shared::SharedRows;
use super::tile::accumulate;

/// Query vectors of the tallest tile.
const TILE_MAX: usize = 6;

/// Strips of value elements (and blocks of keys) beside one another where registers allow.
const STRIPS_WIDE: usize = 4;

/// Rows of one task: enough to keep a key head's blocks in the cache for a while, few enough to share out.
const TASK_ROWS: usize = 32;

/// One thread's room.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// (head_dim, tile height)
    queries: Vec<f32>,
    /// (tile height, blocks) vectors of scores, then of their exponentials.
    scores: Vec<[f32; LANES]>,
    /// (tile height, value strips) vectors.
    sums: Vec<[f32; LANES]>,
}

/// `Scratch` of all threads.
pub(super) type Scratches = Vec<Mutex<Scratch>>;

/// What all tasks of one attention share.
struct Job<'a> {
    step: &'a HostStep,
    layer: usize,
    qkv: &'a HostBuffer,
    pool: &'a KvPool,
    out: SharedRows<'a>,
}

/// Some rows of one sequence, for one key head.
struct Task<'a> {
    job: &'a Job<'a>,
    sequence: &'a HostSequence,
    head: usize,
    rows: Range<usize>,
    scratch: &'a mut Scratch,
}

/// See `Backend::attention`.
pub(super) fn attention(
    (threads, isa, scratches): (&mut Pool, Isa, &Scratches),
    (step, layer): (&HostStep, usize),
    qkv: &HostBuffer,
    pool: &KvPool,
    out: &mut HostBuffer,
) {
    let mut tasks = Vec::new();
    for sequence in &step.sequences {
        for head in 0..pool.shape.heads.kv_heads {
            // Later rows attend to more: they go first, so that the loop does not end on a long task.
            for start in sequence.rows.clone().step_by(TASK_ROWS).rev() {
                let rows = start..(start + TASK_ROWS).min(sequence.rows.end);
                tasks.push((sequence, head, rows));
            }
        }
    }
    let job = Job {
        step,
        layer,
        qkv,
        pool,
        out: SharedRows::new(out),
    };
    threads.run(tasks.len(), &|task, thread| {
        let (sequence, head, rows) = tasks[task].clone();
        let mut scratch = scratches[thread]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        isa.run(Task {
            job: &job,
            sequence,
            head,
            rows,
            scratch: &mut scratch,
        });
    });
}

impl Kernel for Task<'_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        // Query vectors are numbered row by row, the heads of the group within a row.
        let count = self.rows.len() * self.job.pool.shape.heads.group();
        let mut start = 0;
        while start < count {
            let queries = start..(start + TILE_MAX).min(count);
            start = queries.end;
            match queries.len() {
                1 => self.tile::<L, 1>(lanes, queries),
                2 => self.tile::<L, 2>(lanes, queries),
                3 => self.tile::<L, 3>(lanes, queries),
                4 => self.tile::<L, 4>(lanes, queries),
                _ => self.tile::<L, TILE_MAX>(lanes, queries),
            }
        }
    }
}

impl Task<'_> {
    /// The row and the first column of query vector `query`; numbers past the task's last are its last.
    #[inline(always)]
    fn place(&self, query: usize) -> (usize, usize) {
        let heads = self.job.pool.shape.heads;
        let row = (self.rows.start + query / heads.group()).min(self.rows.end - 1);
        let head = self.head * heads.group() + query % heads.group();
        (row, head * heads.head_dim)
    }

    /// Positions that a row attends to.
    #[inline(always)]
    fn limit(&self, row: usize) -> usize {
        self.job.step.positions[row] as usize + 1
    }

    /// Up to R query vectors, from `queries.start` on. Where they are fewer, the rest repeat the task's last row and
    /// are not written.
    #[inline(always)]
    fn tile<L: Lanes, const R: usize>(&mut self, lanes: L, queries: Range<usize>) {
        let mut limits = [0; R];
        for (r, limit) in limits.iter_mut().enumerate() {
            *limit = self.limit(self.place(queries.start + r).0);
        }
        self.load_queries::<R>(queries.start);
        // Rows stand in order, so the last limit is the greatest and the first the least.
        let blocks = limits[R - 1].div_ceil(BLOCK_TOKENS);
        if self.scratch.scores.len() < R * blocks {
            self.scratch.scores.resize(R * blocks, [0.0; LANES]);
        }
        if L::WIDE {
            let whole = blocks / STRIPS_WIDE * STRIPS_WIDE;
            self.scores::<L, R, STRIPS_WIDE>(lanes, 0..whole, blocks);
            self.scores::<L, R, 1>(lanes, whole..blocks, blocks);
        } else {
            self.scores::<L, R, 1>(lanes, 0..blocks, blocks);
        }
        let mut totals = [0.0; R];
        for r in 0..R {
            let row = &mut self.scratch.scores[r * blocks..(r + 1) * blocks];
            totals[r] = exponentials(lanes, row, limits[r]);
        }
        self.weigh_all::<L, R>(lanes, blocks, &limits);
        for (r, query) in queries.enumerate() {
            self.store(lanes, r, query, totals[r]);
        }
    }

    /// Lays R query vectors out as a tile (head_dim, R).
    #[inline(always)]
    fn load_queries<const R: usize>(&mut self, first: usize) {
        let dim = self.job.pool.shape.heads.head_dim;
        self.scratch.queries.resize(dim * TILE_MAX, 0.0);
        for r in 0..R {
            let (row, column) = self.place(first + r);
            let query = &self.job.qkv.row(row)[column..column + dim];
            let tile = self.scratch.queries.as_chunks_mut::<R>().0;
            for (to, &from) in tile.iter_mut().zip(query) {
                to[r] = from;
            }
        }
    }

    /// scores[r][block] = q[r] · keys of the block, scaled, for each block of `range`; S blocks at a time.
    #[inline(always)]
    fn scores<L: Lanes, const R: usize, const S: usize>(
        &mut self,
        lanes: L,
        range: Range<usize>,
        blocks: usize,
    ) {
        let Job { layer, pool, .. } = *self.job;
        let dim = pool.shape.heads.head_dim;
        let scale = lanes.splat(1.0 / (dim as f32).sqrt());
        let queries = &self.scratch.queries.as_chunks::<R>().0[..dim];
        for start in range.step_by(S) {
            let mut strips: [&[[f32; LANES]]; S] = [&[]; S];
            for s in 0..S {
                let block = self.sequence.blocks[start + s] as usize;
                strips[s] = pool.key_block(layer, block, self.head);
            }
            let acc = accumulate(lanes, strips, queries, [[lanes.zero(); S]; R]);
            for r in 0..R {
                for s in 0..S {
                    let to = &mut self.scratch.scores[r * blocks + start + s];
                    lanes.store(lanes.mul(acc[r][s], scale), to);
                }
            }
        }
    }

    /// sums[r] = the values of positions `0..limits[r]` weighed by r's exponentials.
    #[inline(always)]
    fn weigh_all<L: Lanes, const R: usize>(
        &mut self,
        lanes: L,
        blocks: usize,
        limits: &[usize; R],
    ) {
        let strips = self.job.pool.value_strips;
        self.scratch.sums.resize(TILE_MAX * strips, [0.0; LANES]);
        // Blocks that all of the tile see whole; then the rest for each query up to its own limit, since what lies
        // beyond may be anything, even NaN.
        let shared = limits[0] / BLOCK_TOKENS;
        if L::WIDE {
            let whole = strips / STRIPS_WIDE * STRIPS_WIDE;
            self.weigh::<L, R, STRIPS_WIDE>(lanes, 0..whole, blocks, shared);
            self.weigh::<L, R, 1>(lanes, whole..strips, blocks, shared);
        } else {
            self.weigh::<L, R, 1>(lanes, 0..strips, blocks, shared);
        }
        for (r, &limit) in limits.iter().enumerate() {
            self.weigh_rest(lanes, r, blocks, shared * BLOCK_TOKENS..limit);
        }
    }

    /// sums[r][strip] over the first `shared` blocks, for each strip of `range`; S strips at a time.
    #[inline(always)]
    fn weigh<L: Lanes, const R: usize, const S: usize>(
        &mut self,
        lanes: L,
        range: Range<usize>,
        blocks: usize,
        shared: usize,
    ) {
        let Job { layer, pool, .. } = *self.job;
        let strips = pool.value_strips;
        for first in range.step_by(S) {
            let mut acc = [[lanes.zero(); S]; R];
            for index in 0..shared {
                let block = self.sequence.blocks[index] as usize;
                let values = pool.value_block(layer, block, self.head);
                let mut weights = [&self.scratch.scores[index]; R];
                for r in 1..R {
                    weights[r] = &self.scratch.scores[r * blocks + index];
                }
                for (t, values) in values.chunks_exact(strips).enumerate() {
                    let values = &values[first..first + S];
                    for s in 0..S {
                        let value = lanes.load(&values[s]);
                        for r in 0..R {
                            let weight = lanes.splat(weights[r][t % LANES]);
                            acc[r][s] = lanes.fma(weight, value, acc[r][s]);
                        }
                    }
                }
            }
            for r in 0..R {
                for s in 0..S {
                    lanes.store(acc[r][s], &mut self.scratch.sums[r * strips + first + s]);
                }
            }
        }
    }

    /// Goes on with sums[r] over `positions`.
    #[inline(always)]
    fn weigh_rest<L: Lanes>(&mut self, lanes: L, r: usize, blocks: usize, positions: Range<usize>) {
        let Job { layer, pool, .. } = *self.job;
        let strips = pool.value_strips;
        let sums = &mut self.scratch.sums[r * strips..(r + 1) * strips];
        for position in positions {
            let (block, offset) = self.sequence.place(position);
            let values = pool.value_block(layer, block, self.head);
            let weights = &self.scratch.scores[r * blocks + position / BLOCK_TOKENS];
            let weight = lanes.splat(weights[offset]);
            for (sum, value) in sums.iter_mut().zip(&values[offset * strips..]) {
                lanes.store(lanes.fma(weight, lanes.load(value), lanes.load(sum)), sum);
            }
        }
    }

    /// Writes query vector `query`, which is the tile's `r`, divided by its total.
    #[inline(always)]
    fn store<L: Lanes>(&self, lanes: L, r: usize, query: usize, total: f32) {
        let Job { pool, out, .. } = self.job;
        let (row, column) = self.place(query);
        // SAFETY: tasks have disjoint pairs of row and head, and this one has no other part of the output in use.
        let out = unsafe { out.part(row, column..column + pool.shape.heads.head_dim) };
        let total = lanes.splat(total);
        let sums = &self.scratch.sums[r * pool.value_strips..];
        for (to, sum) in out.chunks_mut(LANES).zip(sums) {
            let values = lanes.to_array(lanes.div(lanes.load(sum), total));
            to.copy_from_slice(&values[..to.len()]);
        }
    }
}

/// Turns the first `limit` scores into exp(score − the highest), the rest into zeros, and returns the `lane_sum`.
#[inline(always)]
fn exponentials<L: Lanes>(lanes: L, scores: &mut [[f32; LANES]], limit: usize) -> f32 {
    mask(scores, limit, f32::NEG_INFINITY);
    let mut highest = lanes.splat(f32::NEG_INFINITY);
    for score in &*scores {
        highest = lanes.greater(lanes.load(score), highest);
    }
    let highest = lanes
        .to_array(highest)
        .into_iter()
        .fold(f32::NEG_INFINITY, |m, s| numeric::greater(s, m));
    let splat = lanes.splat(highest);
    for score in &mut *scores {
        lanes.store(lanes.exp(lanes.sub(lanes.load(score), splat)), score);
    }
    // The exponential of minus infinity is small but not 0.
    mask(scores, limit, 0.0);
    let mut sum = lanes.zero();
    for score in &*scores {
        sum = lanes.add(sum, lanes.load(score));
    }
    numeric::fold_lanes(lanes.to_array(sum))
}

/// Sets the scores from `limit` on.
#[inline(always)]
fn mask(scores: &mut [[f32; LANES]], limit: usize, value: f32) {
    scores.as_flattened_mut()[limit..].fill(value);
}
