//! A buffer that several threads write at once, each its own part.
#![expect(
    unsafe_code,
    reason = "disjoint writes that the borrow checker cannot see; A4 allows it in backend/cpu"
)]

use std::marker::PhantomData;
use std::ops::Range;

use super::super::host::HostBuffer;

/// The rows of a buffer, borrowed for writing by all tasks of one parallel loop.
pub(super) struct SharedRows<'a> {
    start: *mut f32,
    floats: usize,
    width: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: the pointer is only followed in `part`, whose caller promises that parts in use do not overlap.
unsafe impl Sync for SharedRows<'_> {}

impl<'a> SharedRows<'a> {
    pub(super) fn new(buffer: &'a mut HostBuffer) -> Self {
        let width = buffer.width;
        let all = buffer.data.all_mut();
        Self {
            start: all.as_mut_ptr(),
            floats: all.len(),
            width,
            borrowed: PhantomData,
        }
    }

    /// As `new`, over floats that are no buffer: `width` to a row.
    pub(super) fn over(floats: &'a mut [f32], width: usize) -> Self {
        let (start, floats) = (floats.as_mut_ptr(), floats.len());
        Self {
            start,
            floats,
            width,
            borrowed: PhantomData,
        }
    }

    /// Columns `cols` of row `row`.
    ///
    /// # Safety
    /// While the result lives nobody else uses an element of it.
    #[expect(
        clippy::mut_from_ref,
        reason = "that is this type's purpose; the caller promises no overlap"
    )]
    pub(super) unsafe fn part(&self, row: usize, cols: Range<usize>) -> &mut [f32] {
        assert!(cols.start <= cols.end && cols.end <= self.width);
        assert!((row + 1) * self.width <= self.floats);
        // SAFETY: the asserts keep the range inside the borrowed floats; the caller promises that it is not shared.
        unsafe {
            let at = self.start.add(row * self.width + cols.start);
            std::slice::from_raw_parts_mut(at, cols.len())
        }
    }
}
