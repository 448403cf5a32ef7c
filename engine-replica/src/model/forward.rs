//! The transformer.

use std::sync::Arc;

use super::Capacity;
use super::batch::{self, Limits};
use super::config::ModelConfig;
use super::expert_load::ExpertLoad;
use super::mlp::MlpScratch;
use super::problem::ModelError;
use super::rope;
use super::tensors::heads_of;
use super::weights::{Layer, Weights};
use crate::backend::{Backend, HeadShape, KvShape, RopeTable};
use crate::engine::step::{StepBatch, StepError, StepModel};
use replica_core::BLOCK_TOKENS;

/// Rows of logits computed at a time: wide enough to read the output weight once for most steps, small beside the
/// weights even with a vocabulary of 150,000 (64 rows are 39 MB).
const LOGIT_ROWS_MAX: usize = 64;

/// A model's weights, its KV and its scratch on one backend.
pub struct LoadedModel<B: Backend> {
    backend: B,
    config: ModelConfig,
    limits: Limits,
    weights: Weights<B>,
    rope: RopeTable<B::Vector>,
    kv: B::KvPool,
    scratch: Scratch<B>,
    /// How the experts are used; `None` for a dense model.
    expert_load: Option<Arc<ExpertLoad>>,
}

/// Every buffer of the forward pass, made once; `rows` is `Capacity::rows_max`.
struct Scratch<B: Backend> {
    /// (rows, hidden): the residual stream.
    residual: B::Buffer,
    /// (rows, hidden): its normalised copy, and what each half of a layer adds to it.
    hidden: B::Buffer,
    /// (rows, qkv_width)
    qkv: B::Buffer,
    /// (rows, q_width)
    attended: B::Buffer,
    mlp: MlpScratch<B>,
    /// (logit rows, hidden), before and after the last norm.
    last: B::Buffer,
    /// (logit rows, hidden)
    last_normed: B::Buffer,
    /// (logit rows, vocab)
    logits: B::Buffer,
}

impl<B: Backend> Scratch<B> {
    fn new(backend: &mut B, config: &ModelConfig, rows: usize) -> Result<Self, ModelError> {
        let heads = heads_of(config);
        let wanted = rows.min(LOGIT_ROWS_MAX);
        Ok(Self {
            residual: backend.new_buffer(rows, config.hidden)?,
            hidden: backend.new_buffer(rows, config.hidden)?,
            qkv: backend.new_buffer(rows, heads.qkv_width())?,
            attended: backend.new_buffer(rows, heads.q_width())?,
            mlp: MlpScratch::new(backend, config, rows)?,
            last: backend.new_buffer(wanted, config.hidden)?,
            last_normed: backend.new_buffer(wanted, config.hidden)?,
            logits: backend.new_buffer(wanted, config.vocab)?,
        })
    }
}

impl<B: Backend> LoadedModel<B> {
    /// Makes room for `capacity` beside the weights.
    pub fn new(
        mut backend: B,
        config: ModelConfig,
        weights: Weights<B>,
        capacity: Capacity,
    ) -> Result<Self, ModelError> {
        let Capacity {
            rows_max,
            kv_blocks,
        } = capacity;
        let limits = Limits {
            vocab: config.vocab,
            rows_max,
            kv_blocks,
            positions: config
                .context_max
                .min(kv_blocks.saturating_mul(BLOCK_TOKENS)),
        };
        let heads = heads_of(&config);
        let kv = KvShape {
            layers: config.layers,
            blocks: kv_blocks,
            heads,
        };
        Ok(Self {
            rope: rope::table(&mut backend, &config, limits.positions)?,
            kv: backend.new_kv_pool(kv)?,
            scratch: Scratch::new(&mut backend, &config, rows_max)?,
            expert_load: ExpertLoad::of(&config).map(Arc::new),
            backend,
            config,
            limits,
            weights,
        })
    }

    /// One layer: residual += attention(norm(residual)); residual += mlp(norm(residual)).
    fn layer(&mut self, index: usize, rows: usize, step: &B::Step) {
        let Self {
            backend: b,
            config,
            rope,
            kv,
            weights,
            scratch: s,
            ..
        } = self;
        let heads: HeadShape = heads_of(config);
        let eps = config.rms_eps;
        let Layer {
            attention_norm,
            qkv,
            qk_norm,
            attention_out,
            mlp_norm,
            mlp,
        } = &weights.layers[index];

        b.rms_norm(rows, &s.residual, attention_norm, eps, &mut s.hidden);
        b.matmul(rows, qkv, &s.hidden, &mut s.qkv);
        if let Some((q, k)) = qk_norm {
            b.qk_norm(rows, &mut s.qkv, heads, (q, k), eps);
        }
        b.rope(step, rope, heads, &mut s.qkv);
        // K and V of the whole batch stand before any row attends: two sequences of one step may share a block.
        b.kv_write(step, index, &s.qkv, kv);
        b.attention(step, index, &s.qkv, kv, &mut s.attended);
        b.matmul(rows, attention_out, &s.attended, &mut s.hidden);
        b.add(rows, &mut s.residual, &s.hidden);

        b.rms_norm(rows, &s.residual, mlp_norm, eps, &mut s.hidden);
        mlp.compute(b, (rows, index), &mut s.hidden, &mut s.mlp);
        b.add(rows, &mut s.residual, &s.hidden);
    }

    /// Appends the logits of all rows that want them, a few rows at a time.
    fn logits(
        &mut self,
        step: &B::Step,
        wanted: usize,
        logits: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        let Self {
            backend: b,
            config,
            weights,
            scratch: s,
            ..
        } = self;
        let output = weights.output.as_ref().unwrap_or(&weights.embedding);
        for start in (0..wanted).step_by(LOGIT_ROWS_MAX) {
            let rows = (wanted - start).min(LOGIT_ROWS_MAX);
            b.gather_wanted(step, start..start + rows, &s.residual, &mut s.last);
            b.rms_norm(
                rows,
                &s.last,
                &weights.norm,
                config.rms_eps,
                &mut s.last_normed,
            );
            b.matmul(rows, output, &s.last_normed, &mut s.logits);
            b.read_back(rows, &s.logits, logits)
                .map_err(|e| StepError(e.0))?;
        }
        Ok(())
    }
}

impl<B: Backend> StepModel for LoadedModel<B> {
    fn vocab(&self) -> usize {
        self.config.vocab
    }

    fn kv_blocks(&self) -> usize {
        self.limits.kv_blocks
    }

    fn forward(&mut self, batch: &StepBatch<'_>, logits: &mut Vec<f32>) -> Result<(), StepError> {
        logits.clear();
        batch::check(batch, self.limits)?;
        let rows = batch.tokens.len();
        let wanted = batch.sequences.iter().filter(|s| s.wants_logits).count();
        let step = self
            .backend
            .upload_step(batch)
            .map_err(|e| StepError(e.0))?;
        let embedding = &self.weights.embedding;
        self.backend
            .embed(embedding, &step, &mut self.scratch.residual);
        for index in 0..self.config.layers {
            self.layer(index, rows, &step);
        }
        self.logits(&step, wanted, logits)?;
        if let Some(load) = &self.expert_load {
            let counts = self.scratch.mlp.take_expert_counts(&mut self.backend);
            load.record(&counts.map_err(|e| StepError(e.0))?);
        }
        Ok(())
    }

    fn expert_load(&self) -> Option<Arc<ExpertLoad>> {
        self.expert_load.clone()
    }
}
