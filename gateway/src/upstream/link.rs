//! One HTTP/1.1 connection to a replica that is driven by whoever holds it: the request, then the body of its
//! answer. So no second task is woken per chunk, and dropping the body is all it takes to cancel the replica's work.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::connect::Io;

/// What moves the bytes of one connection.
type Driver = Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>;

/// An open connection, idle or busy with one request.
pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    driver: Box<Driver>,
    /// The driver has ended and must not be polled again.
    ended: bool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(super) async fn open(stream: Box<dyn Io>) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self {
            sender,
            driver: Box::new(driver),
            ended: false,
        })
    }

    /// Moves bytes in both directions as far as they go. Ready when the connection has ended.
    pub(super) fn poll_drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.ended {
            // An error of the driver reaches the request or the body too, which is where it is reported.
            self.ended = Pin::new(&mut *self.driver).poll(cx).is_ready();
        }
        if self.ended {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether another request can go out. Reads first, so a connection that the replica has closed is noticed.
    pub(super) fn poll_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        self.poll_drive(cx).is_pending() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// The connection broke before the head was whole.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        let mut answer = pin!(self.sender.send_request(request));
        let (driver, ended) = (&mut self.driver, &mut self.ended);
        poll_fn(|cx| {
            // The driver goes first: it writes the request and fills the answer that is looked at next.
            if !*ended {
                *ended = Pin::new(&mut **driver).poll(cx).is_ready();
            }
            answer.as_mut().poll(cx)
        })
        .await
    }
}
