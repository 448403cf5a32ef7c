//! What a trace is made of, and how its recorded times become arrivals.

use crate::placement::Block;

/// One recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When it arrives, in seconds on the trace's own clock.
    pub at_s: f64,
    /// Length of its prompt, in tokens.
    pub prompt_tokens: u32,
    /// Length of its answer, in tokens.
    pub output_tokens: u32,
    /// The session that it belongs to.
    pub session: u64,
    /// Its prompt's blocks, first one first. A last block that is not full counts as full: that is the room it takes.
    pub blocks: Vec<Block>,
}

/// Orders `requests` by time, spreads each group that shares one arrival time evenly over the `jitter_s` seconds after it, and
/// divides all times by `speed`. Some recorders round arrival times (Mooncake's to 3 s); left so, each group would arrive as one burst.
pub fn arrivals(requests: &mut [Request], jitter_s: f64, speed: f64) {
    requests.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    for tied in requests.chunk_by_mut(|a, b| a.at_s.total_cmp(&b.at_s).is_eq()) {
        let step = jitter_s / tied.len() as f64;
        for (place, request) in tied.iter_mut().enumerate() {
            request.at_s += step * place as f64;
        }
    }
    requests.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    for request in requests {
        request.at_s /= speed;
    }
}

/// Cuts ordered requests at the middle of the time that they span: (first half, second half).
#[must_use]
pub fn halves(requests: &[Request]) -> (&[Request], &[Request]) {
    let [first, .., last] = requests else {
        return (requests, &[]);
    };
    let middle = f64::midpoint(first.at_s, last.at_s);
    requests.split_at(requests.partition_point(|request| request.at_s < middle))
}
