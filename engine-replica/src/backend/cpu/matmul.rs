//! out = x · wᵀ, by tiles of activation rows and strips of outputs.
//!
//! Up to one tile of rows, weights are dequantised on their way into the sums. With more rows a pair of strips is
//! dequantised once into a panel that stays in the cache while all tiles pass over it. Either way each output is the
//! same chain of fused multiply-adds, so neither the number of rows nor the split among threads shows in it.
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

use super::super::host::HostBuffer;
use super::super::numeric::LANES;
use super::lanes::{Isa, Kernel, Lanes};
use super::matrix::{Matrix, Part, Strips, for_units};
use super::pool::Pool;
use super::shared::SharedRows;
use super::strips::Unit;
use super::tile::accumulate;
use super::tiles::{TILE_MAX, Tile, Tiles, pack};

/// Strips of a panel, and the most that a kernel takes beside one another.
const PANEL_STRIPS: usize = 2;
const STRIPS_MAX: usize = 4;

/// Tasks that each thread finds, at most: enough that one put aside by the system delays the loop little.
const TASKS_PER_THREAD: usize = 16;

/// Room that is kept between matmuls; it grows to the widest weight.
#[derive(Debug)]
pub(super) struct Scratch {
    /// The activations in tiles.
    tiles: Vec<f32>,
    /// One a thread.
    panels: Vec<Mutex<Vec<[f32; LANES]>>>,
}

impl Scratch {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            tiles: Vec::new(),
            panels: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }
}

/// Rows that are multiplied by one weight.
pub(super) struct Group<'a> {
    pub(super) weight: &'a Matrix,
    /// Of input and output; disjoint between groups.
    pub(super) rows: Range<usize>,
}

/// out (rows, out) = x (rows, in) · wᵀ for the rows of each group, whose weights share a shape; see `Backend::matmul`.
pub(super) fn matmul(
    (pool, isa, scratch): (&mut Pool, Isa, &mut Scratch),
    groups: &[Group<'_>],
    x: &HostBuffer,
    out: &mut HostBuffer,
) {
    let groups: Vec<_> = groups.iter().filter(|g| !g.rows.is_empty()).collect();
    let rows = groups.iter().map(|group| group.rows.clone());
    let tiles = pack(pool, rows, isa.tile_heights(), x, &mut scratch.tiles);
    let out = SharedRows::new(out);
    let tasks = split(&groups, pool.threads() * TASKS_PER_THREAD);
    let panels = &scratch.panels;
    pool.run(tasks.len(), &|task, thread| {
        let (group, part, strips) = &tasks[task];
        let mut panel = panels[thread]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        isa.run(Task {
            tiles: &tiles[*group],
            out: &out,
            part,
            strips: strips.clone(),
            panel: &mut panel,
        });
    });
}

/// Cuts the strips of all parts into about `tasks_max` tasks of like cost or fewer, none across two parts: each with
/// the number of its group.
fn split<'a>(groups: &[&Group<'a>], tasks_max: usize) -> Vec<(usize, &'a Part, Range<usize>)> {
    let strips_of = |part: &Part| part.rows.div_ceil(LANES);
    let cost: usize = groups
        .iter()
        .map(|group| group.rows.len() * group.weight.parts.iter().map(strips_of).sum::<usize>())
        .sum();
    let mut tasks = Vec::with_capacity(tasks_max + groups.len());
    for (index, group) in groups.iter().enumerate() {
        let each = cost.div_ceil(tasks_max * group.rows.len());
        let each = each.next_multiple_of(STRIPS_MAX);
        for part in &group.weight.parts {
            let strips = strips_of(part);
            let starts = (0..strips).step_by(each);
            tasks.extend(starts.map(|start| (index, part, start..(start + each).min(strips))));
        }
    }
    tasks
}

/// Some strips of one part, for all rows of its group.
struct Task<'a> {
    tiles: &'a Tiles<'a>,
    out: &'a SharedRows<'a>,
    part: &'a Part,
    strips: Range<usize>,
    /// Room for `PANEL_STRIPS` strips in f32.
    panel: &'a mut Vec<[f32; LANES]>,
}

impl Kernel for Task<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for_units!(&self.part.strips, units => {
            if self.tiles.count() == 1 {
                self.fused(lanes, units);
            } else {
                self.by_panels(lanes, units);
            }
        });
    }
}

