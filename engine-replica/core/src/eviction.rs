//! Which reusable block goes next when room is wanted.
//!
//! A block belongs to the session that alone has used it; one that two sessions use, or that came without a session, is
//! nobody's. The order is: blocks of sessions that were released, of sessions whose hint has run out, plain ones the
//! longest unused first, and at last those of sessions that a hint keeps. Within a session the longest unused goes first,
//! so that its abandoned branches go before what it goes on from. Only leaves go, whatever their session: a block on
//! which another reusable one builds outlives it.
//!
//! A hint is a bias, never a hold: kept blocks go when nothing else is left, and above `kept_max` of them the longest
//! unused compete with plain ones as if there were no hint.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::block_pool::BlockId;

mod standing;

pub use standing::{STANDINGS, Standing};

/// Names a session, in the words of whoever gives hints.
pub type SessionKey = Arc<str>;

/// Milliseconds on the caller's clock, which never goes back.
pub type Millis = u64;

/// A session inside this module; `NOBODY` for blocks without one.
pub(crate) type OwnerId = u64;

/// Owner of blocks that are no single session's.
pub(crate) const NOBODY: OwnerId = 0;

#[derive(Debug)]
struct Owner {
    name: Option<SessionKey>,
    standing: Standing,
    /// End of the hint; present exactly while `Kept`.
    keep_until: Option<Millis>,
    /// What was said of it was about a pause that is over: it counts until the turn ends that came since.
    stale: bool,
    /// Blocks that could go at once, by when they were last used.
    leaves: BTreeSet<(u64, BlockId)>,
    /// Reusable blocks that nobody holds, leaves and others.
    idle: usize,
    /// Reusable blocks, held ones among them.
    owned: usize,
    /// Sequences of this session that wait or run.
    users: usize,
}

impl Owner {
    fn new(name: Option<SessionKey>) -> Self {
        Self {
            name,
            standing: Standing::Plain,
            keep_until: None,
            stale: false,
            leaves: BTreeSet::new(),
            idle: 0,
            owned: 0,
            users: 0,
        }
    }
}

/// The order in which idle reusable blocks go.
#[derive(Debug)]
pub(crate) struct Eviction {
    owners: BTreeMap<OwnerId, Owner>,
    by_name: BTreeMap<SessionKey, OwnerId>,
    /// Owners with leaves by standing, each under the time of its longest unused leaf.
    ranks: [BTreeSet<(u64, OwnerId)>; STANDINGS],
    deadlines: BTreeSet<(Millis, OwnerId)>,
    now: Millis,
    owner_next: OwnerId,
    kept_idle: usize,
    kept_max: usize,
    evicted: [u64; STANDINGS],
}

impl Eviction {
    pub(crate) fn new(kept_max: usize) -> Self {
        Self {
            owners: BTreeMap::from([(NOBODY, Owner::new(None))]),
            by_name: BTreeMap::new(),
            ranks: std::array::from_fn(|_| BTreeSet::new()),
            deadlines: BTreeSet::new(),
            now: 0,
            owner_next: NOBODY + 1,
            kept_idle: 0,
            kept_max,
            evicted: [0; STANDINGS],
        }
    }

    pub(crate) fn set_kept_max(&mut self, blocks: usize) {
        self.kept_max = blocks;
    }

    /// Idle blocks that a hint keeps.
    pub(crate) fn kept_idle(&self) -> usize {
        self.kept_idle
    }

    pub(crate) fn evicted(&self) -> [u64; STANDINGS] {
        self.evicted
    }

    /// A block of `id` is going.
    pub(crate) fn count_evicted(&mut self, id: OwnerId) {
        if let Some(owner) = self.owners.get(&id) {
            self.evicted[owner.standing as usize] += 1;
        }
    }

    /// Sessions that own something or are at work.
    pub(crate) fn sessions(&self) -> usize {
        self.by_name.len()
    }

    /// A sequence of `session` has come; what was said of it before no longer counts against it.
    pub(crate) fn enter(&mut self, session: &SessionKey) -> OwnerId {
        let id = match self.by_name.get(session) {
            Some(&id) => id,
            None => {
                let id = self.owner_next;
                self.owner_next += 1;
                self.by_name.insert(Arc::clone(session), id);
                self.owners
                    .insert(id, Owner::new(Some(Arc::clone(session))));
                id
            }
        };
        if let Some(owner) = self.owners.get_mut(&id) {
            owner.users += 1;
            owner.stale = true;
            if owner.standing != Standing::Kept {
                self.stand(id, Standing::Plain, None);
            }
        }
        id
    }

