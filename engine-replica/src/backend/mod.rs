//! The coarse operations that a model is made of, each with its shapes and numeric contract.
//!
//! A backend owns memory of its own kind: matrices, vectors, activation buffers and KV blocks are opaque to the
//! model, and host memory is seen only in the `upload_*` operations and in `read_back`. Operations are queued in
//! order; a backend that works behind the caller's back reports a failed operation at the next `read_back`.
//!
//! The contract of every operation is exact: it names each rounding and its order, so that backends can be compared
//! bit for bit and so that a row's result never depends on the rows beside it (invariant A15). `reference` is that
//! contract written as plain code.
//!
//! Words used below: `rows` counts the activation rows in use, `fma(a, b, c)` rounds `a·b + c` once, and
//! `lane_sum(f)` adds `f(i)` into lane `i mod 16` in ascending `i`, then folds the sixteen lanes in halves
//! (`numeric::fold_lanes`).

pub mod cpu;
pub mod cuda;
mod dequant;
mod host;
mod mixture;
pub mod numeric;
pub mod reference;
#[cfg(test)]
pub(crate) mod testing;

pub use dequant::dequantise;
pub use mixture::MixtureShape;

use std::ops::Range;

use crate::engine::step::StepBatch;
use crate::loader::tensor::TensorView;

/// How the heads of one attention layer lie in a row: query heads, then key heads, then value heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`, and query head `h` reads key head `h / (heads / kv_heads)`.
    pub kv_heads: usize,
    /// Elements of one head; even.
    pub head_dim: usize,
}

impl HeadShape {
    /// Elements of all query heads of a row.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of all key heads of a row, which is also the value heads'.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Elements of a row of queries, keys and values together.
    pub fn qkv_width(&self) -> usize {
        self.q_width() + 2 * self.kv_width()
    }

    /// Query heads that share one key head.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
}

/// Size of a KV pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvShape {
    /// Layers, each with its own K and V for every block.
    pub layers: usize,
    /// Blocks of `BLOCK_TOKENS` positions; block ids are `0..blocks`.
    pub blocks: usize,
    /// The heads of every layer.
    pub heads: HeadShape,
}

/// Which pairs of a head are turned by `rope`, and by how much.
#[derive(Debug)]
pub struct RopeTable<V> {
    /// `(positions, head_dim / 2)` cosines.
    pub cos: V,
    /// `(positions, head_dim / 2)` sines.
    pub sin: V,
    /// The pairing.
    pub style: crate::model::config::RopeStyle,
}

