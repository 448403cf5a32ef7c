//! An NVIDIA GPU, through the driver that is found when the program starts; nothing of CUDA is needed to build.
//!
//! The kernels keep the whole contract of `Backend`: every sum is one chain in the contract's order and every rounding is named, so
//! this backend gives the reference's bits, and A15 holds as it does there. That costs speed: neither tensor cores nor a split of
//! long contexts keep that order.
//!
//! Mixtures of experts are refused when their weights come; there are no kernels for them.
//!
//! Operations are queued on one stream. The first one that fails is told at the next `read_back`, and those after it do nothing.

#![expect(
    unsafe_code,
    reason = "the driver, NVRTC and the kernels are foreign code"
)]

mod device;
mod driver;
mod error;
mod image;
mod memory;
mod nvrtc;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ops::Range;

use cudarc::driver::CudaSlice;

pub use error::CudaError;
pub use memory::{Buffer, KvPool, Matrix, Step};

use super::{Backend, BackendError, HeadShape, KvShape, MixtureShape, RopeTable};
use crate::engine::step::StepBatch;
use crate::loader::tensor::{DType, TensorView};
use crate::model::config::RopeStyle;
use device::{Arg, Device, Grid};
use memory::Table;

/// Threads of a block in all kernels.
const THREADS: usize = 128;
/// Outputs and rows that one block of a matmul makes.
const MATMUL_TILE: (usize, usize) = (32, 16);

/// The CUDA backend.
pub struct Cuda {
    device: Device,
    failed: Option<BackendError>,
}

impl Cuda {
    /// A backend on the GPU of this number. The first time on a machine the kernels are compiled, which takes seconds; the log says so.
    ///
    /// # Errors
    /// When there is no such GPU, or the driver or NVRTC is missing or too old: see `CudaError`.
    pub fn open(number: usize) -> Result<Self, CudaError> {
        Ok(Self {
            device: Device::open(number)?,
            failed: None,
        })
    }

    /// The GPU's name, as its driver tells.
    pub fn gpu(&self) -> &str {
        &self.device.name
    }

    fn launch(&mut self, name: &'static str, grid: Grid, args: &[Arg]) {
        if self.failed.is_none() {
            self.failed = self.device.launch(name, grid, args).err();
        }
    }

    /// Queues a kernel with one thread for each of `count` elements, which is its last argument.
    fn each(&mut self, name: &'static str, count: usize, args: &[Arg]) {
        let grid = grid(count.div_ceil(THREADS), 1, 0);
        self.launch(name, grid, &[args, &[Arg::U64(count as u64)]].concat());
    }

    fn at<T>(&self, slice: &CudaSlice<T>) -> Arg {
        self.device.at(slice, 0)
    }

    fn table(&self, step: &Step, table: Table) -> Arg {
        step.table(&self.device, table)
    }
}

fn grid(x: usize, y: usize, shared_floats: usize) -> Grid {
    Grid {
        blocks: (x, y),
        threads: THREADS as u32,
        shared_bytes: shared_floats * size_of::<f32>(),
    }
}

impl Backend for Cuda {
    type Matrix = Matrix;
    type Vector = CudaSlice<f32>;
    type Buffer = Buffer;
    type KvPool = KvPool;
    type Step = Step;
    // Nothing has these types: a model that needs them is refused before there could be any.
    type Experts = Infallible;
    type Routing = Infallible;

