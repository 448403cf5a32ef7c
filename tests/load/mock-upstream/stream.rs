//! A streamed answer: one write per event, as an engine emits them.

use bytes::Bytes;
use http_body::{Body, Frame};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Sleep, sleep};

/// Events that are sent one by one, with a pause before each but the first.
pub(crate) struct Events {
    first: Option<Bytes>,
    repeated: Bytes,
    repeats_left: u64,
    last: VecDeque<Bytes>,
    pause: Pause,
}

/// What keeps two events from going out in one write.
enum Pause {
    /// Give way once, so that the connection writes what it has.
    Yield { given_way: bool },
    /// Wait, measured from the event before, so that small delays do not add up.
    Sleep {
        delay: Duration,
        sleep: Option<Pin<Box<Sleep>>>,
    },
}

impl Events {
    /// `first`, then `repeats` times `repeated`, then all of `last`, `delay` apart.
    pub(crate) fn new(
        first: Bytes,
        repeated: Bytes,
        repeats: u64,
        last: VecDeque<Bytes>,
        delay: Duration,
    ) -> Self {
        let pause = if delay.is_zero() {
            Pause::Yield { given_way: true }
        } else {
            Pause::Sleep { delay, sleep: None }
        };
        Self {
            first: Some(first),
            repeated,
            repeats_left: repeats,
            last,
            pause,
        }
    }

    fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.repeats_left > 0 {
            self.repeats_left -= 1;
            return Some(self.repeated.clone());
        }
        self.last.pop_front()
    }
}

impl Pause {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Yield { given_way } => {
                *given_way = !*given_way;
                if *given_way {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Sleep {
                delay,
                sleep: pending,
            } => {
                let timer = pending.get_or_insert_with(|| Box::pin(sleep(*delay)));
                ready!(timer.as_mut().poll(cx));
                let next = timer.deadline() + *delay;
                timer.as_mut().reset(next);
                Poll::Ready(())
            }
        }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.first.is_none() && !self.is_end_stream() {
            ready!(self.pause.poll(cx));
        }
        Poll::Ready(self.next().map(|event| Ok(Frame::data(event))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.repeats_left == 0 && self.last.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Duration, Events};
    use http_body_util::BodyExt as _;
    use tokio::time::Instant;

    /// Reads a stream of three repeats and two last events; the frames and the time that they took.
    #[track_caller]
    fn check(delay: Duration, expect: Duration) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.unwrap().block_on(async {
            let last = ["y", "z"].map(Bytes::from).into();
            let mut events = Events::new(Bytes::from("a"), Bytes::from("b"), 3, last, delay);
            let start = Instant::now();
            let mut frames = Vec::new();
            while let Some(frame) = events.frame().await {
                frames.push(frame.unwrap().into_data().unwrap());
            }
            assert_eq!(frames, ["a", "b", "b", "b", "y", "z"]);
            assert_eq!(start.elapsed(), expect);
        });
    }

    #[test]
    fn every_event_is_a_frame_of_its_own_in_its_order() {
        check(Duration::ZERO, Duration::ZERO);
    }

    #[test]
    fn events_are_the_delay_apart() {
        check(Duration::from_millis(10), Duration::from_millis(50));
    }
}
