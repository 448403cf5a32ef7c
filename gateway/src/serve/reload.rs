//! Takes up a changed policy file: the file is looked at every second, and read again on request (SIGHUP).

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval};

use super::drain::Tasks;
use crate::state::Known;

/// Between two looks at the file. A change is taken up at the second look that sees it, so that a file is not read while somebody
/// still writes it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which file lies at the path and when it was last written; `None` where there is none.
type Stamp = Option<(u64, u64, SystemTime)>;

/// Starts the task that takes up a new policy.
pub(super) fn watch(tasks: &Tasks, known: &Arc<Known>) {
    let (known, mut stop) = (known.clone(), tasks.stop());
    tasks.spawn(async move {
        let mut seen = stamp(known.policy.file());
        let mut changing = None;
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let asked = tokio::select! {
                () = stop.wait() => return,
                () = known.policy.asked() => true,
                _ = looks.tick() => false,
            };
            let now = stamp(known.policy.file());
            if !asked && now == seen {
                changing = None;
                continue;
            }
            if asked || changing == Some(now) {
                (seen, changing) = (now, None);
                take_up(&known);
            } else {
                changing = Some(now);
            }
        }
    });
}

fn stamp(file: Option<&Path>) -> Stamp {
    let data = std::fs::metadata(file?).ok()?;
    Some((data.ino(), data.len(), data.modified().ok()?))
}

/// Reads the file and says what came of it. Pins and remembered prefixes stay.
fn take_up(known: &Known) {
    let Some(file) = known.policy.file() else {
        tracing::info!(
            "asked to read the policy again, but it is the one built in; `policy` in the configuration names a file"
        );
        return;
    };
    let before = known.policy.current().version();
    let result = known.policy.reload();
    known.metrics.policy_reload(result.is_ok());
    match result {
        Ok(policy) => {
            let pins_forgotten = known.fit(policy.policy());
            tracing::info!(
                file = %file.display(),
                version = policy.version(),
                before,
                pins_kept = known.sessions.len(),
                pins_forgotten,
                "new policy in use"
            );
        }
        Err(why) => tracing::warn!(
            file = %file.display(),
            version = before,
            "the policy file changed but is not good; the running policy stays in use\n{why}"
        ),
    }
}
