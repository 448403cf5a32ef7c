//! `kv_write` and `attention` equal the reference whatever the heads, chunks and blocks.

use super::*;
use replica_core::BLOCK_TOKENS;

/// A prefill in chunks of two sequences, side by side, over blocks in a shuffled order.
pub(in crate::backend) struct Attention {
    pub(in crate::backend) shape: HeadShape,
    /// Rows of each sequence in each step.
    pub(in crate::backend) chunks: Vec<[usize; 2]>,
    pub(in crate::backend) seed: u64,
}

impl Case for Attention {
    fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
        let mut random = Random(self.seed);
        let totals = [0, 1].map(|s| self.chunks.iter().map(|c| c[s]).sum::<usize>());
        let blocks = totals.map(|t| t.div_ceil(BLOCK_TOKENS));
        // Ids are handed out from the far end, alternating.
        let pool_blocks = 2 * blocks[0].max(blocks[1]) + 2;
        let tables: [Vec<u32>; 2] = [0, 1].map(|s| {
            (0..blocks[s])
                .map(|i| (pool_blocks - 1 - 2 * i - s) as u32)
                .collect()
        });
        let shape = KvShape {
            layers: 2,
            blocks: pool_blocks,
            heads: self.shape,
        };
        let mut pool = b.new_kv_pool(shape).unwrap();
        let mut done = [0; 2];
        let mut result = Vec::new();
        for chunk in &self.chunks {
            let rows = chunk[0] + chunk[1];
            let positions: Vec<u32> = [0, 1]
                .iter()
                .flat_map(|&s| (done[s]..done[s] + chunk[s]).map(|p| p as u32))
                .collect();
            let ranges = [0..chunk[0], chunk[0]..rows];
            let sequences: Vec<StepSequence<'_>> = ranges
                .into_iter()
                .zip(&tables)
                .filter(|(rows, _)| !rows.is_empty())
                .map(|(rows, table)| StepSequence {
                    rows,
                    block_table: table,
                    wants_logits: true,
                })
                .collect();
            let tokens = vec![0; rows];
            let batch = StepBatch {
                tokens: &tokens,
                positions: &positions,
                sequences: &sequences,
            };
            let step = b.upload_step(&batch).unwrap();
            let qkv = random.floats(rows * self.shape.qkv_width());
            let qkv = buffer(b, rows, &qkv);
            let mut out = b.new_buffer(rows, self.shape.q_width()).unwrap();
            b.kv_write(&step, 1, &qkv, &mut pool);
            b.attention(&step, 1, &qkv, &pool, &mut out);
            result.extend(read(b, rows, &out));
            done = [done[0] + chunk[0], done[1] + chunk[1]];
        }
        result
    }
}

#[test]
fn attention_equals_the_reference_for_any_heads_and_chunks() {
    let shapes = [
        (9, 3, 64),
        (4, 4, 16),
        (2, 1, 6),
        (8, 1, 40),
        (5, 5, 128),
        (3, 1, 80),
        (12, 2, 20),
    ];
    for (seed, (heads, kv_heads, head_dim)) in shapes.into_iter().enumerate() {
        let shape = HeadShape {
            heads,
            kv_heads,
            head_dim,
        };
        for chunks in [
            vec![[1, 0], [1, 1], [1, 1]],
            vec![[15, 2], [1, 31], [1, 1], [34, 0]],
            vec![[70, 5], [1, 90], [1, 1]],
        ] {
            let what = format!("{shape:?} in {chunks:?}");
            check(
                &Attention {
                    shape,
                    chunks,
                    seed: seed as u64,
                },
                &what,
            );
        }
    }
}

/// A block that is written full of NaN first, then its first positions with numbers.
pub(in crate::backend) struct Stale(pub(in crate::backend) HeadShape);

impl Case for Stale {
    fn run<B: Backend>(&self, b: &mut B) -> Vec<f32> {
        let heads = self.0;
        let mut pool = b
            .new_kv_pool(KvShape {
                layers: 1,
                blocks: 3,
                heads,
            })
            .unwrap();
        let mut step_of = |b: &mut B, start: u32, rows: usize, value: Option<f32>| {
            let positions: Vec<u32> = (start..start + rows as u32).collect();
            let tokens = vec![0; rows];
            let sequences = [StepSequence {
                rows: 0..rows,
                block_table: &[2, 0],
                wants_logits: true,
            }];
            let batch = StepBatch {
                tokens: &tokens,
                positions: &positions,
                sequences: &sequences,
            };
            let step = b.upload_step(&batch).unwrap();
            let count = rows * heads.qkv_width();
            let qkv = value.map_or_else(|| Random(6).floats(count), |v| vec![v; count]);
            let qkv = buffer(b, rows, &qkv);
            b.kv_write(&step, 0, &qkv, &mut pool);
            let mut out = b.new_buffer(rows, heads.q_width()).unwrap();
            b.attention(&step, 0, &qkv, &pool, &mut out);
            read(b, rows, &out)
        };
        step_of(b, 0, 32, Some(f32::NAN));
        let clean = step_of(b, 0, 20, None);
        assert!(clean.iter().all(|v| v.is_finite()));
        clean
    }
}

#[test]
fn attention_reads_nothing_past_a_rows_own_position() {
    let shape = HeadShape {
        heads: 6,
        kv_heads: 2,
        head_dim: 16,
    };
    check(&Stale(shape), "after NaN");
}
