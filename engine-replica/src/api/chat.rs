//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use chat_wire::limits::BODY_BYTES_MAX;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tokio::time::Instant;

use super::reply::{Answer, StreamBody, Timer, whole};
use super::reply_body::{ReplyBody, events, json};
use super::{Api, body, hints, job, request};
use crate::engine::job::Job;
use crate::failure::Failure;

/// A request that is ready for the engine.
struct Prepared {
    job: Job,
    answer: Answer,
    stream: bool,
}

pub(super) async fn chat<B>(
    api: &Arc<Api>,
    request: Request<B>,
    arrived: Instant,
) -> Result<Response<ReplyBody>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    if api.engine.is_draining() {
        return Err(Failure::Draining);
    }
    let terms = hints::read(&api.served, request.headers())?;
    let body = body::read(request, BODY_BYTES_MAX).await?;
    let preparer = Arc::clone(api);
    // A long conversation takes tens of milliseconds to tokenise, which must not hold up the streams of others.
    let prepared = tokio::task::spawn_blocking(move || prepare(&preparer, &body))
        .await
        .map_err(|_| {
            Failure::Engine("the request could not be prepared; this is a bug".to_owned())
        })??;
    let Prepared {
        mut job,
        answer,
        stream,
    } = prepared;
    job.terms = terms;
    api.metrics.count_prompt(job.prompt.len());
    let job_events = api.engine.submit(job).map_err(job::refusal)?;
    let timer = Timer::new(Arc::clone(&api.metrics), arrived);
    if stream {
        return Ok(events(StreamBody::new(answer, timer, job_events)));
    }
    let whole = whole(&answer, timer, job_events).await?;
    Ok(json(StatusCode::OK, whole))
}

/// Everything between the body and the engine; takes time in the length of the conversation.
fn prepare(api: &Api, body: &[u8]) -> Result<Prepared, Failure> {
    let request = request::parse(body)?;
    if let Some(asked) = &request.model
        && **asked != *api.served.model
    {
        return Err(Failure::ModelNotFound {
            asked: asked.clone(),
            served: api.served.model.to_string(),
        });
    }
    let prompt = api.format.prompt(&request)?;
    let answer = Answer {
        id: api.ids.name("chatcmpl-"),
        created: seconds_since_1970(),
        model: Arc::clone(&api.served.model),
        prompt_tokens: u32::try_from(prompt.len()).unwrap_or(u32::MAX),
        include_usage: request.include_usage,
        logprobs: request.logprobs.is_some(),
        vocabulary: Arc::clone(&api.vocabulary),
    };
    let stream = request.stream;
    let thinks = api.format.thinking(&prompt).zip(api.format.think_words());
    let job = job::job(&api.served, request, prompt, thinks, api.ids.random())?;
    Ok(Prepared {
        job,
        answer,
        stream,
    })
}

/// 0 on a machine whose clock stands before 1970.
pub(super) fn seconds_since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
