//! The path of a request, outermost layer first.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::{Service, ServiceBuilder};

use crate::api::EndpointsLayer;
use crate::chat::attempt::Attempt;
use crate::chat::limit::LimitLayer;
use crate::chat::parse::ParseLayer;
use crate::chat::route::RouteLayer;
use crate::config::Config;
use crate::layers::Answer;
use crate::layers::admit::AdmitLayer;
use crate::layers::observe::ObserveLayer;
use crate::layers::request_id::RequestIdLayer;
use crate::layers::rescue::RescueLayer;
use crate::reply::ReplyBody;
use crate::state::Known;
use crate::upstream::client::Client;

/// Builds the service that answers clients. It is always ready, and cheap to clone.
pub fn stack<B>(
    config: &Config,
    known: &Arc<Known>,
    client: Arc<Client>,
) -> impl Service<
    Request<B>,
    Response = Response<ReplyBody>,
    Error = Infallible,
    Future = Answer<Response<ReplyBody>, Infallible>,
> + Clone
+ Send
+ Sync
+ use<B>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    ServiceBuilder::new()
        // Names the request before anything can fail, so that every later line can be found by its id.
        .layer(RequestIdLayer::default())
        // Counts a request when its body ends, fails or is dropped: a stream is not done at its headers.
        .layer(ObserveLayer::new(known.clone()))
        // Below this line everything is a `Failure`; above it everything is a response.
        .layer(RescueLayer::new(known.clone()))
        // Only chat goes further: a probe of /health must be answered also when the gateway is full.
        .layer(EndpointsLayer::new(known.clone()))
        // Refuses before the body is read: a gateway that is full must not buffer what it will not send.
        .layer(AdmitLayer::new(config.limits.in_flight_max, known.clone()))
        // One scan of the body. From here on the request is a `ChatCall`.
        .layer(ParseLayer::new(
            known.clone(),
            config.limits,
            config.timeouts.request_body,
        ))
        // What the policy does not take: here, where its size and its session are known and nothing has been sent.
        .layer(LimitLayer::new(known.clone()))
        // One decision, from memory. From here on the request is a `RoutedCall`; routes once, whatever fails later.
        .layer(RouteLayer::new(known.clone()))
        // The candidates in order until the first byte. Holds the in-flight count of the replica that it asks.
        .service(Attempt::new(known.clone(), client))
}
