//! The command line.

use crate::mode::Mode;
use std::{net::SocketAddr, str::FromStr, time::Duration};

/// Connections that one run may open: one thread drives them all, and more would only measure its queue.
const CONNECTIONS_MAX: u32 = 1_024;
/// Bytes of one request body: as large as any engine's context, and four bodies a session stay in memory.
const BODY_BYTES_MAX: u32 = 4 << 20;

/// Sends chat requests as fast as answers come back and prints what that took.
#[derive(clap::Parser, Debug)]
#[command(name = "loadgen")]
pub(crate) struct Args {
    /// Where to send, `ADDR[,ADDR...]`; connection i goes to target i modulo their number
    #[arg(long, value_delimiter = ',', required = true)]
    pub(crate) targets: Vec<SocketAddr>,

    /// What is sent
    #[arg(long, value_enum)]
    pub(crate) mode: Mode,

    /// Connections, each with one request in flight [default: the mode's own]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    pub(crate) connections: Option<u32>,

    /// Bytes of a request's body, roughly [default: the mode's own]
    #[arg(long, value_parser = clap::value_parser!(u32).range(256..=i64::from(BODY_BYTES_MAX)))]
    pub(crate) body_bytes: Option<u32>,

    /// Seconds that are measured
    #[arg(long, default_value = "8", value_parser = seconds)]
    pub(crate) secs: Duration,

    /// Seconds of the same load before that
    #[arg(long, default_value = "1.5", value_parser = seconds)]
    pub(crate) warmup: Duration,

    /// Also report the CPU time of these processes within the measured seconds: `NAME=PID[+PID...]`
    #[arg(long)]
    pub(crate) watch: Vec<Watch>,

    /// Where the texts and session names start; runs that follow each other on one system need different ones
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u32,

    /// Leave the session header out, so that a gateway has only the conversation to go by
    #[arg(long)]
    pub(crate) no_session_header: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds"))?;
    if !(0.0..=3_600.0).contains(&value) {
        return Err(format!("`{text}` is outside 0 to 3600 seconds"));
    }
    Ok(Duration::from_secs_f64(value))
}

/// A group of processes whose CPU time belongs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    /// The key of its row in the report.
    pub(crate) name: String,
    /// Its process ids; none is allowed, so that a case without a gateway has the same row with zeroes.
    pub(crate) pids: Vec<u32>,
}

impl FromStr for Watch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, pids) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` lacks a `=`; expected `NAME=PID[+PID...]`"))?;
        let pids = pids
            .split('+')
            .filter(|pid| !pid.is_empty())
            .map(|pid| {
                pid.parse()
                    .map_err(|_| format!("`{pid}` in `{text}` is not a process id"))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.to_owned(),
            pids,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, Watch};
    use clap::CommandFactory as _;

    #[track_caller]
    fn check(text: &str, expect: Result<(&str, &[u32]), &str>) {
        let read = text.parse::<Watch>();
        let expect = expect
            .map(|(name, pids)| Watch {
                name: name.to_owned(),
                pids: pids.to_vec(),
            })
            .map_err(str::to_owned);
        assert_eq!(read, expect, "{text}");
    }

    #[test]
    fn watched_processes_are_named_groups() {
        check("gateway=12+34", Ok(("gateway", &[12, 34])));
        check("gateway=", Ok(("gateway", &[])));
        check("12", Err("`12` lacks a `=`; expected `NAME=PID[+PID...]`"));
        check("a=1+x", Err("`x` in `a=1+x` is not a process id"));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
