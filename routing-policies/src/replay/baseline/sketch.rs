//! The first sketch of this gateway's own placement, kept as the baseline to beat.

use std::collections::HashMap;

use crate::placement::{Block, Lru};
use crate::replay::{Chance, Event, Placement, Request, Served, Setup, Sight};

/// Cost = tokens sent and not yet seen a first token for + 3 × tokens missing here beyond the hot prefix. Hot is a block that at
/// least 5 % of recent requests carry (half-life 1,000 requests).
#[derive(Debug)]
pub struct HotSketch {
    believed: Vec<Lru>,
    outstanding: Vec<f64>,
    predicted: HashMap<usize, f64>,
    missing: Vec<f64>,
    requests: f64,
    heat: HashMap<u64, (f64, f64)>,
    chance: Chance,
}

const WEIGHT: f64 = 3.0;
const HOT_SHARE: f64 = 0.05;
const HALF_LIFE: f64 = 1_000.0;
const WARM_UP: f64 = 20.0;

impl HotSketch {
    /// It believes each cache to be as large as it is.
    #[must_use]
    pub fn new(setup: &Setup, seed: u64) -> Self {
        Self {
            believed: vec![Lru::new(setup.cache_capacity()); setup.replicas],
            outstanding: vec![0.0; setup.replicas],
            predicted: HashMap::new(),
            missing: Vec::new(),
            requests: 0.0,
            heat: HashMap::new(),
            chance: Chance::new(seed),
        }
    }

    fn heat(&self, block: u64) -> f64 {
        self.heat.get(&block).map_or(0.0, |&(heat, at)| {
            heat * ((at - self.requests) / HALF_LIFE).exp2()
        })
    }
}

impl Placement for HotSketch {
    fn pick(&mut self, _: usize, request: &Request, _: Sight<'_>) -> usize {
        let blocks = &request.blocks;
        let recent = self.requests.min(HALF_LIFE / std::f64::consts::LN_2);
        let is_hot = |block: &&Block| self.heat(block.key) >= HOT_SHARE * recent;
        let hot = if self.requests >= WARM_UP {
            tokens(blocks.iter().take_while(is_hot))
        } else {
            0
        };
        let held: Vec<u64> = self
            .believed
            .iter()
            .map(|cache| cache.held_tokens(blocks))
            .collect();
        let all = tokens(blocks.iter());
        self.missing = held.iter().map(|held| (all - held) as f64).collect();
        let costs: Vec<f64> = held
            .iter()
            .zip(&self.outstanding)
            .map(|(&held, waiting)| waiting + WEIGHT * (all - held.max(hot)) as f64)
            .collect();
        self.chance.least(costs.iter().copied())
    }

    fn routed(&mut self, place: usize, request: &Request, replica: usize) {
        self.believed[replica].insert(&request.blocks, |_, _| ());
        self.predicted.insert(place, self.missing[replica]);
        self.outstanding[replica] += self.missing[replica];
        self.requests += 1.0;
        for block in &request.blocks {
            let heat = self.heat(block.key) + 1.0;
            self.heat.insert(block.key, (heat, self.requests));
        }
    }

    fn first_token(&mut self, event: Event, _: &Request, _: Served) {
        if let Some(predicted) = self.predicted.remove(&event.request) {
            self.outstanding[event.replica] -= predicted;
        }
    }
}

fn tokens<'b>(blocks: impl Iterator<Item = &'b Block>) -> u64 {
    blocks.map(|block| u64::from(block.tokens)).sum()
}
