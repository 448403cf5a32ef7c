//! What serving waits for: the wish to end, and then the end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;

use super::Ended;
use crate::engine::handle::EngineHandle;

/// Why serving ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Signal,
    EngineStopped,
}

/// Until the first signal, or the end of an engine that nobody asked to end.
pub(super) async fn signal_or_stop(
    engine: &EngineHandle,
    signal: impl Future<Output = ()>,
) -> Cause {
    tokio::select! {
        () = signal => Cause::Signal,
        () = engine.stopped() => Cause::EngineStopped,
    }
}

/// Until the engine has finished what it took, the time is over, or a second signal says not to wait.
pub(super) async fn wait(
    engine: &EngineHandle,
    second_signal: impl Future<Output = ()>,
    drain_max: Duration,
) -> Ended {
    let mut second_signal = pin!(second_signal);
    tokio::select! {
        () = engine.stopped() => Ended::Drained,
        () = &mut second_signal => Ended::CutOff,
        () = sleep(drain_max) => Ended::CutOff,
    }
}
