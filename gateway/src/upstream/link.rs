//! One HTTP/1.1 connection to a replica that is driven by whoever holds it: the request, then the body of its
//! answer. So no second task is woken per chunk, and dropping the body is all it takes to cancel the replica's work.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::connect::Io;
use super::quiet::Quiet;

/// What moves the bytes of one connection.
type Driver = Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>;

/// An open connection, idle or busy with one request.
pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    driver: Box<Driver>,
    /// The driver has ended and must not be polled again.
    ended: bool,
    quiet: Quiet,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// Moves bytes in both directions as far as they go. An error of the driver reaches the request or the body too,
/// which is where it is reported.
fn drive(driver: &mut Driver, ended: &mut bool, cx: &mut Context<'_>) {
    if !*ended {
        *ended = Pin::new(driver).poll(cx).is_ready();
    }
}

impl Link {
    pub(super) async fn open(stream: Box<dyn Io>) -> hyper::Result<Self> {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self {
            sender,
            driver: Box::new(driver),
            ended: false,
            quiet: Quiet::default(),
        })
    }

    /// Whether another request can go out. Reads first, so a connection that the replica has closed is noticed.
    pub(super) fn poll_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        let Self {
            driver,
            ended,
            quiet,
            ..
        } = self;
        let _ = quiet.poll(cx, |cx| {
            drive(driver, ended, cx);
            Poll::<()>::Pending
        });
        !self.ended && self.sender.is_ready()
    }

    /// Nobody is to be woken for this connection while it lies idle.
    pub(super) fn let_go(&self) {
        self.quiet.let_go();
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// The connection broke before the head was whole.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        let Self {
            sender,
            driver,
            ended,
            quiet,
        } = self;
        let mut answer = pin!(sender.send_request(request));
        poll_fn(|cx| {
            quiet.poll(cx, |cx| {
                // The driver goes first: it writes the request and fills the answer that is looked at next.
                drive(driver, ended, cx);
                answer.as_mut().poll(cx)
            })
        })
        .await
    }

    /// The next frame of the answer's body.
    pub(super) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let Self {
            driver,
            ended,
            quiet,
            ..
        } = self;
        quiet.poll(cx, |cx| {
            // Once to ask for a frame, once more after the connection has read.
            if let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(cx) {
                return Poll::Ready(frame);
            }
            drive(driver, ended, cx);
            Pin::new(&mut *incoming).poll_frame(cx)
        })
    }
}