    /// A sequence that has entered is gone; what its session owns is worth keeping until `keep_until`, if that was said.
    pub(crate) fn leave(&mut self, id: OwnerId, keep_until: Option<Millis>) {
        if let Some(owner) = self.owners.get_mut(&id) {
            owner.users = owner.users.saturating_sub(1);
        }
        let over = self
            .owners
            .get(&id)
            .is_some_and(|o| o.users == 0 && o.stale);
        match keep_until {
            Some(until) => self.keep_owner(id, until),
            None if over => self.stand(id, Standing::Plain, None),
            None => {}
        }
        self.drop_if_unused(id);
    }

    /// Keeps what `session` owns until `until` if that lies ahead; says whether anything is known of the session.
    pub(crate) fn keep(&mut self, session: &str, until: Millis) -> bool {
        let Some(&id) = self.by_name.get(session) else {
            return false;
        };
        self.keep_owner(id, until);
        true
    }

    fn keep_owner(&mut self, id: OwnerId, until: Millis) {
        if let Some(owner) = self.owners.get_mut(&id) {
            owner.stale = false;
        }
        if until > self.now {
            self.stand(id, Standing::Kept, Some(until));
        } else {
            self.lapse(id);
        }
    }

    /// `session` has ended or moved away.
    pub(crate) fn release(&mut self, session: &str) -> bool {
        let Some(&id) = self.by_name.get(session) else {
            return false;
        };
        let at_work = self.owners.get(&id).is_some_and(|owner| owner.users > 0);
        let standing = if at_work {
            Standing::Plain
        } else {
            Standing::Released
        };
        self.stand(id, standing, None);
        true
    }

    /// It is `now`: hints that end by then are over.
    pub(crate) fn advance(&mut self, now: Millis) {
        self.now = self.now.max(now);
        while let Some(&(until, id)) = self.deadlines.first()
            && until <= self.now
        {
            self.lapse(id);
        }
    }

    /// The hint is over. A session that is at work is not late.
    fn lapse(&mut self, id: OwnerId) {
        let at_work = self.owners.get(&id).is_some_and(|owner| owner.users > 0);
        let standing = if at_work {
            Standing::Plain
        } else {
            Standing::Expired
        };
        self.stand(id, standing, None);
    }

    fn stand(&mut self, id: OwnerId, standing: Standing, keep_until: Option<Millis>) {
        let Some(owner) = self.owners.get_mut(&id) else {
            return;
        };
        let first = owner.leaves.first().map(|&(used, _)| used);
        if let Some(used) = first {
            self.ranks[owner.standing as usize].remove(&(used, id));
            self.ranks[standing as usize].insert((used, id));
        }
        if owner.standing == Standing::Kept {
            self.kept_idle -= owner.idle;
        }
        if standing == Standing::Kept {
            self.kept_idle += owner.idle;
        }
        if let Some(before) = std::mem::replace(&mut owner.keep_until, keep_until) {
            self.deadlines.remove(&(before, id));
        }
        if let Some(until) = keep_until {
            self.deadlines.insert((until, id));
        }
        owner.standing = standing;
    }

    /// `id` owns one reusable block more.
    pub(crate) fn gain(&mut self, id: OwnerId) {
        if let Some(owner) = self.owners.get_mut(&id) {
            owner.owned += 1;
        }
    }

    /// `id` owns one reusable block less.
    pub(crate) fn lose(&mut self, id: OwnerId) {
        if let Some(owner) = self.owners.get_mut(&id) {
            owner.owned -= 1;
        }
        self.drop_if_unused(id);
    }

    /// A block of `id` is held by nobody from now on, or again by somebody.
    pub(crate) fn set_idle(&mut self, id: OwnerId, idle: bool) {
        let Some(owner) = self.owners.get_mut(&id) else {
            return;
        };
        let kept = owner.standing == Standing::Kept;
        if idle {
            owner.idle += 1;
            self.kept_idle += usize::from(kept);
        } else {
            owner.idle -= 1;
            self.kept_idle -= usize::from(kept);
        }
    }