/// Why a backend cannot hold or finish something; says what and how much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// One kind of compute with its own memory.
///
/// Shapes and values that the model has checked (token ids, positions, block ids, widths) are taken as true; a
/// backend may panic where they are not, and must not touch memory outside its own.
pub trait Backend: Send + 'static {
    /// A weight `(out, in)` in whatever layout and precision the backend multiplies with.
    type Matrix: Send;
    /// `(n)` floats.
    type Vector: Send;
    /// Activations `(rows_max, width)`, f32.
    type Buffer: Send;
    /// K and V of all layers in blocks.
    type KvPool: Send;
    /// One step's token ids, positions and block tables.
    type Step: Send;
    /// A weight `(out, in)` for each expert of a layer, all of one shape.
    type Experts: Send;
    /// The experts that a step's rows go to, and how often each expert was chosen.
    ///
    /// Each row has `chosen` choices. Each choice has a slot: slots are numbered from 0 by rising expert, and by
    /// rising row among those of one expert, so that an expert's slots lie side by side.
    type Routing: Send;

    /// The backend's name in logs and in `/health`.
    fn name(&self) -> &'static str;

    /// Takes a weight whose rows are those of all `parts`, one after the other; parts share `cols`, not their type.
    /// Every element counts as its exact value rounded once to f32 (see `DType`).
    fn upload_matrix(&mut self, parts: &[TensorView<'_>]) -> Result<Self::Matrix, BackendError>;

    /// Takes the weights of a layer's experts, each as `upload_matrix` takes one.
    fn upload_experts(
        &mut self,
        experts: &[Vec<TensorView<'_>>],
    ) -> Result<Self::Experts, BackendError>;

    /// Makes room for the choices of `rows_max` rows.
    fn new_routing(
        &mut self,
        rows_max: usize,
        shape: MixtureShape,
    ) -> Result<Self::Routing, BackendError>;

    /// Takes `(n)` floats.
    fn upload_vector(&mut self, values: &[f32]) -> Result<Self::Vector, BackendError>;

    /// Makes room for activations `(rows_max, width)`.
    fn new_buffer(&mut self, rows_max: usize, width: usize) -> Result<Self::Buffer, BackendError>;

    /// Makes room for K and V.
    fn new_kv_pool(&mut self, shape: KvShape) -> Result<Self::KvPool, BackendError>;

    /// Takes a step's token ids, positions and block tables.
    fn upload_step(&mut self, batch: &StepBatch<'_>) -> Result<Self::Step, BackendError>;

    /// out (rows, hidden) = the rows of `table` (vocab, hidden) named by the step's token ids. Exact.
    fn embed(&mut self, table: &Self::Matrix, step: &Self::Step, out: &mut Self::Buffer);

    /// out (rows, n) = x · (1 / sqrt(mean(x²) + eps)) · weight (n), with `mean = lane_sum(fma(x, x, ·)) / n` and
    /// products rounded from left to right.
    fn rms_norm(
        &mut self,
        rows: usize,
        x: &Self::Buffer,
        weight: &Self::Vector,
        eps: f32,
        out: &mut Self::Buffer,
    );

    /// x (rows, n) += y (rows, n), one rounding each.
    fn add(&mut self, rows: usize, x: &mut Self::Buffer, y: &Self::Buffer);

    /// out (rows, out) = x (rows, in) · wᵀ. Each output is one f32 that starts at +0 and takes
    /// `acc = fma(w[n, k], x[k], acc)` in ascending `k`.
    fn matmul(
        &mut self,
        rows: usize,
        weight: &Self::Matrix,
        x: &Self::Buffer,
        out: &mut Self::Buffer,
    );

    /// `rms_norm` of each query head with `q_weight` (head_dim) and of each key head with `k_weight` (head_dim), in
    /// place in `qkv` (rows, qkv_width).
    fn qk_norm(
        &mut self,
        rows: usize,
        qkv: &mut Self::Buffer,
        heads: HeadShape,
        weights: (&Self::Vector, &Self::Vector),
        eps: f32,
    );

    /// Turns each pair (a, b) of every query and key head of `qkv` (rows, qkv_width) to
    /// (a·cos − b·sin, b·cos + a·sin) at the row's position: each product and each sum rounded.
    fn rope(
        &mut self,
        step: &Self::Step,
        table: &RopeTable<Self::Vector>,
        heads: HeadShape,
        qkv: &mut Self::Buffer,
    );

    /// Copies K and V of every row of `qkv` (rows, qkv_width) into the row's place in its sequence's blocks.
    fn kv_write(
        &mut self,
        step: &Self::Step,
        layer: usize,
        qkv: &Self::Buffer,
        pool: &mut Self::KvPool,
    );

    /// out (rows, q_width): for each row at position p and each head, over the positions t ≤ p of its own sequence:
    /// `s[t] = (fma chain over d of q[d]·k[t, d]) · head_dim^-½`; `e[t] = numeric::exp(s[t] − max s)`;
    /// `out[d] = (fma chain over t of e[t]·v[t, d]) / lane_sum(e)`. Nothing at a position after p is read.
    fn attention(
        &mut self,
        step: &Self::Step,
        layer: usize,
        qkv: &Self::Buffer,
        pool: &Self::KvPool,
        out: &mut Self::Buffer,
    );

    /// out (rows, n) = numeric::silu(gate) · up, where `gate_up` (rows, 2n) holds the gates and then the ups.
    fn silu_mul(&mut self, rows: usize, gate_up: &Self::Buffer, out: &mut Self::Buffer);

    /// Chooses the experts of each row of a mixture's layer, and counts them.
    ///
    /// For each row of `logits` (rows, experts), which holds `p` afterwards: `e[i] = numeric::exp(l[i] − max l)`,
    /// `p = e / lane_sum(e)`. Its choices are the experts of the greatest `p`, in falling order of `p` and rising
    /// order of number where `p` is equal (and the first experts where `p` is NaN). Their weights are their `p`; where
    /// the shape says `renormalise`, each is divided by their sum, taken in that order from +0.
    fn route(
        &mut self,
        rows: usize,
        layer: usize,
        logits: &mut Self::Buffer,
        routing: &mut Self::Routing,
    );

    /// out (slots, n) = x (rows, n): to each slot its row. Exact.
    fn scatter(&mut self, routing: &Self::Routing, x: &Self::Buffer, out: &mut Self::Buffer);

    /// out (slots, out) = x (slots, in) times the slot's own expert's weight, as `matmul`.
    fn expert_matmul(
        &mut self,
        routing: &Self::Routing,
        experts: &Self::Experts,
        x: &Self::Buffer,
        out: &mut Self::Buffer,
    );

    /// out (rows, n) = the row's slots of x (slots, n), weighted: from +0, `acc = fma(weight, x[slot], acc)` over the
    /// row's choices in their order.
    fn combine(&mut self, routing: &Self::Routing, x: &Self::Buffer, out: &mut Self::Buffer);

    /// Appends how often each expert was chosen (layers, experts) since this was last called, once everything queued
    /// is done.
    fn take_expert_counts(
        &mut self,
        routing: &mut Self::Routing,
        counts: &mut Vec<u32>,
    ) -> Result<(), BackendError>;

    /// out (wanted.len(), n) = the rows of x (rows, n) whose logits the step wants, those numbered `wanted` among
    /// them in order.
    fn gather_wanted(
        &mut self,
        step: &Self::Step,
        wanted: Range<usize>,
        x: &Self::Buffer,
        out: &mut Self::Buffer,
    );

    /// Appends x (rows, n) to `out` once everything queued is done.
    fn read_back(
        &mut self,
        rows: usize,
        x: &Self::Buffer,
        out: &mut Vec<f32>,
    ) -> Result<(), BackendError>;
}
