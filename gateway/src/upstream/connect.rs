//! Opens byte streams to replicas. Behind a trait, so that tests hand out streams in memory under a paused clock.

use std::future::Future;
use std::io;
use std::pin::Pin;

use http::uri::Authority;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The future of [`Connect::connect`].
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send + 'a>>;

/// Opens a stream to a host and port.
pub trait Connect: Send + Sync {
    /// One stream. The caller sets the time limit.
    ///
    /// # Errors
    /// What the operating system says.
    fn connect<'a>(&'a self, to: &'a Authority) -> Connecting<'a>;
}

/// Plain TCP.
#[derive(Clone, Copy, Debug)]
pub struct Tcp;

impl Connect for Tcp {
    fn connect<'a>(&'a self, to: &'a Authority) -> Connecting<'a> {
        Box::pin(async move {
            // An IPv6 host stands in brackets in a URL and without them in an address.
            let host = to.host().trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host, to.port_u16().unwrap_or(80))).await?;
            // Small writes go out at once: a request head must not wait for an acknowledgement.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}
