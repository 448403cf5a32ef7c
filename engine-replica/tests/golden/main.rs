//! The replica's text and numbers against other implementations, by the fixtures in `tests/golden` of the workspace.
//!
//! The part about SmolLM2 needs its file in the user's cache folder (`deploy/scripts/fetch-smollm2.sh` puts it there)
//! and says so when it is not.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod logits;
#[cfg(test)]
mod session;
#[cfg(test)]
mod templates;
#[cfg(test)]
mod tokens;
