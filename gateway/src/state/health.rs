//! Whether a replica takes requests, from probes and from what attempts see. A value: no clock, no socket.

/// Failed probes in a row before a ready replica is taken out. One may be a blip; two are a second or more.
const FAILURES_TO_UNREADY: u32 = 2;

/// What is known of one replica's health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    ready: bool,
    failures: u32,
    instance: Option<String>,
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that anyone needs to know.
    None,
    /// It takes requests from now on.
    Ready,
    /// It takes none from now on.
    Unready,
    /// Another process answers under its name: its cache is empty.
    Cold,
}

impl Health {
    /// Whether it takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// The process that answered last, where it tells.
    #[must_use]
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    // ## (Ready | Unready) => Ready; Cold where the process is another one
    // One good answer is enough: the replica itself says that it is ready.
    /// A probe was answered with success, by the process `instance` where it tells.
    pub fn on_ok(&mut self, instance: Option<&str>) -> Change {
        let was_ready = std::mem::replace(&mut self.ready, true);
        self.failures = 0;
        let known = self.instance.is_some();
        let another = instance.is_some() && self.instance.as_deref() != instance;
        if another {
            self.instance = instance.map(str::to_owned);
        }
        match (known && another, was_ready) {
            (true, _) => Change::Cold,
            (false, false) => Change::Ready,
            (false, true) => Change::None,
        }
    }

    // ## Ready => (Ready | Unready)
    /// A probe failed: no answer in time, or one that is not a success.
    pub fn on_failure(&mut self) -> Change {
        self.failures = self.failures.saturating_add(1);
        if self.ready && self.failures >= FAILURES_TO_UNREADY {
            self.ready = false;
            return Change::Unready;
        }
        Change::None
    }

    // ## Ready => Unready
    // Nobody listens: that is certain, so one is enough. Attempts report it long before the next probe.
    /// The connection was refused.
    pub fn on_unreachable(&mut self) -> Change {
        self.failures = self.failures.saturating_add(1);
        if std::mem::replace(&mut self.ready, false) {
            Change::Unready
        } else {
            Change::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Change::{Cold, None as Same, Ready, Unready};
    use super::*;

    /// `o` ok from process a, `p` ok from process b, `f` failed probe, `x` refused.
    #[track_caller]
    fn check(reports: &str, changes: &[Change], ready: bool) {
        let mut health = Health::default();
        let seen: Vec<Change> = reports
            .chars()
            .map(|report| match report {
                'o' => health.on_ok(Some("a")),
                'p' => health.on_ok(Some("b")),
                'n' => health.on_ok(None),
                'f' => health.on_failure(),
                _ => health.on_unreachable(),
            })
            .collect();
        assert_eq!(seen, changes);
        assert_eq!(health.is_ready(), ready);
    }

    #[test]
    fn readiness_follows_the_reports() {
        check("", &[], false);
        check("o", &[Ready], true);
        check("off", &[Ready, Same, Unready], false);
        check("ofof", &[Ready, Same, Same, Same], true);
        check("ox", &[Ready, Unready], false);
        check("oxo", &[Ready, Unready, Ready], true);
        check("op", &[Ready, Cold], true);
        check("oxp", &[Ready, Unready, Cold], true);
        check("non", &[Ready, Same, Same], true);
        check("xxo", &[Same, Same, Ready], true);
    }
}