    /// An idle block of `id`, last used at `used`, on which nothing builds.
    pub(crate) fn add_leaf(&mut self, id: OwnerId, used: u64, block: BlockId) {
        self.change_leaves(id, |leaves| leaves.insert((used, block)));
    }

    /// It is held again, or something builds on it, or it goes.
    pub(crate) fn remove_leaf(&mut self, id: OwnerId, used: u64, block: BlockId) {
        self.change_leaves(id, |leaves| leaves.remove(&(used, block)));
    }

    /// The block that goes next.
    pub(crate) fn victim(&self) -> Option<BlockId> {
        let first = |standing: Standing| self.ranks[standing as usize].first();
        let early = first(Standing::Released).or_else(|| first(Standing::Expired));
        let (plain, kept) = (first(Standing::Plain), first(Standing::Kept));
        let late = match (plain, kept) {
            (Some(plain), Some(kept)) if self.kept_idle > self.kept_max => Some(plain.min(kept)),
            (plain, kept) => plain.or(kept),
        };
        let (_, id) = early.or(late)?;
        let leaves = &self.owners.get(id)?.leaves;
        leaves.first().map(|&(_, block)| block)
    }

    /// No block is reusable any more; sessions and what was said of them stay for as long as they are at work.
    pub(crate) fn forget_blocks(&mut self) {
        for rank in &mut self.ranks {
            rank.clear();
        }
        self.kept_idle = 0;
        for owner in self.owners.values_mut() {
            owner.leaves.clear();
            (owner.idle, owner.owned) = (0, 0);
        }
        let ids: Vec<_> = self.owners.keys().copied().collect();
        ids.into_iter().for_each(|id| self.drop_if_unused(id));
    }

    fn change_leaves(
        &mut self,
        id: OwnerId,
        change: impl FnOnce(&mut BTreeSet<(u64, BlockId)>) -> bool,
    ) {
        let Some(owner) = self.owners.get_mut(&id) else {
            return;
        };
        let before = owner.leaves.first().map(|&(used, _)| used);
        let changed = change(&mut owner.leaves);
        debug_assert!(changed, "a leaf is listed once");
        let after = owner.leaves.first().map(|&(used, _)| used);
        if before != after {
            let rank = &mut self.ranks[owner.standing as usize];
            before.map(|used| rank.remove(&(used, id)));
            after.map(|used| rank.insert((used, id)));
        }
    }

    fn drop_if_unused(&mut self, id: OwnerId) {
        let unused = self
            .owners
            .get(&id)
            .is_some_and(|owner| owner.users == 0 && owner.owned == 0);
        if id == NOBODY || !unused {
            return;
        }
        self.stand(id, Standing::Plain, None);
        if let Some(name) = self.owners.remove(&id).and_then(|owner| owner.name) {
            self.by_name.remove(&name);
        }
    }

    /// Panics unless the order has exactly these idle blocks `(owner, last use, block, is a leaf)`. For tests.
    pub(crate) fn check(&self, idle: &[(OwnerId, u64, BlockId, bool)]) {
        let mut kept_idle = 0;
        for (&id, owner) in &self.owners {
            let own = || idle.iter().filter(|entry| entry.0 == id);
            let leaves: BTreeSet<_> = own()
                .filter(|entry| entry.3)
                .map(|entry| (entry.1, entry.2))
                .collect();
            assert_eq!(owner.leaves, leaves, "leaves of owner {id}");
            assert_eq!(owner.idle, own().count(), "idle blocks of owner {id}");
            let first = leaves.first().map(|&(used, _)| (used, id));
            for (rank, entries) in self.ranks.iter().enumerate() {
                let here = rank == owner.standing as usize;
                let listed: Vec<_> = entries.iter().filter(|entry| entry.1 == id).collect();
                assert_eq!(listed, first.iter().filter(|_| here).collect::<Vec<_>>());
            }
            assert_eq!(owner.keep_until.is_some(), owner.standing == Standing::Kept);
            kept_idle += owner.idle * usize::from(owner.standing == Standing::Kept);
        }
        assert_eq!(self.kept_idle, kept_idle);
        let deadlines = self.owners.values().filter(|o| o.keep_until.is_some());
        assert_eq!(self.deadlines.len(), deadlines.count());
        assert_eq!(self.by_name.len() + 1, self.owners.len());
    }
}

#[cfg(test)]
mod tests;
