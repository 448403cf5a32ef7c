//! What every request passes, whatever it asks for. Each layer is one promise; `stack.rs` puts them in order.

pub mod admit;
pub mod observe;
pub mod request_id;
pub mod rescue;

use std::future::Future;
use std::pin::Pin;

/// The future of a layer. Boxed: in front of a model, the tens of nanoseconds are noise and the types stay legible.
pub type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
