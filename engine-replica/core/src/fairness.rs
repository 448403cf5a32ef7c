//! Whose waiting request goes next: weighted fair queueing over tenants and priorities.
//!
//! Every pair of tenant and priority is a flow with a bill of the tokens computed for it, a token of a lower priority
//! costing more. The flow with the smallest bill goes next. One that comes back after a rest starts at the bill of who
//! was served last: rest earns no credit. So an urgent request goes ahead of any backlog, a tenant with a thousand
//! requests waiting delays another's by one, and whoever waits is reached, for all the others' bills grow.

use std::collections::BTreeMap;
use std::sync::Arc;

/// How urgent a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody waits for every word.
    Interactive,
    /// Unless said otherwise.
    #[default]
    Default,
    /// Nobody waits: batches, evaluations.
    Bulk,
}

impl Priority {
    /// All, the most urgent first.
    pub const ALL: [Priority; 3] = [Priority::Interactive, Priority::Default, Priority::Bulk];

    /// What a token costs on the bill of a flow: with all of them backlogged, tokens are shared 16 to 4 to 1.
    pub fn token_cost(self) -> u64 {
        match self {
            Priority::Interactive => 1,
            Priority::Default => 4,
            Priority::Bulk => 16,
        }
    }

    /// Its name where people write it.
    pub fn name(self) -> &'static str {
        match self {
            Priority::Interactive => "interactive",
            Priority::Default => "default",
            Priority::Bulk => "bulk",
        }
    }
}

/// A tenant at one priority.
pub type Flow = (Option<Arc<str>>, Priority);

#[derive(Debug, Default)]
struct Account {
    bill: u64,
    /// Sequences that wait or run; without one the account is closed.
    live: usize,
}

/// The bills of all flows that have a sequence here.
#[derive(Debug, Default)]
pub struct Bills {
    accounts: BTreeMap<Flow, Account>,
    /// Bill of the flow that was served last; never goes back.
    level: u64,
}

impl Bills {
    /// A sequence of `flow` has come.
    pub fn open(&mut self, flow: &Flow) {
        let level = self.level;
        let account = self.accounts.entry(flow.clone()).or_insert(Account {
            bill: level,
            live: 0,
        });
        account.live += 1;
    }

    /// A sequence of `flow` is gone.
    pub fn close(&mut self, flow: &Flow) {
        if let Some(account) = self.accounts.get_mut(flow) {
            account.live = account.live.saturating_sub(1);
            if account.live == 0 {
                self.accounts.remove(flow);
            }
        }
    }

    /// `tokens` were computed for `flow`.
    pub fn charge(&mut self, flow: &Flow, tokens: usize) {
        if let Some(account) = self.accounts.get_mut(flow) {
            account.bill += tokens as u64 * flow.1.token_cost();
        }
    }

    /// `flow` is served now: nobody starts below it from now on, and it itself, if it rested, not below others.
    pub fn serve(&mut self, flow: &Flow) {
        if let Some(account) = self.accounts.get_mut(flow) {
            account.bill = account.bill.max(self.level);
            self.level = account.bill;
        }
    }

    /// Sorts flows: the smallest goes next. One that holds only running sequences rests until it waits again.
    pub fn rank(&self, flow: &Flow) -> (u64, Priority) {
        let bill = self.accounts.get(flow).map_or(0, |account| account.bill);
        (bill.max(self.level), flow.1)
    }

    /// Flows that have a sequence here.
    pub fn flows(&self) -> usize {
        self.accounts.len()
    }
}