    fn name(&self) -> &'static str {
        "cuda"
    }

    fn upload_matrix(&mut self, parts: &[TensorView<'_>]) -> Result<Matrix, BackendError> {
        Matrix::upload(&self.device, parts)
    }

    fn upload_experts(
        &mut self,
        _experts: &[Vec<TensorView<'_>>],
    ) -> Result<Infallible, BackendError> {
        Err(no_mixtures())
    }

    fn new_routing(
        &mut self,
        _rows_max: usize,
        _shape: MixtureShape,
    ) -> Result<Infallible, BackendError> {
        Err(no_mixtures())
    }

    fn upload_vector(&mut self, values: &[f32]) -> Result<CudaSlice<f32>, BackendError> {
        self.device.upload(values)
    }

    fn new_buffer(&mut self, rows_max: usize, width: usize) -> Result<Buffer, BackendError> {
        Buffer::new(&self.device, rows_max, width)
    }

    fn new_kv_pool(&mut self, shape: KvShape) -> Result<KvPool, BackendError> {
        KvPool::new(&self.device, shape)
    }

    fn upload_step(&mut self, batch: &StepBatch<'_>) -> Result<Step, BackendError> {
        Step::upload(&self.device, batch)
    }

    fn embed(&mut self, table: &Matrix, step: &Step, out: &mut Buffer) {
        for part in &table.parts {
            let args = [
                self.at(&out.data),
                self.at(&part.data),
                self.table(step, Table::Tokens),
                part.first.into(),
                part.rows.into(),
                table.cols.into(),
            ];
            self.each(embed_of(part.dtype), step.rows * table.cols, &args);
        }
    }

    fn rms_norm(
        &mut self,
        rows: usize,
        x: &Buffer,
        weight: &CudaSlice<f32>,
        eps: f32,
        out: &mut Buffer,
    ) {
        let args = [
            self.at(&out.data),
            self.at(&x.data),
            self.at(weight),
            out.width.into(),
            Arg::F32(eps),
        ];
        self.launch("rms_norm", grid(rows, 1, 0), &args);
    }

    fn add(&mut self, rows: usize, x: &mut Buffer, y: &Buffer) {
        let args = [self.at(&x.data), self.at(&y.data)];
        self.each("add", rows * x.width, &args);
    }

    fn matmul(&mut self, rows: usize, weight: &Matrix, x: &Buffer, out: &mut Buffer) {
        for part in &weight.parts {
            let (tile_outs, tile_rows) = MATMUL_TILE;
            let blocks = grid(part.rows.div_ceil(tile_outs), rows.div_ceil(tile_rows), 0);
            let args = [
                self.at(&out.data),
                self.at(&x.data),
                self.at(&part.data),
                rows.into(),
                weight.cols.into(),
                part.rows.into(),
                out.width.into(),
                part.first.into(),
            ];
            self.launch(matmul_of(part.dtype), blocks, &args);
        }
    }

    fn qk_norm(
        &mut self,
        rows: usize,
        qkv: &mut Buffer,
        heads: HeadShape,
        (q_weight, k_weight): (&CudaSlice<f32>, &CudaSlice<f32>),
        eps: f32,
    ) {
        let args = [
            self.at(&qkv.data),
            self.at(q_weight),
            self.at(k_weight),
            heads.heads.into(),
            heads.head_dim.into(),
            heads.qkv_width().into(),
            Arg::F32(eps),
        ];
        let blocks = grid(rows, heads.heads + heads.kv_heads, 0);
        self.launch("qk_norm", blocks, &args);
    }

    fn rope(
        &mut self,
        step: &Step,
        table: &RopeTable<CudaSlice<f32>>,
        heads: HeadShape,
        qkv: &mut Buffer,
    ) {
        let turned = heads.heads + heads.kv_heads;
        let args = [
            self.at(&qkv.data),
            self.table(step, Table::Positions),
            self.at(&table.cos),
            self.at(&table.sin),
            turned.into(),
            heads.head_dim.into(),
            heads.qkv_width().into(),
            Arg::U32(u32::from(table.style == RopeStyle::Interleaved)),
        ];
        self.each("rope", step.rows * turned * (heads.head_dim / 2), &args);
    }

    fn kv_write(&mut self, step: &Step, layer: usize, qkv: &Buffer, pool: &mut KvPool) {
        let heads = pool.shape.heads;
        let before = pool.before(layer);
        let args = [
            self.device.at(&pool.keys, before),
            self.device.at(&pool.values, before),
            self.at(&qkv.data),
            self.table(step, Table::Positions),
            self.table(step, Table::Sequences),
            self.table(step, Table::Blocks),
            heads.q_width().into(),
            heads.kv_width().into(),
        ];
        self.each("kv_write", step.rows * heads.kv_width(), &args);
    }

    fn attention(
        &mut self,
        step: &Step,
        layer: usize,
        qkv: &Buffer,
        pool: &KvPool,
        out: &mut Buffer,
    ) {
        let heads = pool.shape.heads;
        let before = pool.before(layer);
        let args = [
            self.at(&out.data),
            self.at(&qkv.data),
            self.device.at(&pool.keys, before),
            self.device.at(&pool.values, before),
            self.table(step, Table::Positions),
            self.table(step, Table::Sequences),
            self.table(step, Table::Blocks),
            heads.heads.into(),
            heads.kv_heads.into(),
            heads.head_dim.into(),
            Arg::F32(1.0 / (heads.head_dim as f32).sqrt()),
        ];
        let blocks = grid(step.rows, heads.heads, 2 * heads.head_dim);
        self.launch("attention", blocks, &args);
    }

    fn silu_mul(&mut self, rows: usize, gate_up: &Buffer, out: &mut Buffer) {
        let args = [self.at(&out.data), self.at(&gate_up.data), out.width.into()];
        self.each("silu_mul", rows * out.width, &args);
    }

    fn route(
        &mut self,
        _rows: usize,
        _layer: usize,
        _logits: &mut Buffer,
        routing: &mut Infallible,
    ) {
        match *routing {}
    }

    fn scatter(&mut self, routing: &Infallible, _x: &Buffer, _out: &mut Buffer) {
        match *routing {}
    }

    fn expert_matmul(
        &mut self,
        routing: &Infallible,
        _experts: &Infallible,
        _x: &Buffer,
        _out: &mut Buffer,
    ) {
        match *routing {}
    }

    fn combine(&mut self, routing: &Infallible, _x: &Buffer, _out: &mut Buffer) {
        match *routing {}
    }

    fn take_expert_counts(
        &mut self,
        routing: &mut Infallible,
        _counts: &mut Vec<u32>,
    ) -> Result<(), BackendError> {
        match *routing {}
    }

    fn gather_wanted(&mut self, step: &Step, wanted: Range<usize>, x: &Buffer, out: &mut Buffer) {
        let args = [
            self.at(&out.data),
            self.at(&x.data),
            step.skipped(&self.device, Table::Wanted, wanted.start),
            x.width.into(),
        ];
        self.each("gather", wanted.len() * x.width, &args);
    }

    fn read_back(
        &mut self,
        rows: usize,
        x: &Buffer,
        out: &mut Vec<f32>,
    ) -> Result<(), BackendError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let before = out.len();
        out.resize(before + rows * x.width, 0.0);
        let done = self.device.download(&x.data, &mut out[before..]);
        self.failed = done.clone().err();
        done
    }
}

fn no_mixtures() -> BackendError {
    BackendError(
        "the CUDA backend has no kernels for models with a mixture of experts; use `--device cpu`"
            .to_owned(),
    )
}

fn embed_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "embed_f32",
        DType::F16 => "embed_f16",
        DType::Bf16 => "embed_bf16",
        DType::Q8_0 => "embed_q8_0",
        DType::Q4_0 => "embed_q4_0",
        DType::Q4_1 => "embed_q4_1",
    }
}

fn matmul_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "matmul_f32",
        DType::F16 => "matmul_f16",
        DType::Bf16 => "matmul_bf16",
        DType::Q8_0 => "matmul_q8_0",
        DType::Q4_0 => "matmul_q4_0",
        DType::Q4_1 => "matmul_q4_1",
    }
}
