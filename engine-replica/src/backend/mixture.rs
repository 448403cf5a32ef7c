//! Which rows go to which experts, for the two backends in host memory.

use std::ops::Range;

use super::BackendError;
use super::host::floats_of;

/// How the rows of a mixture's layers are shared out among experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixtureShape {
    /// Layers of the model; choices are counted for each.
    pub layers: usize,
    /// Experts of a layer.
    pub experts: usize,
    /// Experts that each row goes to; from 1 to `experts`.
    pub chosen: usize,
    /// Whether the weights of a row's experts are scaled to sum to 1.
    pub renormalise: bool,
}

/// The experts of every row of a step, and the slots that stand for them.
#[derive(Debug)]
pub struct HostRouting {
    pub(super) shape: MixtureShape,
    /// Rows routed last.
    pub(super) rows: usize,
    /// (rows_max, chosen): each row's experts, the likeliest first.
    pub(super) experts: Vec<u32>,
    /// (rows_max, chosen): their weights.
    pub(super) weights: Vec<f32>,
    /// (rows_max, chosen): the slot of each.
    pub(super) slots: Vec<u32>,
    /// (rows_max · chosen): the row of each slot.
    pub(super) sources: Vec<u32>,
    /// (experts + 1): where each expert's slots start, and where the last one's end.
    starts: Vec<usize>,
    /// (layers, experts): rows that went to each since the counts were last taken.
    counts: Vec<u32>,
}

impl HostRouting {
    pub(super) fn new(rows_max: usize, shape: MixtureShape) -> Result<Self, BackendError> {
        let choices = floats_of(&[rows_max, shape.chosen])?;
        Ok(Self {
            shape,
            rows: 0,
            experts: vec![0; choices],
            weights: vec![0.0; choices],
            slots: vec![0; choices],
            sources: vec![0; choices],
            starts: vec![0; shape.experts + 1],
            counts: vec![0; floats_of(&[shape.layers, shape.experts])?],
        })
    }

    /// Slots in use.
    pub(super) fn slots_used(&self) -> usize {
        self.rows * self.shape.chosen
    }

    /// The slots of an expert.
    pub(super) fn slots_of(&self, expert: usize) -> Range<usize> {
        self.starts[expert]..self.starts[expert + 1]
    }

    /// The choices of a row.
    pub(super) fn choices(&self, row: usize) -> Range<usize> {
        row * self.shape.chosen..(row + 1) * self.shape.chosen
    }

    /// Gives every choice of the first `rows` rows its slot, by expert and then by row, and counts it for `layer`.
    pub(super) fn group(&mut self, rows: usize, layer: usize) {
        self.rows = rows;
        let used = self.slots_used();
        self.starts.fill(0);
        for &expert in &self.experts[..used] {
            self.starts[expert as usize + 1] += 1;
        }
        let counts = &mut self.counts[layer * self.shape.experts..][..self.shape.experts];
        for (expert, count) in counts.iter_mut().enumerate() {
            // A step has far fewer rows than a count holds, and every step takes the counts.
            *count = count.saturating_add(self.starts[expert + 1] as u32);
            self.starts[expert + 1] += self.starts[expert];
        }
        let mut next = self.starts.clone();
        for choice in 0..used {
            let next = &mut next[self.experts[choice] as usize];
            self.slots[choice] = *next as u32;
            self.sources[*next] = (choice / self.shape.chosen) as u32;
            *next += 1;
        }
    }

    /// Appends the counts to `out` and starts them again from 0.
    pub(super) fn take_counts(&mut self, out: &mut Vec<u32>) {
        out.extend_from_slice(&self.counts);
        self.counts.fill(0);
    }
}

/// Scales the weights of one row's experts to sum to 1: each over their sum, which is taken in order from +0.
pub(super) fn renormalise(weights: &mut [f32]) {
    let sum = weights.iter().fold(0.0, |sum, &w| sum + w);
    weights.iter_mut().for_each(|w| *w /= sum);
}
