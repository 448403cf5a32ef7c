//! Activations rearranged for the kernels: a few rows beside one another, k by k.
#![expect(
    unsafe_code,
    reason = "threads write disjoint tiles; A4 allows it in backend/cpu"
)]

use std::ops::Range;

use super::super::host::HostBuffer;
use super::pool::Pool;
use super::shared::SharedRows;

/// Rows of the tallest tile.
pub(super) const TILE_MAX: usize = 12;

/// Some rows in tiles: tile after tile, each `(cols, height)`, rows beyond the last filled with zeros.
pub(super) struct Tiles<'a> {
    floats: &'a [f32],
    pub(super) cols: usize,
    layout: Layout,
}

/// Rows and their cut into tiles.
#[derive(Clone, Debug)]
struct Layout {
    /// At least one.
    rows: Range<usize>,
    /// Height of every tile but the last.
    height_max: usize,
    /// Height of the last tile.
    height_last: usize,
}

/// One tile.
#[derive(Clone, Copy)]
pub(super) struct Tile<'a> {
    /// (cols, height)
    pub(super) floats: &'a [f32],
    pub(super) height: usize,
    /// The activation row that is its first.
    pub(super) row: usize,
    /// Activation rows in it, at most `height`.
    pub(super) rows: usize,
}

impl Layout {
    /// `heights` are ascending, from 1.
    fn new(rows: Range<usize>, heights: &[usize]) -> Self {
        let height_max = height_for(usize::MAX, heights);
        Self {
            height_last: height_for((rows.len() - 1) % height_max + 1, heights),
            height_max,
            rows,
        }
    }

    fn count(&self) -> usize {
        self.rows.len().div_ceil(self.height_max)
    }

    /// Rows of all tiles, those filled up among them.
    fn height(&self) -> usize {
        (self.count() - 1) * self.height_max + self.height_last
    }

    fn height_of(&self, tile: usize) -> usize {
        if tile + 1 == self.count() {
            self.height_last
        } else {
            self.height_max
        }
    }
}

impl<'a> Tiles<'a> {
    pub(super) fn count(&self) -> usize {
        self.layout.count()
    }

    pub(super) fn get(&self, index: usize) -> Tile<'a> {
        let Layout {
            rows, height_max, ..
        } = &self.layout;
        let before = index * height_max;
        let height = self.layout.height_of(index);
        Tile {
            floats: &self.floats[before * self.cols..][..height * self.cols],
            height,
            row: rows.start + before,
            rows: height.min(rows.len() - before),
        }
    }
}

/// The least height among `heights` (ascending) that holds `rows`, or the greatest.
fn height_for(rows: usize, heights: &[usize]) -> usize {
    let fits = heights.iter().find(|&&h| h >= rows);
    fits.or(heights.last()).copied().unwrap_or(1)
}

/// The rows of `x` that each group names, at least one each, in tiles of the given heights (ascending, from 1), kept
/// in `room`.
pub(super) fn pack<'a>(
    pool: &mut Pool,
    groups: impl Iterator<Item = Range<usize>>,
    heights: &[usize],
    x: &'a HostBuffer,
    room: &'a mut Vec<f32>,
) -> Vec<Tiles<'a>> {
    let cols = x.width;
    let layouts: Vec<Layout> = groups.map(|rows| Layout::new(rows, heights)).collect();
    // Each tile of more than one row, and where it lies in `room`; a single row is its own tile.
    let (mut jobs, mut used) = (Vec::new(), 0);
    for layout in layouts.iter().filter(|layout| layout.rows.len() > 1) {
        for tile in 0..layout.count() {
            let floats = layout.height_of(tile) * cols;
            let row = layout.rows.start + tile * layout.height_max;
            jobs.push((row..layout.rows.end, used..used + floats));
            used += floats;
        }
    }
    room.resize(room.len().max(used), 0.0);
    let shared = SharedRows::over(&mut room[..used], used);
    pool.run(jobs.len(), &|job, _| {
        let (rows, range) = jobs[job].clone();
        let height = range.len().checked_div(cols).unwrap_or(0);
        // SAFETY: each task has its own range.
        let to = unsafe { shared.part(0, range) };
        match height {
            1 => pack_tile::<1>(rows, x, to),
            2 => pack_tile::<2>(rows, x, to),
            4 => pack_tile::<4>(rows, x, to),
            6 => pack_tile::<6>(rows, x, to),
            8 => pack_tile::<8>(rows, x, to),
            _ => pack_tile::<TILE_MAX>(rows, x, to),
        }
    });
    let mut packed = &room[..used];
    let tiles = layouts.into_iter().map(|layout| {
        let floats = if layout.rows.len() == 1 {
            x.row(layout.rows.start)
        } else {
            let (floats, rest) = packed.split_at(layout.height() * cols);
            packed = rest;
            floats
        };
        Tiles {
            floats,
            cols,
            layout,
        }
    });
    tiles.collect()
}

/// One tile, of the first few of `rows`: element (row, k) to k · height + row within the tile.
fn pack_tile<const R: usize>(rows: Range<usize>, x: &HostBuffer, to: &mut [f32]) {
    let to = to.as_chunks_mut::<R>().0;
    let taken: [&[f32]; R] = std::array::from_fn(|r| {
        let row = rows.start + r;
        if row < rows.end { x.row(row) } else { &[] }
    });
    for (k, to) in to.iter_mut().enumerate() {
        for (to, row) in to.iter_mut().zip(&taken) {
            *to = row.get(k).copied().unwrap_or(0.0);
        }
    }
}
