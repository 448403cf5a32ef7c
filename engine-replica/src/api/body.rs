//! Reads a request's body within its bounds.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::failure::Failure;

/// Longest silence within a body.
const BODY_IDLE_MAX: Duration = Duration::from_secs(30);

/// The whole body. One that announces more than `limit_bytes` is refused before any of it is read, one that does not
/// say is counted as it comes.
pub(super) async fn read<B>(request: Request<B>, limit_bytes: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut body = request.into_body();
    let too_large = || Failure::BodyTooLarge { limit_bytes };
    let announced = body.size_hint().lower();
    if announced > limit_bytes as u64 {
        return Err(too_large());
    }
    let mut whole = BytesMut::new();
    loop {
        let frame = timeout(BODY_IDLE_MAX, body.frame())
            .await
            .map_err(|_| Failure::BodyTimeout)?;
        let Some(frame) = frame else {
            return Ok(whole.freeze());
        };
        let frame = frame.map_err(|_| Failure::BodyCut)?;
        // Trailers say nothing that is wanted.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.len() + data.len() > limit_bytes {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use std::convert::Infallible;

    fn chunked(
        pieces: &'static [&'static str],
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        StreamBody::new(futures_util::stream::iter(
            pieces
                .iter()
                .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))),
        ))
    }

    #[tokio::test]
    async fn rc_117_a_long_body_is_refused_whether_or_not_it_says_so() {
        let refused = Err(Failure::BodyTooLarge { limit_bytes: 4 });
        assert_eq!(read(Request::new(Full::from("12345")), 4).await, refused);
        assert_eq!(
            read(Request::new(chunked(&["123", "45"])), 4).await,
            refused
        );
        assert_eq!(
            read(Request::new(chunked(&["12", "34"])), 4).await.unwrap(),
            "1234"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_body_is_given_up() {
        let silent = StreamBody::new(futures_util::stream::pending::<
            Result<Frame<Bytes>, Infallible>,
        >());
        assert_eq!(
            read(Request::new(silent), 4).await,
            Err(Failure::BodyTimeout)
        );
    }
}
