//! CPU time of processes and of the whole machine, from `/proc`.

use std::fs;

/// Clock ticks per second in `/proc/PID/stat` and `/proc/stat`: 100 on every Linux that user space can see.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds since boot or since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTime {
    /// In user space.
    pub(crate) user: f64,
    /// In the kernel.
    pub(crate) system: f64,
    /// On a CPU, to the nanosecond, of the threads that are alive now.
    pub(crate) on_cpu: f64,
}

impl CpuTime {
    /// What was used between `earlier` and this reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
            on_cpu: self.on_cpu - earlier.on_cpu,
        }
    }
}

/// What `pids` have used together; processes that are gone count nothing.
pub(crate) fn of_processes(pids: &[u32]) -> CpuTime {
    pids.iter().fold(CpuTime::default(), |sum, pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (user, system) = parse_stat(&stat).unwrap_or_default();
        CpuTime {
            user: sum.user + user,
            system: sum.system + system,
            on_cpu: sum.on_cpu + on_cpu(*pid),
        }
    })
}

/// Seconds that all CPUs together were busy since boot: neither idle, nor waiting for a disk, nor stolen.
pub(crate) fn machine_busy() -> f64 {
    parse_machine(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or(0.0)
}

fn on_cpu(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let nanoseconds: u64 = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_ascii_whitespace().next()?.parse::<u64>().ok())
        .sum();
    nanoseconds as f64 / 1e9
}

/// User and system seconds of a `/proc/PID/stat` line. The command in brackets may hold spaces and brackets.
fn parse_stat(text: &str) -> Option<(f64, f64)> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? / TICKS_PER_SECOND, ticks()? / TICKS_PER_SECOND))
}

/// Busy seconds of the `cpu` line of `/proc/stat`: user, nice, system, irq and softirq.
fn parse_machine(text: &str) -> Option<f64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_ascii_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::{of_processes, parse_machine, parse_stat};

    #[test]
    fn a_command_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0";
        assert_eq!(parse_stat(stat), Some((2.5, 0.5)));
        assert_eq!(parse_stat("7 (a) S 1"), None);
    }

    #[test]
    fn waiting_and_stolen_time_is_not_busy_time() {
        assert_eq!(
            parse_machine("cpu  100 10 200 900 800 30 60 700 0 0\ncpu0 1"),
            Some(4.0)
        );
        assert_eq!(parse_machine(""), None);
    }

    #[test]
    fn a_process_that_is_gone_counts_nothing() {
        assert_eq!(of_processes(&[u32::MAX]), super::CpuTime::default());
    }
}
