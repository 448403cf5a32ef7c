//! The wait between "no more" and "done".

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::time::sleep;

use super::Ended;
use crate::engine::handle::EngineHandle;

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
