//! The small pages: `/health`, `/v1/models`, `/metrics`, `/reset_prefix_cache`.

use bytes::Bytes;
use chat_wire::reply::{Model, ModelList};
use http::{Response, StatusCode};
use serde::Serialize;

use super::Api;
use super::reply_body::{ReplyBody, json, typed};
use crate::failure::Failure;

/// What `/health` says; a promise to whoever probes.
#[derive(Serialize)]
struct Health<'a> {
    /// `ok`, `draining` or `unhealthy`; the status code is 200 for the first and 503 for the others.
    status: &'static str,
    /// Random per start: a new one means that the cache is cold.
    instance: &'a str,
    name: &'a str,
    model: &'a str,
    device: &'a str,
    version: &'static str,
    /// Tokens that prompt and answer share.
    context_max: usize,
    /// Tokens of one block: prefixes are reused in whole blocks.
    block_tokens: usize,
    kv_blocks: usize,
    kv_blocks_used: usize,
    prefix_cache: bool,
    running: usize,
    waiting: usize,
}

pub(super) fn health(api: &Api) -> Response<ReplyBody> {
    let stats = api.engine.stats();
    let (code, status) = if !api.engine.healthy() {
        (StatusCode::SERVICE_UNAVAILABLE, "unhealthy")
    } else if api.engine.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else {
        (StatusCode::OK, "ok")
    };
    let served = &api.served;
    let health = Health {
        status,
        instance: &served.instance,
        name: &served.name,
        model: &served.model,
        device: &served.device,
        version: env!("CARGO_PKG_VERSION"),
        context_max: served.context_max,
        block_tokens: replica_core::BLOCK_TOKENS,
        kv_blocks: stats.kv_blocks_total,
        kv_blocks_used: stats.kv_blocks_used,
        prefix_cache: served.prefix_cache,
        running: stats.running,
        waiting: stats.waiting,
    };
    // Plain strings and numbers always serialise.
    json(code, serde_json::to_vec(&health).unwrap_or_default().into())
}

pub(super) fn models(api: &Api) -> Response<ReplyBody> {
    let model = Model {
        id: &api.served.model,
        object: Model::OBJECT,
        created: api.started,
        owned_by: "pinion",
        max_model_len: u32::try_from(api.served.context_max).ok(),
    };
    let list = ModelList {
        object: ModelList::OBJECT,
        data: vec![model],
    };
    json(StatusCode::OK, list.to_json())
}

pub(super) fn metrics(api: &Api) -> Result<Response<ReplyBody>, Failure> {
    let text = api
        .metrics
        .render(&api.engine.stats())
        .map_err(|error| Failure::Engine(format!("the metrics cannot be written: {error}")))?;
    Ok(typed(
        StatusCode::OK,
        prometheus::TEXT_FORMAT,
        Bytes::from(text),
    ))
}

/// Nothing computed before this answer is reused by a request that comes after it.
pub(super) fn reset_prefix_cache(api: &Api) -> Response<ReplyBody> {
    api.engine.reset_prefix_cache();
    json(StatusCode::OK, Bytes::from_static(b"{\"status\":\"ok\"}"))
}