impl Task<'_> {
    /// One tile: weights go from their packed form straight into the sums.
    #[inline(always)]
    fn fused<L: Lanes, U: Unit>(self, lanes: L, units: &[U]) {
        let tile = self.tiles.get(0);
        let per_strip = self.tiles.cols / U::K;
        let mut strip = self.strips.start;
        while strip < self.strips.end {
            let rest = &units[strip * per_strip..self.strips.end * per_strip];
            strip += self.tile_times(lanes, tile, rest, per_strip, strip);
        }
    }

    /// Many tiles: each pair of strips is dequantised once.
    #[inline(always)]
    fn by_panels<L: Lanes, U: Unit>(self, lanes: L, units: &[U]) {
        let (cols, per_strip) = (self.tiles.cols, self.tiles.cols / U::K);
        if self.panel.len() < PANEL_STRIPS * cols {
            self.panel.resize(PANEL_STRIPS * cols, [0.0; LANES]);
        }
        let mut strip = self.strips.start;
        while strip < self.strips.end {
            let end = (strip + PANEL_STRIPS).min(self.strips.end);
            let panel = &mut self.panel[..(end - strip) * cols];
            expand(lanes, &units[strip * per_strip..end * per_strip], panel);
            let panel = &self.panel[..(end - strip) * cols];
            for index in 0..self.tiles.count() {
                let tile = self.tiles.get(index);
                let mut done = strip;
                while done < end {
                    let rest = &panel[(done - strip) * cols..];
                    done += self.tile_times(lanes, tile, rest, cols, done);
                }
            }
            strip = end;
        }
    }

    /// Multiplies a tile by the first few strips of `units`, with as many sums as fit the registers. Returns how
    /// many strips that were.
    #[inline(always)]
    fn tile_times<L: Lanes, U: Unit>(
        &self,
        lanes: L,
        tile: Tile<'_>,
        units: &[U],
        per_strip: usize,
        strip: usize,
    ) -> usize {
        let left = units.len() / per_strip;
        let at = (units, per_strip, strip);
        match (tile.height, L::WIDE) {
            (1, true) if left >= 4 => self.times::<L, U, 1, 4>(lanes, tile, at),
            (2, true) if left >= 4 => self.times::<L, U, 2, 4>(lanes, tile, at),
            (4, true) if left >= 2 => self.times::<L, U, 4, 2>(lanes, tile, at),
            (8, true) if left >= 2 => self.times::<L, U, 8, 2>(lanes, tile, at),
            (TILE_MAX, true) if left >= 2 => self.times::<L, U, TILE_MAX, 2>(lanes, tile, at),
            (8, true) => self.times::<L, U, 8, 1>(lanes, tile, at),
            (TILE_MAX, true) => self.times::<L, U, TILE_MAX, 1>(lanes, tile, at),
            (1, false) if left >= 2 => self.times::<L, U, 1, 2>(lanes, tile, at),
            (6, false) => self.times::<L, U, 6, 1>(lanes, tile, at),
            (4, _) => self.times::<L, U, 4, 1>(lanes, tile, at),
            (2, _) => self.times::<L, U, 2, 1>(lanes, tile, at),
            _ => self.times::<L, U, 1, 1>(lanes, tile, at),
        }
    }

    /// R rows times S strips, in a function of their own: so small that all sums stay in registers.
    #[inline(always)]
    fn times<L: Lanes, U: Unit, const R: usize, const S: usize>(
        &self,
        lanes: L,
        tile: Tile<'_>,
        at: (&[U], usize, usize),
    ) -> usize {
        lanes.enter(Times::<U, R, S> {
            task: self,
            tile,
            at,
        });
        S
    }

    /// Writes the outputs of one strip, as many as the part has there.
    #[inline(always)]
    fn store<L: Lanes>(&self, lanes: L, row: usize, strip: usize, values: L::F) {
        let start = strip * LANES;
        let count = LANES.min(self.part.rows - start);
        let from = self.part.first + start;
        // SAFETY: tasks have disjoint strips, and this one has no other part of the output in use.
        let out = unsafe { self.out.part(row, from..from + count) };
        if let Ok(out) = <&mut [f32; LANES]>::try_from(&mut *out) {
            lanes.store(values, out);
        } else {
            out.copy_from_slice(&lanes.to_array(values)[..count]);
        }
    }
}

/// One tile times a few strips.
struct Times<'a, U, const R: usize, const S: usize> {
    task: &'a Task<'a>,
    tile: Tile<'a>,
    /// Units from the first strip on, units of a strip, and the first strip's number.
    at: (&'a [U], usize, usize),
}

impl<U: Unit, const R: usize, const S: usize> Kernel for Times<'_, U, R, S> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            task,
            tile,
            at: (units, per_strip, strip),
        } = self;
        let mut strips = [units; S];
        for s in 0..S {
            strips[s] = &units[s * per_strip..][..per_strip];
        }
        let x = tile.floats.as_chunks::<R>().0;
        let acc = accumulate(lanes, strips, x, [[lanes.zero(); S]; R]);
        for r in 0..R {
            if r < tile.rows {
                for s in 0..S {
                    task.store(lanes, tile.row + r, strip + s, acc[r][s]);
                }
            }
        }
    }
}

/// panel = the weights of `units` in f32, k by k.
#[inline(always)]
fn expand<L: Lanes, U: Unit>(lanes: L, units: &[U], panel: &mut [[f32; LANES]]) {
    for (unit, to) in units.iter().zip(panel.chunks_exact_mut(U::K)) {
        let mut open = unit.open(lanes);
        for (k, to) in to.iter_mut().enumerate() {
            lanes.store(unit.at(lanes, &mut open, k), to);
        }
    }
}
