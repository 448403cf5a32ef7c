//! `gateway policy`: policy files checked, replayed, compared and explained before they meet traffic. Files are read here; what they
//! come to is worked out in the pure crate.

mod classify;
mod diff;
mod explain;
mod files;
mod replay;
mod table;
mod trace;

use routing_policies::replay::{Setup, grid};

use crate::cli::{PolicyCommand, ReplaySetup};

/// Goes into the choice among equally good replicas, so that a replay comes out the same each time.
const SEED: u64 = 1;

/// Does what was asked and gives the text to print.
///
/// # Errors
/// In words for the person who asked: what cannot be read, and every problem of what can.
pub fn run(command: PolicyCommand) -> Result<String, String> {
    match command {
        PolicyCommand::Check { files } => files::check(&files),
        PolicyCommand::Schema => Ok(routing_policies::json_schema()),
        PolicyCommand::Replay {
            policies,
            setup,
            json,
        } => replay::run(&policies, &setup, json),
        PolicyCommand::Classify(options) => classify::run(&options),
        PolicyCommand::Explain(options) => explain::run(&options),
        PolicyCommand::Diff { old, new, setup } => diff::run(&old, &new, &setup),
    }
}

/// The cells to replay in.
fn cells(setup: &ReplaySetup) -> Vec<Setup> {
    let replicas: Vec<usize> = setup.replicas.iter().copied().map(usize::from).collect();
    grid(
        &replicas,
        &setup.cache_tokens,
        setup.block_tokens,
        setup.offered_load,
    )
}

#[cfg(test)]
mod tests;
