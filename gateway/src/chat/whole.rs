//! A whole answer that is reshaped: read to its end first, so that its head tells the new length and a replica that breaks off in the
//! middle gets an error in place of half an answer.

use std::future::poll_fn;

use bytes::{Bytes, BytesMut};
use chat_wire::gather::{Gather, GatherError};
use chat_wire::limits::BODY_BYTES_MAX;
use chat_wire::sse::{DONE_DATA, Decoder};

use super::events::EventRelay;
use super::reasoning::Split;
use crate::failure::Failure;
use crate::state::sent::Sent;
use crate::upstream::body::UpstreamBody;

/// The answer's new body.
pub(super) async fn reshape(
    mut upstream: UpstreamBody,
    mut sent: Sent,
    mut split: Split,
) -> Result<Bytes, Failure> {
    let body = read(&mut upstream, &sent).await?;
    sent.answered();
    let (body, seen) = match split.reshaper.answer(&body) {
        Ok(answer) => answer,
        // What is no answer to a chat is not the gateway's to judge.
        Err(_) if !split.reshaper.hides() => return Ok(body),
        Err(error) => {
            return Err(Failure::Truncated {
                replica: sent.replica().name().clone(),
                cause: format!("its body is no JSON object: {error}"),
            });
        }
    };
    if let Some(usage) = seen.usage {
        sent.usage(usage);
    }
    split.note(sent.replica(), seen.usage.as_ref());
    Ok(body)
}

/// The whole answer of a stream that ended.
pub(super) async fn gather(mut relay: EventRelay) -> Result<Bytes, Failure> {
    let (mut gather, mut decoder) = (Gather::default(), Decoder::new());
    let mut wrong = None;
    while let Some(events) = poll_fn(|cx| relay.poll_next(cx)).await {
        let Ok(events) = decoder.push(&events) else {
            wrong.get_or_insert(GatherError::TooLarge);
            break;
        };
        for event in events {
            if event.data.as_bytes() != DONE_DATA {
                wrong = wrong.or(gather.push(event.data.as_bytes()).err());
            }
        }
    }
    if let Some(failure) = relay.take_failure() {
        return Err(failure);
    }
    let replica = relay.replica().name().clone();
    match wrong {
        Some(GatherError::TooLarge) => Err(Failure::EventTooLarge {
            replica,
            cause: format!("an answer of more than {BODY_BYTES_MAX} bytes"),
        }),
        Some(GatherError::NoChunk) => Err(Failure::Truncated {
            replica,
            cause: "its stream has an error, or what is no chunk of an answer".to_owned(),
        }),
        None => gather.finish().map(Bytes::from).ok_or(Failure::Truncated {
            replica,
            cause: "its stream has no answer".to_owned(),
        }),
    }
}

async fn read(upstream: &mut UpstreamBody, sent: &Sent) -> Result<Bytes, Failure> {
    let mut whole = Whole::None;
    while let Some(chunk) = poll_fn(|cx| upstream.poll_chunk(cx)).await {
        let chunk = chunk?;
        whole = match whole {
            Whole::None => Whole::One(chunk),
            Whole::One(first) => {
                let mut many = BytesMut::with_capacity(first.len() + chunk.len());
                many.extend_from_slice(&first);
                many.extend_from_slice(&chunk);
                Whole::Many(many)
            }
            Whole::Many(mut many) => {
                many.extend_from_slice(&chunk);
                Whole::Many(many)
            }
        };
        if whole.len() > BODY_BYTES_MAX {
            return Err(Failure::EventTooLarge {
                replica: sent.replica().name().clone(),
                cause: format!("an answer of more than {BODY_BYTES_MAX} bytes"),
            });
        }
        if upstream.is_end() {
            break;
        }
    }
    Ok(match whole {
        Whole::None => Bytes::new(),
        Whole::One(one) => one,
        Whole::Many(many) => many.freeze(),
    })
}

/// What came so far. Most answers come in one piece, which is then used as it is.
enum Whole {
    None,
    One(Bytes),
    Many(BytesMut),
}

impl Whole {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(one) => one.len(),
            Self::Many(many) => many.len(),
        }
    }
}
