//! The engine over a scripted model: the same tokens whatever the batch, and every way that a job can end.

mod endings;
mod invariance;
mod limits;
mod prefix;
mod scripted;
mod slow;
