//! Activations rearranged for the kernels: a few rows beside one another, k by k.
#![expect(
    unsafe_code,
    reason = "threads write disjoint tiles; A4 allows it in backend/cpu"
)]

use super::super::host::HostBuffer;
use super::pool::Pool;
use super::shared::SharedRows;

/// Rows of the tallest tile.
pub(super) const TILE_MAX: usize = 12;

/// Activations in tiles: tile after tile, each `(cols, height)`, rows beyond the last filled with zeros.
pub(super) struct Tiles<'a> {
    floats: &'a [f32],
    pub(super) cols: usize,
    rows: usize,
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

impl<'a> Tiles<'a> {
    /// The first `rows` rows of `x` in tiles of the given heights (ascending, from 1), kept in `room`. `rows` is at
    /// least 1.
    pub(super) fn new(
        pool: &mut Pool,
        rows: usize,
        heights: &[usize],
        x: &'a HostBuffer,
        room: &'a mut Vec<f32>,
    ) -> Self {
        let cols = x.width;
        let height_max = height_for(usize::MAX, heights);
        let height_last = height_for((rows - 1) % height_max + 1, heights);
        let tiled = ((rows - 1) / height_max * height_max + height_last) * cols;
        let floats = if rows == 1 {
            // A single row is its own tile.
            x.row(0)
        } else {
            room.resize(room.len().max(tiled), 0.0);
            pack(pool, rows, height_max, x, &mut room[..tiled]);
            &room[..tiled]
        };
        Self {
            floats,
            cols,
            rows,
            height_max,
            height_last,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.rows.div_ceil(self.height_max)
    }

    pub(super) fn get(&self, index: usize) -> Tile<'a> {
        let row = index * self.height_max;
        let last = index + 1 == self.count();
        let height = if last {
            self.height_last
        } else {
            self.height_max
        };
        let floats = &self.floats[row * self.cols..][..height * self.cols];
        Tile {
            floats,
            height,
            row,
            rows: height.min(self.rows - row),
        }
    }
}

/// The least height among `heights` (ascending) that holds `rows`, or the greatest.
fn height_for(rows: usize, heights: &[usize]) -> usize {
    let fits = heights.iter().find(|&&h| h >= rows);
    fits.or(heights.last()).copied().unwrap_or(1)
}

/// Copies `x` into tiles: element (row, k) to k · height + row within the tile.
fn pack(pool: &mut Pool, rows: usize, height_max: usize, x: &HostBuffer, packed: &mut [f32]) {
    let cols = x.width;
    let total = packed.len();
    let whole = height_max * cols;
    let shared = SharedRows::over(packed, total);
    pool.run(total.div_ceil(whole), &|tile, _| {
        let range = tile * whole..((tile + 1) * whole).min(total);
        let height = range.len() / cols;
        // SAFETY: each task has its own range.
        let to = unsafe { shared.part(0, range) };
        match height {
            1 => pack_tile::<1>(rows, tile * height_max, x, to),
            2 => pack_tile::<2>(rows, tile * height_max, x, to),
            4 => pack_tile::<4>(rows, tile * height_max, x, to),
            6 => pack_tile::<6>(rows, tile * height_max, x, to),
            8 => pack_tile::<8>(rows, tile * height_max, x, to),
            _ => pack_tile::<TILE_MAX>(rows, tile * height_max, x, to),
        }
    });
}

/// One tile, from row `first` on.
fn pack_tile<const R: usize>(rows: usize, first: usize, x: &HostBuffer, to: &mut [f32]) {
    let to = to.as_chunks_mut::<R>().0;
    let taken: [&[f32]; R] = std::array::from_fn(|r| {
        let row = first + r;
        if row < rows { x.row(row) } else { &[] }
    });
    for (k, to) in to.iter_mut().enumerate() {
        for (to, row) in to.iter_mut().zip(&taken) {
            *to = row.get(k).copied().unwrap_or(0.0);
        }
    }
}
