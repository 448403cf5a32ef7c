//! The whole gateway against scripted replicas in memory: what clients see, what replicas get, what is counted.

#[cfg(test)]
mod budgets;
#[cfg(test)]
mod cache_size;
#[cfg(test)]
mod changed;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod listener;
#[cfg(test)]
mod policy_limits;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reasoning;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod replica;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod think_lanes;
#[cfg(test)]
mod up;
